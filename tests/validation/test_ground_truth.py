"""The projector against published measurements: floors under what `shardwise eval` prints."""

import os
from pathlib import Path

import pytest

from agents.evaluation.accuracy import accuracy
from agents.evaluation.material import TextFile, read_material
from agents.evaluation.reports import AccuracyReport
from agents.evaluation.serving_accuracy import serving_accuracy
from agents.evaluation.serving_reports import ServingFigures, ServingReport

FOLDER = Path(os.environ.get("SHARDWISE_SHARED", Path(__file__).parents[3] / "shared")) / "groundtruth"

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="no published measurements beside the project"),
]


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


def serving_report(file: str) -> ServingReport:
    """What `shardwise eval accuracy` says of one file of serving rows."""
    material = read_material([TextFile(file, (FOLDER / file).read_text(encoding="utf-8"))])
    return serving_accuracy(material.serving)


def figures_of(report: ServingReport, by: str, value: str, metric: str) -> ServingFigures:
    """The figures of one slice."""
    (found,) = (one for one in report.figures if (one.by, one.value, one.metric) == (by, value, metric))
    return found


def test_measured_serving_points() -> None:
    found = serving_report("silicon_serving.csv")
    assert found.n_given == found.n_modelled + found.n_repeated + found.n_ineligible + found.n_refused
    dense = figures_of(found, "model kind", "dense", "tpot_s")
    experts = figures_of(found, "model kind", "mixture of experts", "tpot_s")
    assert dense.mape < 0.20
    assert experts.mape < 0.28
    assert (dense.spearman or 0) > 0.95
    assert not [one for one in found.refusals if one.reason.startswith("not foreseen")]


def test_published_serving_tables() -> None:
    found = serving_report("serving.jsonl")
    assert found.n_given == found.n_modelled + found.n_repeated + found.n_ineligible + found.n_refused
    assert found.n_modelled > 800
    assert not [one for one in found.refusals if one.reason.startswith("not foreseen")]
