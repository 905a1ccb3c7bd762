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
from projector.errors import ShardwiseError
from tests.validation.traces_table import DEFAULT
from traces.summary import read_summary


def outcome_of(path: Path) -> tuple[str, str]:
    """(kind of outcome, table cells)."""
    try:
        summary = read_summary([path])
        result = run_plan(PlanRequest(), summary, knowledge=NoKnowledge(), advisor=RulesAdvisor())
    except ShardwiseError as refusal:
        return type(refusal).__name__, f"{type(refusal).__name__}: {refusal.message} | - | -"
    diagnosis = result.diagnosis
    doubt = ", ambiguous" if diagnosis.ambiguous else ""
    told = f"{diagnosis.bottleneck} ({diagnosis.cause}), margin {diagnosis.margin:.2f}{doubt}"
    return kind_of(result), f"{told} | {len(result.proposals)} | {reason_of(result)}"


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
    print("| file | diagnosis, or typed answer | proposals | titles, or why there are none |\n|---|---|---|---|")
    for path in sorted(path for path in root.rglob("*") if path.is_file() and path.name != "README.md"):
        kind, cells = outcome_of(path)
        outcomes[kind] += 1
        print(f"| {path.relative_to(root)} | {cells} |", flush=True)
    print(f"\n{outcomes.total()} files: {', '.join(f'{count} {kind}' for kind, count in outcomes.most_common())}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT)
