"""Constants fitted together, with a prior, without a row's own group: on runs whose truth is known."""

from dataclasses import replace

import numpy as np
import pytest
from evaluation_examples import row

from agents.evaluation.cases import Case, case_of
from agents.evaluation.folds import folds
from agents.evaluation.parameters import PARAMETERS
from agents.evaluation.refit import Linear, held_out, moved, row_weights, training_linear
from agents.evaluation.scored import Scored, score, score_all
from agents.evaluation.targets import STEP_TIME, Target

SUSTAINED, DRIVE = "Hopper: sustained_frac", 0.8


def case(family: str, seq_len: int) -> Case:
    return case_of(row(f"{family}-{seq_len}", seq_len=seq_len, family=family, source=f"github:{family}/x"), "")


def measured(one: Case, factor: float = 1.0) -> Scored:
    """A run that took so many times what is projected."""
    found = score(one)
    target = Target(STEP_TIME, factor * found.projected_s_per_token)
    return replace(found, case=replace(one, target=target))


def runs(**factors: float) -> list[Scored]:
    """Runs of several families, each at three lengths."""
    return [measured(case(name, s), factor) for name, factor in factors.items() for s in (2048, 4096, 8192)]


def slower(one: Case) -> Case:
    """The case on chips that sustain DRIVE of what the file says."""
    calibration = one.hardware.calibration
    changed = calibration.model_copy(update={"sustained_frac": DRIVE * calibration.sustained_frac})
    return replace(one, hardware=one.hardware.model_copy(update={"calibration": changed}))


def runs_of_a_slower_chip() -> list[Scored]:
    cases = [case(family, s) for family in ("a", "b", "c", "d") for s in (2048, 4096, 8192)]
    return [measured(one, score(slower(one)).projected_s / score(one).projected_s) for one in cases]


def fitted(linear: Linear, d: np.ndarray, name: str) -> float:
    place = [one.name for one in linear.parameters].index(name)
    return float(np.exp(d[place]))


def test_a_chip_that_sustains_less_is_found_out_by_its_runs() -> None:
    scored = runs_of_a_slower_chip()
    linear = training_linear(scored, PARAMETERS)
    d = linear.fitted(np.ones(len(scored), dtype=np.bool_), row_weights(scored))
    assert fitted(linear, d, SUSTAINED) < 0.9
    assert np.abs(linear.projected(d) / linear.measured_s - 1).mean() < 0.07
    assert np.abs(linear.projected_s / linear.measured_s - 1).mean() > 0.1


def test_without_runs_of_its_own_a_parameter_goes_to_its_prior() -> None:
    scored = runs(a=1.0, b=1.0)
    linear = training_linear(scored, PARAMETERS)
    d = linear.fitted(np.zeros(len(scored), dtype=np.bool_), row_weights(scored))
    assert np.exp(d) * linear.present == pytest.approx([one.prior for one in linear.parameters], rel=1e-3)


def test_a_group_is_projected_with_what_the_others_say() -> None:
    scored = runs(a=1.3, b=1.3, c=1.3, odd=1.0)
    linear = training_linear(scored, PARAMETERS)
    factor = held_out(linear, [one.case.row.group for one in scored], row_weights(scored))
    odd = np.array([one.case.row.family == "odd" for one in scored])
    assert factor[~odd].mean() > 1.05
    assert factor[odd].mean() > factor[~odd].mean()


def test_the_linear_form_is_near_the_projections_themselves() -> None:
    scored = runs_of_a_slower_chip()
    linear = training_linear(scored, PARAMETERS)
    d = linear.fitted(np.ones(len(scored), dtype=np.bool_), row_weights(scored))
    again = score_all(moved([one.case for one in scored], linear, d))
    seconds = [one.projected_s for one in again if isinstance(one, Scored)]
    assert seconds == pytest.approx(linear.projected(d), rel=0.02)


def test_no_parameter_belongs_to_a_model_a_row_or_a_source() -> None:
    assert {one.owner for one in PARAMETERS} == {"chip", "software"}
    assert len({one.name for one in PARAMETERS}) == len(PARAMETERS)
    for one in PARAMETERS:
        assert one.low <= one.prior <= one.high
        assert one.basis


def test_the_report_prints_folds_parameters_checks_and_intervals() -> None:
    found = folds(runs(a=1.2, b=1.2))
    names = [one.name for one in found.figures]
    assert names == ["as projected", "fitted on all rows", "own (family, chip) group left out", "own source left out"]
    assert found.figures[1].errors.mape < found.figures[0].errors.mape
    assert SUSTAINED in {one.name for one in found.parameters}
    assert {one.rows for one in found.parameters if one.name == SUSTAINED} == {6}
    assert {one.group for one in found.checks} == {"a|h100-sxm", "b|h100-sxm"}
    assert sum(one.runs for one in found.intervals) == 6
    own = [one for one in found.constants if one.owner == "h100-sxm"]
    assert {"gemm_efficiency_frac", "hbm_efficiency_frac", "kernel_launch_s"} <= {one.name for one in own}
    assert set(found.sources) == {"h100-sxm"}
