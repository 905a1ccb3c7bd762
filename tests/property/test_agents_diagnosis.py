"""Properties of a diagnosis over random windows."""

import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).parents[1] / "unit" / "agents"))

from planning_examples import scaled, summary_of, sure

from agents.findings import Diagnosis
from agents.planning.analyzer import diagnose
from projector.specs.bottleneck import BOTTLENECK_OF
from traces.summary_types import Implied, ModelShapes, TraceSummary

KINDS = ("gemm", "attention", "norm", "elementwise", "moe", "optimizer", "other")
AXES = ("tp", "dp", "fsdp", "pp", "cp", "ep", "unknown")


@st.composite
def summaries(draw: st.DrawFn) -> TraceSummary:
    """Any window whose parts sum to it, with any mix of kernels, axes and implied facts."""
    compute, exposed, copies, idle = (draw(st.integers(0, 400)) for _ in range(4))
    kinds = draw(st.dictionaries(st.sampled_from(KINDS), st.integers(1, 500), max_size=5)) if compute else {}
    axes = draw(st.lists(st.tuples(st.sampled_from(AXES), st.integers(0, 300)), max_size=4)) if exposed else []
    implied = Implied(
        chip_name=draw(st.none() | st.sampled_from(["NVIDIA B200", "AMD Radeon Graphics"]).map(sure)),
        phase=draw(st.none() | st.sampled_from(["training", "serving"]).map(sure)),
        pp=draw(st.none() | st.sampled_from([1, 4]).map(sure)),
        shapes=ModelShapes(tokens=draw(st.none() | st.integers(1, 10_000))),
    )
    return summary_of(
        compute_ms=compute,
        exposed_ms=exposed,
        communication_ms=exposed + draw(st.integers(0, compute)),
        copy_ms=copies,
        unclassified_ms=draw(st.integers(0, compute)),
        window_ms=compute + exposed + copies + idle,
        kinds=kinds,
        collectives=axes,
        launch_bound_frac=draw(st.none() | st.floats(0, 1)),
        kernels=draw(st.integers(0, 100)),
        implied=implied,
        ranks=draw(st.lists(st.tuples(st.integers(0, compute), st.integers(0, exposed)), max_size=3)),
    )


def without_durations(diagnosis: Diagnosis) -> Diagnosis:
    """All but the evidence that states how long the window is."""
    kept = tuple(entry for entry in diagnosis.evidence if entry.id != "ev-window")
    return diagnosis.model_copy(update={"evidence": kept})


@given(summaries(), st.integers(2, 1000))
def test_scaling_all_times_changes_nothing(summary, factor):
    assert without_durations(diagnose(scaled(summary, factor))) == without_durations(diagnose(summary))


@given(summaries())
def test_every_summary_gets_a_consistent_diagnosis(summary):
    diagnosis = diagnose(summary)
    shares = diagnosis.shares
    assert abs(shares.compute + shares.exposed_communication + shares.exposed_copy + shares.idle - 1) < 1e-9
    assert diagnosis.bottleneck == BOTTLENECK_OF[diagnosis.cause]
    assert diagnosis.overturned == (diagnosis.hypothesis != diagnosis.bottleneck)
    assert set(diagnosis.scores) == {"compute", "memory", "communication"}
    assert diagnose(summary) == diagnosis


@given(summaries(), st.randoms(use_true_random=False))
def test_the_order_of_what_was_recorded_changes_nothing(summary, chance):
    def shuffled(entries):
        return tuple(chance.sample(entries, len(entries)))

    fields = ("collectives", "kernel_classes", "ranks")
    other = summary.model_copy(update={name: shuffled(getattr(summary, name)) for name in fields})
    before, after = diagnose(summary), diagnose(other)
    assert (before.bottleneck, before.cause, before.ambiguous) == (after.bottleneck, after.cause, after.ambiguous)
    assert sorted(one.name for one in before.categories) == sorted(one.name for one in after.categories)
    for one, same in zip(before.headroom, after.headroom, strict=True):
        assert abs((one.gain_frac or 0) - (same.gain_frac or 0)) < 1e-9


@given(summaries())
def test_categories_lie_in_the_window_and_no_bound_exceeds_it(summary):
    diagnosis = diagnose(summary)
    assert sum(one.share_frac for one in diagnosis.categories) < 1 + 1e-9
    by_name = {one.name: one for one in diagnosis.headroom if one.scope == "class"}
    assert set(by_name) == {"compute", "memory", "communication", "waiting"}
    assert by_name["communication"].gain_frac <= diagnosis.shares.exposed_communication + 1e-9
    assert all(one.gain_frac is None or (one.gain_frac == 0) == one.below_noise for one in diagnosis.headroom)


@given(summaries(), st.integers(1, 10))
def test_more_hidden_communication_changes_no_verdict(summary, extra):
    hidden = summary.model_copy(update={"communication_ns": summary.communication_ns + extra * summary.compute_ns})
    before, after = diagnose(summary), diagnose(hidden)
    assert (before.bottleneck, before.cause, before.scores) == (after.bottleneck, after.cause, after.scores)


@given(summaries())
def test_no_roofline_for_a_chip_that_is_not_in_the_catalogue(summary):
    claims = [entry for entry in diagnose(summary).evidence if entry.id == "ev-roofline"]
    name = summary.implied.chip_name
    assert not claims or (name is not None and name.value == "NVIDIA B200")
