"""The projector against published measurements: floors under what score_training and score_serving print."""

import os
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from .figures import regret, spearman
from .score_serving import Scored as ScoredServing
from .score_training import Scored
from .serving_rows import ServingCase, serving_cases
from .training_rows import TrainingCase, training_cases
from .vtrain_rows import MULTI_NODE, SINGLE_NODE, vtrain_cases

FOLDER = Path(os.environ.get("SHARDWISE_SHARED", Path(__file__).parents[3] / "shared")) / "groundtruth"

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="no published measurements beside the project"),
]


def sweep(file: str) -> dict[str, list[tuple[float, float]]]:
    """(projected, measured) seconds by group."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for case in vtrain_cases(FOLDER, file):
        found[case.group].append((Scored(case).predicted_s, case.step_time_s))
    return found


def mean_error(pairs: list[tuple[float, float]]) -> float:
    """Mean absolute error as a fraction."""
    predicted, measured = np.array(pairs).T
    return float(np.abs(predicted / measured - 1).mean())


def test_multi_node_sweeps_are_ranked_and_their_best_found() -> None:
    groups = sweep(MULTI_NODE)
    assert mean_error([pair for pairs in groups.values() for pair in pairs]) < 0.25
    columns = [np.array(pairs).T for pairs in groups.values()]
    assert np.mean([spearman(*column) for column in columns]) > 0.85
    assert max(regret(*column) for column in columns) <= 0.05


def test_single_node_sweeps_are_ranked() -> None:
    groups = sweep(SINGLE_NODE)
    assert mean_error([pair for pairs in groups.values() for pair in pairs]) < 0.15
    assert np.mean([spearman(*np.array(pairs).T) for pairs in groups.values() if len(pairs) >= 4]) > 0.85


def test_published_training_runs() -> None:
    cases = [case for _, case in training_cases(FOLDER) if isinstance(case, TrainingCase)]
    assert len(cases) > 500
    assert mean_error([(Scored(case).predicted_s, case.step_time_s) for case in cases]) < 0.20


def test_measured_serving_points() -> None:
    cases = [case for _, case in serving_cases(FOLDER) if isinstance(case, ServingCase)]
    pairs: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for case in cases:
        pairs[case.architecture.is_moe].append((ScoredServing(case).tpot_s, case.tpot_s))
    assert mean_error(pairs[False]) < 0.20
    assert mean_error(pairs[True]) < 0.28
    assert spearman(*np.array(pairs[False]).T) > 0.95
