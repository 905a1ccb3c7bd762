"""The projector against published measurements: floors under what `shardwise eval` and score_serving print."""

import os
from pathlib import Path

import numpy as np
import pytest

from agents.evaluation.accuracy import accuracy
from agents.evaluation.material import TextFile, read_material
from agents.evaluation.reports import AccuracyReport

from .figures import spearman
from .score_serving import Scored as ScoredServing
from .serving_rows import ServingCase, serving_cases

FOLDER = Path(os.environ.get("SHARDWISE_SHARED", Path(__file__).parents[3] / "shared")) / "groundtruth"

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="no published measurements beside the project"),
]


def mean_error(pairs: list[tuple[float, float]]) -> float:
    """Mean absolute error as a fraction."""
    predicted, measured = np.array(pairs).T
    return float(np.abs(predicted / measured - 1).mean())


def report(file: str) -> AccuracyReport:
    """What `shardwise eval accuracy` says of one file."""
    material = read_material([TextFile(file, (FOLDER / file).read_text(encoding="utf-8"))])
    return accuracy(material.rows, material.strata)


def test_multi_node_sweeps_are_ranked_and_their_best_found() -> None:
    found = report("vtrain_a100_multi_node.csv")
    assert found.n_modelled == found.n_given
    assert (found.mape or 1) < 0.11
    assert (found.sweeps[0].spearman or 0) > 0.84
    assert (found.sweeps[0].top1_regret_worst or 0) <= 0.05


def test_single_node_sweeps_are_ranked() -> None:
    found = report("vtrain_a100_single_node.csv")
    assert found.n_modelled == found.n_given
    assert (found.mape or 1) < 0.10
    assert (found.sweeps[0].spearman or 0) > 0.94
    assert (found.sweeps[0].top1_regret or 0) <= 0.03


def test_published_training_runs() -> None:
    found = report("training.jsonl")
    assert found.n_modelled > 500
    assert (found.mape or 1) < 0.11
    assert (found.median_error or 1) < 0.08
    assert not [one for one in found.refusals if one.reason.startswith("not foreseen")]


def test_every_row_of_post_training_has_an_outcome() -> None:
    found = report("posttraining.jsonl")
    assert found.n_given == found.n_modelled + found.n_suspect + found.n_ineligible + found.n_refused
    assert not [one for one in found.refusals if one.reason.startswith("not foreseen")]


def test_measured_serving_points() -> None:
    cases = [case for _, case in serving_cases(FOLDER) if isinstance(case, ServingCase)]
    pairs: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for case in cases:
        pairs[case.architecture.is_moe].append((ScoredServing(case).tpot_s, case.tpot_s))
    assert mean_error(pairs[False]) < 0.20
    assert mean_error(pairs[True]) < 0.28
    assert spearman(*np.array(pairs[False]).T) > 0.95
