"""Properties of whole answers over random small requests."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.advisors.protocol import AdvisorChoice, AdvisorInput
from agents.advisors.rules import RulesAdvisor
from agents.advisors.validate import problems_of
from agents.findings import PlanResult
from agents.planning.graph import run_plan
from agents.planning.state import NoKnowledge
from agents.planning.titles import KEEP_TITLE
from agents.request import PlanRequest

MODELS = ("llama-3.1-8b", "qwen3-8b", "gpt-oss-120b")
CHIPS = ("h100-sxm", "tpu-v5p", "b200")


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """A model on a few chips, with or without a current layout, for one of the objectives."""
    chips = draw(st.sampled_from([1, 2, 4, 8]))
    serving = draw(st.booleans())
    sizes = (
        {"phase": "serving", "input_len": 512, "output_len": 128, "concurrency": draw(st.sampled_from([1, 16, 128]))}
        if serving
        else {"phase": "training", "seq_len": 2048, "global_batch": draw(st.sampled_from([8, 32]))}
    )
    body: dict[str, Any] = {
        "workload": {"model": draw(st.sampled_from(MODELS)), **sizes},
        "cluster": {"chip": draw(st.sampled_from(CHIPS)), "chips": chips},
        "objective": draw(
            st.sampled_from(
                [None, "memory_per_chip_gb", *(["itl_ms", "ttft_ms"] if serving else ["step_time_s", "mfu"])]
            )
        ),
    }
    tp = draw(st.sampled_from([degree for degree in (1, 2, 4, 8) if degree <= chips]))
    if draw(st.booleans()):
        body["current_plan"] = {"phase": sizes["phase"], "tp": tp, "dp": chips // tp}
    return body


class Checked(RulesAdvisor):
    """The rules advisor, with its answer put through the validation."""

    def choose(self, question: AdvisorInput, problems: tuple[str, ...] = ()) -> AdvisorChoice:
        choice = super().choose(question, problems)
        assert problems_of(question, choice) == ()
        return choice


def answer(body: dict[str, Any]) -> PlanResult:
    return run_plan(PlanRequest.model_validate(body), None, knowledge=NoKnowledge(), advisor=Checked())


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(requests())
def test_every_answer_keeps_its_promises(body):
    result = answer(body)
    current = result.current.plan if result.current else None
    devices = body["cluster"]["chips"]
    assert len(result.proposals) == 3 or result.fewer_because
    for proposal in result.proposals:
        assert proposal.plan.devices == devices
        assert proposal.projections[0].fit == "fits"
        assert (proposal.title == KEEP_TITLE) == (current is not None and not proposal.changes)
        assert {entry.field for entry in proposal.changes} <= set(type(proposal.plan).model_fields)
    known = {entry.id for entry in result.evidence}
    assert all(set(proposal.evidence) <= known for proposal in result.proposals)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(requests())
def test_an_answer_is_repeatable(body):
    assert answer(body) == answer(body)
