"""The four showcased cases of PROMPTS (MLSys 2026, appendix A.1 to A.4) as windows with their figures.

Times are the published shares; what the paper does not publish (kernels that fill up the step) is given kinds that its
own op tables name. Meshes are those of the paper, never read by any rule.
"""

import pytest
from planning_examples import summary_of, sure

from agents.advisors.rules import RulesAdvisor
from agents.planning.analyzer import diagnose
from agents.planning.graph import run_plan
from agents.planning.state import NoKnowledge
from agents.request import PlanRequest
from projector.search_space import enumerate_meshes
from traces.summary_types import Implied, TraceSummary

TRAINING = Implied(phase=sure("training"), is_transformer_lm=sure(True))


def window(**shares: int) -> TraceSummary:
    """Ten thousandths of the step."""
    return summary_of(window_ms=10_000, implied=TRAINING, **shares)


CASES = {
    # step 35,656 ms, duty 99.73 %, communication 2.57 %, compute-bound ops at 74 to 80 % of the roofline
    "C1": (
        window(compute_ms=9716, exposed_ms=257, kinds={"gemm": 8000, "attention": 1000, "elementwise": 716}),
        "compute",
        "compute",
    ),
    # duty 99.95 %; HBM-bound ops lead the table, collectives among them at 11 % of the bandwidth
    "C2": (
        window(
            compute_ms=9243,
            exposed_ms=752,
            kinds={"elementwise": 5400, "optimizer": 1200, "gemm": 2643},
            collectives=[("dp", 752)],
        ),
        "compute",
        "memory",
    ),
    # duty 100 %, plain all-reduce 5.35 %, while the five costliest ops are all collectives
    "C3": (
        window(
            compute_ms=4000,
            exposed_ms=6000,
            kinds={"gemm": 4000},
            collectives=[("tp", 3600), ("dp", 1400), ("cp", 1000)],
        ),
        "communication",
        "communication",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_class_of_the_case(case):
    summary, hypothesis, bottleneck = CASES[case]
    diagnosis = diagnose(summary)
    assert (diagnosis.hypothesis, diagnosis.bottleneck) == (hypothesis, bottleneck)
    assert diagnosis.overturned == (hypothesis != bottleneck)
    assert diagnosis.evidence


def test_all_collectives_count_not_only_the_all_reduce():
    """C3's headline counts one kind of collective; ours counts every one that nothing hides."""
    diagnosis = diagnose(CASES["C3"][0])
    assert diagnosis.cause == "exposed_tp"
    assert diagnosis.shares.exposed_communication == pytest.approx(0.6)


def test_c4_an_idle_device_is_not_called_busy():
    """C4: duty 14.42 %, and its published class is memory for a capacity reason that no share shows."""
    diagnosis = diagnose(window(compute_ms=1330, exposed_ms=112, kinds={"attention": 1330}))
    assert diagnosis.cause == "host_idle"
    assert diagnosis.shares.idle == pytest.approx(0.8558)


@pytest.mark.parametrize(
    ("devices", "axes", "count"),
    [
        (256, ("replica", "data", "seq", "model"), 165),
        (512, ("data", "seq", "model"), 55),
        (16, ("replica", "data", "seq", "model"), 35),
        (128, ("data", "seq", "model"), 36),
        (2, ("data", "seq", "model"), 3),
    ],
)
def test_the_published_spaces_are_enumerated_in_full(devices, axes, count):
    assert len(enumerate_meshes(devices, axes)) == count


def test_an_activation_heavy_model_never_gets_a_plan_that_does_not_fit():
    """C4's mistake: two of three published proposals ran out of memory. Capacity is a gate that stands before speed."""
    request = PlanRequest.model_validate(
        {
            "workload": {"model": "llama-3.1-8b", "phase": "training", "seq_len": 65536, "global_batch": 32},
            "cluster": {"chip": "tpu-v6e", "chips": 128},
        }
    )
    result = run_plan(request, None, knowledge=NoKnowledge(), advisor=RulesAdvisor())
    assert len(result.proposals) == 3
    assert {proposal.projections[0].fit for proposal in result.proposals} == {"fits"}
    assert result.candidates_feasible < result.candidates_considered
