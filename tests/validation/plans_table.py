"""One row for each file of a sample folder: its diagnosis, and its proposals or the reason why there are none.

    python -m tests.validation.plans_table [folder]

The folder defaults to $SHARDWISE_SHARED/traces, or ../shared/traces beside the project. Knowledge is left out, so the
table shows what diagnosis and projection decide.
"""

import sys
from collections import Counter
from pathlib import Path

from agents.advisors.rules import RulesAdvisor
from agents.findings import PlanResult
from agents.planning.graph import run_plan
from agents.planning.state import NoKnowledge
from agents.request import PlanRequest
from agents.wording import percent
from projector.errors import ShardwiseError
from tests.validation.traces_table import DEFAULT
from tests.validation.why import cause_of, sequences, why
from traces.summary import read_summary

COLUMNS = (
    "file",
    "class and cause, or typed answer",
    "hypothesis",
    "margin",
    "why",
    "sequences, gain at most",
    "proposals",
    "titles, or why there are none",
)


def outcome_of(path: Path) -> tuple[str, str]:
    """(kind of outcome, table cells)."""
    try:
        summary = read_summary([path])
        result = run_plan(PlanRequest(), summary, knowledge=NoKnowledge(), advisor=RulesAdvisor())
    except ShardwiseError as refusal:
        return type(refusal).__name__, f"{type(refusal).__name__}: {refusal.message} | - | - | - | - | - | -"
    return kind_of(result), " | ".join((*diagnosed(result), str(len(result.proposals)), reason_of(result)))


def diagnosed(result: PlanResult) -> tuple[str, ...]:
    """Class with cause, hypothesis, margin, the two sentences of why, and sequences that cost time."""
    diagnosis = result.diagnosis
    hypothesis = diagnosis.hypothesis + (", overturned" if diagnosis.overturned else "")
    margin = percent(diagnosis.margin) + (", ambiguous" if diagnosis.ambiguous else "")
    cells = (cause_of(diagnosis), hypothesis, margin, " ".join(why(diagnosis)), sequences(diagnosis.evidence))
    return tuple(cell.replace("|", "/") for cell in cells)


def kind_of(result: PlanResult) -> str:
    """'3 proposals', or what stands in their place."""
    if result.not_plannable is not None:
        return "not plannable"
    return f"{len(result.proposals)} proposals"


def reason_of(result: PlanResult) -> str:
    """Why there are fewer than three, or the titles where there are three."""
    return result.not_plannable or result.fewer_because or "; ".join(proposal.title for proposal in result.proposals)


def main(root: Path) -> None:
    """Print the table as Markdown, then the counts."""
    outcomes: Counter[str] = Counter()
    print(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|")
    for path in sorted(path for path in root.rglob("*") if path.is_file() and path.name != "README.md"):
        kind, cells = outcome_of(path)
        outcomes[kind] += 1
        print(f"| {path.relative_to(root)} | {cells} |", flush=True)
    print(f"\n{outcomes.total()} files: {', '.join(f'{count} {kind}' for kind, count in outcomes.most_common())}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT)
