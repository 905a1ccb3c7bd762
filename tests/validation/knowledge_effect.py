"""What the knowledge base changes: ten jobs planned with and without it, and which notes none of them retrieves.

    python -m tests.validation.knowledge_effect [FOLDER]

With a folder the jobs are its traces that can be planned, and the two synthetic profiles. Otherwise:
Three jobs are a trace, or a trace with a request; two of these traces are the synthetic profiles of the tests. The
others are requests with a layout that runs. "Evaluated" names the cited notes whose inequality was evaluated for a plan
of the answer: where plans or their order are others without knowledge, these are what changed them.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.advisors.rules import RulesAdvisor
from agents.findings import PlanResult, Proposal
from agents.planning.graph import run_plan
from agents.planning.state import HardwareKind, Knowledge, NoKnowledge
from agents.request import PlanRequest
from knowledge_base.embed import MiniLmEmbedder
from knowledge_base.index import open_knowledge_base
from knowledge_base.note import NOTES_FOLDER, read_notes
from knowledge_base.past import PastMatch, PastQuestion
from knowledge_base.retrieve import KnowledgeBase, RetrievedNote
from projector.errors import ShardwiseError
from projector.specs.bottleneck import Cause
from projector.specs.plan import Phase
from traces.summary import read_summary

TESTS = Path(__file__).parents[1]
sys.path.append(str(TESTS / "unit" / "xplane"))
B200 = TESTS / "data" / "traces" / "b200_vllm_eager.json.gz"


@dataclass(frozen=True)
class Example:
    """A job: a request, and a trace file or the published case whose synthetic profile stands in for one."""

    name: str
    request: dict[str, Any] = field(default_factory=dict)
    trace: Path | None = None
    case: str | None = None


def training(model: str, chip: str, chips: int, batch: int, length: int, **plan: object) -> dict[str, Any]:
    """A training request with the layout that runs."""
    return {
        "workload": {"model": model, "phase": "training", "seq_len": length, "global_batch": batch},
        "cluster": {"chip": chip, "chips": chips},
        "current_plan": {"phase": "training", **plan},
    }


def serving(model: str, chip: str, chips: int, concurrency: int, **plan: object) -> dict[str, Any]:
    """A serving request with the engine that runs."""
    sizes = {"input_len": 1024, "output_len": 256, "concurrency": concurrency}
    return {
        "workload": {"model": model, "phase": "serving", **sizes},
        "cluster": {"chip": chip, "chips": chips},
        "current_plan": {"phase": "serving", **plan},
    }


EXAMPLES = (
    Example("b200 trace, eager", trace=B200),
    Example(
        "C2 profile, 8B on 16 v6e",
        training("llama-3.1-8b", "tpu-v6e", 16, 64, 8192, dp=4, cp=4, grad_accum=16, recompute="full"),
        case="C2",
    ),
    Example(
        "C3 profile, 8B on 256 v5e",
        training("llama-3.1-8b", "tpu-v5e", 256, 64, 8192, dp=16, fsdp=16, zero_stage=3, cp=4, tp=4, grad_accum=4),
        case="C3",
    ),
    Example(
        "70B on 64 H100",
        training("llama-3.1-70b", "h100-sxm", 64, 256, 8192, dp=8, fsdp=8, zero_stage=3, tp=8, sp=True, grad_accum=32),
    ),
    Example(
        "8B on 64 H100, full sharding",
        training("llama-3.1-8b", "h100-sxm", 64, 256, 4096, dp=64, fsdp=64, zero_stage=3, grad_accum=4),
    ),
    Example(
        "8B at 128k on 64 H100",
        training(
            "llama-3.1-8b", "h100-sxm", 64, 32, 131072, dp=2, tp=4, sp=True, cp=8, grad_accum=16, recompute="full"
        ),
    ),
    Example(
        "405B on 512 H100",
        training(
            "llama-3.1-405b", "h100-sxm", 512, 512, 8192, dp=4, tp=8, sp=True, pp=16, grad_accum=128, recompute="full"
        ),
    ),
    Example(
        "70B on 256 v5p",
        training(
            "llama-3.1-70b", "tpu-v5p", 256, 512, 8192, dp=16, fsdp=16, zero_stage=3, tp=16, sp=True, grad_accum=32
        ),
    ),
    Example("70B served on 8 H100", serving("llama-3.1-70b", "h100-sxm", 8, 256, tp=8, max_num_seqs=64)),
    Example("mixture served on 8 H100", serving("gpt-oss-120b", "h100-sxm", 8, 512, tp=8, max_num_seqs=64)),
)


class Recorded:
    """A knowledge base that counts which notes it gave."""

    def __init__(self, inner: KnowledgeBase) -> None:
        self._inner = inner
        self.given: Counter[str] = Counter()

    def search(
        self,
        query: str,
        *,
        phase: Phase,
        causes: Sequence[Cause] = (),
        levers: Sequence[str] = (),
        hardware_kind: HardwareKind | None = None,
        k: int = 3,
    ) -> tuple[RetrievedNote, ...]:
        """As the inner one."""
        found = self._inner.search(query, phase=phase, causes=causes, levers=levers, hardware_kind=hardware_kind, k=k)
        self.given.update(note.note_id for note in found)
        return found

    def past(self, question: PastQuestion, *, k: int = 5) -> tuple[PastMatch, ...]:
        """As the inner one."""
        return self._inner.past(question, k=k)


def planned(example: Example, folder: Path, knowledge: Knowledge) -> PlanResult:
    """The answer to one job."""
    path = example.trace
    if example.case is not None:
        from published_cases import profile

        path = folder / f"{example.case}.xplane.pb"
        path.write_bytes(profile(example.case))
    summary = read_summary([path]) if path is not None else None
    request = PlanRequest.model_validate(example.request)
    return run_plan(request, summary, knowledge=knowledge, advisor=RulesAdvisor())


def decisive(proposal: Proposal, result: PlanResult) -> list[str]:
    """Cited notes whose inequality stands as evidence of some plan."""
    judged = {entry.ref.removeprefix("note.") for entry in result.evidence if entry.ref.startswith("note.")}
    return [citation.note_id for citation in proposal.citations if citation.chunk_id in judged]


def lines_of(example: Example, on: PlanResult, off: PlanResult) -> Iterator[str]:
    """The comparison of one job in Markdown."""
    plans_on = [proposal.plan for proposal in on.proposals]
    plans_off = [proposal.plan for proposal in off.proposals]
    effect = "same"
    if plans_on != plans_off:
        same_plans = sorted(map(repr, plans_on)) == sorted(map(repr, plans_off))
        effect = "another order" if same_plans else "other plans"
    doubt = ", ambiguous" if on.diagnosis.ambiguous else ""
    yield f"\n### {example.name}: {on.diagnosis.bottleneck} ({on.diagnosis.cause}{doubt}): {effect}"
    for place, proposal in enumerate(on.proposals):
        without = off.proposals[place].title if place < len(off.proposals) else "-"
        moved = place >= len(plans_off) or plans_off[place] != proposal.plan
        cited = ", ".join(citation.note_id for citation in proposal.citations) or "nothing"
        yield f"{place + 1}. with: {proposal.title}\n   without: {without if moved else 'the same'}\n   cites {cited}"
        if notes := decisive(proposal, on):
            yield f"   evaluated: {', '.join(notes)}"


def traces_below(root: Path) -> Iterator[Example]:
    """The traces of a folder that get proposals on their own."""
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        example = Example(str(path.relative_to(root)), trace=path)
        try:
            result = planned(example, root, NoKnowledge())
        except ShardwiseError:
            continue
        if result.proposals:
            yield example


def main(examples: Sequence[Example]) -> None:
    """Print the comparison, then the notes nothing retrieved."""
    changed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        base, report = open_knowledge_base(folder / "store", MiniLmEmbedder())
        with base:
            knowledge = Recorded(base)
            for example in examples:
                on, off = planned(example, folder, knowledge), planned(example, folder, NoKnowledge())
                changed += [entry.plan for entry in on.proposals] != [entry.plan for entry in off.proposals]
                print("\n".join(lines_of(example, on, off)), flush=True)
    never = [note.id for note in read_notes(NOTES_FOLDER) if note.id not in knowledge.given]
    print(f"\n{changed} of {len(examples)} answers have other plans, or another order, without knowledge.")
    print(f"{len(never)} of {report.notes} notes were never retrieved: {', '.join(never)}")


if __name__ == "__main__":
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    main(EXAMPLES if root is None else (*traces_below(root), *EXAMPLES[1:3]))
