"""The showcased cases of PROMPTS (MLSys 2026) through the planning graph: `python -m tests.validation.paper_cases`.

Each comes as an XLA profile made of its published figures; C4 moves to another topology and, as a memory question, has
a stand-in model whose activations fill the chip, for the paper names none. A case is told what its transcript tells:
chip, topology, sizes, mesh. The adopted mesh is read after the answer is there, to find its place.
"""

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "unit" / "xplane"))

from published_cases import profile, published

from agents.advisors.rules import RulesAdvisor
from agents.findings import PlanResult, Proposal
from agents.planning.graph import run_plan
from agents.planning.state import NoKnowledge
from agents.request import PlanRequest
from traces.summary import read_summary
from traces.summary_types import TraceSummary

CASES = ("C1", "C2", "C3", "C4", "A5")
# what its engineers left alone on purpose (section 3.3): recompute and compiler flags; and no sharding is told of
LEFT_ALONE = {"recompute": "none", "overlap_tp": False, "fsdp": 1, "zero_stage": 0}
# 8.03B parameters over 262,144 tokens: the state of the source mesh fits a v6e, twice its activations do not
STAND_IN = {"model": "llama-3.1-8b", "seq_len": 262_144}


@dataclass(frozen=True)
class Outcome:
    """One case: the answer, and where the adopted mesh stands in it (None: not among the three, or none published)."""

    case: str
    result: PlanResult
    adopted: Mapping[str, int] | None

    @property
    def rank(self) -> int | None:
        """Place of the adopted mesh."""
        if self.adopted is None:
            return None
        return next((one.rank for one in self.result.proposals if is_mesh(one, self.adopted)), None)


def is_mesh(proposal: Proposal, mesh: Mapping[str, int]) -> bool:
    """Whether a proposal has these degrees; replica and data are one axis where weights are whole on both."""
    plan = proposal.plan
    asked = (mesh.get("replica", 1) * mesh.get("data", 1), mesh.get("seq", 1), mesh.get("model", 1))
    return (plan.dp, plan.cp, plan.tp) == asked and plan.pp == plan.ep == 1


def request_of(case: str) -> dict[str, Any]:
    """What the transcript of a case tells: nothing of the answer."""
    facts = published(case)
    cluster: dict[str, Any] = {"chip": facts["chip"], "chips": facts["chips"]}
    if case == "A5":
        workload = {"phase": "serving", "model": "qwen3-32b"}
        return {
            "workload": workload,
            "cluster": {"chip": facts["chip"], "chips": 1},
            "current_mesh": facts["observed_axes"],
        }
    if case == "C4":
        cluster["topology"] = facts["topology"]
        workload = {"phase": "training", "global_batch": facts["batch_size"], **STAND_IN}
        # its trainer takes a step's batch at once and keeps the activations of a sequence whole on its model ranks
        fixed = {"pp": 1, "recompute": "none", "sp": False, "grad_accum": 1}
        return {"workload": workload, "cluster": cluster, "constraints": {"fixed": fixed}}
    sizes = {"seq_len": facts["seq_len"], "global_batch": facts["batch_size"]}
    workload = {"phase": "training"} | {name: size for name, size in sizes.items() if size is not None}
    return {
        "workload": workload,
        "cluster": cluster,
        "current_mesh": facts["baseline_mesh"],
        "constraints": {"fixed": LEFT_ALONE},
    }


@cache
def summary_of_case(case: str) -> TraceSummary:
    """The profile of a case as the analyzer gets it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{case}.xplane.pb"
        path.write_bytes(profile(case))
        return read_summary([path])


def answer(case: str, request: Mapping[str, Any] | None = None, summary: TraceSummary | None = None) -> Outcome:
    """One case, or a variation of it."""
    asked = PlanRequest.model_validate(dict(request if request is not None else request_of(case)))
    seen = summary if summary is not None else summary_of_case(case)
    result = run_plan(asked, seen, knowledge=NoKnowledge(), advisor=RulesAdvisor())
    return Outcome(case, result, published(case).get("adopted_mesh"))


def with_all_times(summary: TraceSummary, factor: int) -> TraceSummary:
    """The same profile of a machine so many times slower: every duration and every stamp times the factor."""
    return TraceSummary.model_validate(_times(summary.model_dump(mode="json"), factor))


def _times(value: Any, factor: int) -> Any:
    if isinstance(value, dict):
        return {
            key: inner * factor if key.endswith("_ns") and isinstance(inner, int | float) else _times(inner, factor)
            for key, inner in value.items()
        }
    return [_times(inner, factor) for inner in value] if isinstance(value, list) else value


def deciding_term(outcome: Outcome) -> str:
    """The term of the step that moves most between the current plan and the adopted one, in its own seconds."""
    current, rank = outcome.result.current, outcome.rank
    if current is None or rank is None:
        return "-"
    after = outcome.result.proposals[rank - 1].projections[0].breakdown
    axes = {time.axis: time.exposed_s for time in current.breakdown.by_axis}
    moved = {f"{time.axis} traffic": time.exposed_s - axes.get(time.axis, 0.0) for time in after.by_axis}
    moved |= {f"{axis} traffic": -seconds for axis, seconds in axes.items() if f"{axis} traffic" not in moved}
    moved["compute"] = after.compute_s - current.breakdown.compute_s
    moved["idle"] = after.idle_s - current.breakdown.idle_s
    term = max(moved, key=lambda name: abs(moved[name]))
    return f"{term} {moved[term] / current.step_time_s:+.1%} of the step"


def main() -> None:
    """One line a case, and its proposals."""
    for case in CASES:
        outcome = answer(case)
        facts, result = published(case), outcome.result
        print(
            f"{case}: class {result.diagnosis.bottleneck} ({result.diagnosis.cause}), published "
            f"{facts['expected_class']}; hypothesis {result.diagnosis.hypothesis}, overturned "
            f"{result.diagnosis.overturned}; adopted mesh at {outcome.rank} of {len(result.proposals)}; "
            f"deciding: {deciding_term(outcome)}"
        )
        for one in result.proposals:
            mesh = one.mesh.model_dump() if one.mesh is not None else None
            print(f"  {one.rank}. {one.title}: {mesh}")
        for miss in result.near_misses:
            print(f"  refused: {miss.plan.mesh()}: {'; '.join(rejection.text for rejection in miss.rejections)}")


if __name__ == "__main__":
    main()
