"""A run that stopped between two nodes goes on from its stored state to the same answer."""

import json
from pathlib import Path

import pytest

from agents.advisors.rules import RulesAdvisor
from agents.findings import PlanResult
from agents.planning.graph import resume_plan, run_plan
from agents.planning.state import NoKnowledge, PlanContext, PlanEvent, PlanState
from agents.request import PlanRequest
from traces.summary import read_summary
from traces.summary_types import TraceSummary

TRACE = Path(__file__).parents[2] / "data" / "traces" / "b200_vllm_eager.json.gz"
REQUEST = PlanRequest()


class Interrupted(Exception):
    """The process ends here."""


@pytest.fixture(scope="module")
def summary() -> TraceSummary:
    return read_summary([TRACE])


@pytest.fixture(scope="module")
def whole(summary) -> PlanResult:
    return run_plan(REQUEST, summary, knowledge=NoKnowledge(), advisor=RulesAdvisor())


@pytest.mark.parametrize(("stop_at", "left"), [("proposal", ["proposal", "scoring"]), ("scoring", ["scoring"])])
def test_an_interrupted_run_is_resumed_from_plain_json_to_the_same_bytes(summary, whole, stop_at, left):
    stored: list[str] = []

    def stop(event: PlanEvent) -> None:
        if event.node == stop_at:
            raise Interrupted

    def store(state: PlanState) -> None:
        stored.append(json.dumps(state, allow_nan=False))

    with pytest.raises(Interrupted):
        run_plan(REQUEST, summary, knowledge=NoKnowledge(), advisor=RulesAdvisor(), on_event=stop, on_state=store)
    ran: list[str] = []
    context = PlanContext(NoKnowledge(), RulesAdvisor(), lambda event: ran.append(event.node))
    resumed = resume_plan(json.loads(stored[-1]), context)
    assert list(dict.fromkeys(ran)) == left
    assert resumed.model_dump_json(round_trip=True) == whole.model_dump_json(round_trip=True)


def test_a_graph_library_can_keep_the_state_itself(summary, whole):
    """Its in-memory checkpointer stands for any: the state of every node is plain JSON."""
    from langgraph.checkpoint.memory import InMemorySaver

    from agents.planning.graph import graph_of

    stopped = graph_of(InMemorySaver(), interrupt_before=["proposal"])
    thread = {"configurable": {"thread_id": "one"}}
    context = PlanContext(NoKnowledge(), RulesAdvisor())
    start = {"request": {}, "summary": summary.model_dump(mode="json", round_trip=True)}
    assert "proposed" not in stopped.invoke(start, config=thread, context=context)
    final = stopped.invoke(None, config=thread, context=context)
    assert PlanResult.model_validate(final["result"]) == whole
