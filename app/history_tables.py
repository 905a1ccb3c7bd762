"""What `shardwise history` prints for people, and the past optimisations of a plan."""

from collections.abc import Sequence

from rich.console import Console

from app.schemas_history import CaseAnswer, HistoryAnswer, HistoryCount, HistorySummary, OutcomeAdded
from app.tables_parts import LEFT, RIGHT, bullet, console, heading, paragraph, section, table
from app.wording import plain, words
from knowledge_base.past import PastMatch

MOST_ROWS = 15


def show_listed(answer: HistoryAnswer) -> None:
    """`shardwise history list`."""
    out = console()
    if not answer.total:
        paragraph(out, "No case passes the filters.")
        return
    heading(out, f"{len(answer.cases)} of {answer.total} cases")
    for entry in answer.cases:
        bullet(out, f"{entry.case.id}: {entry.text}")


def show_summary(summary: HistorySummary) -> None:
    """`shardwise history list --summary`."""
    out = console()
    heading(out, f"{summary.total:,} past cases from {summary.sources:,} sources")
    for title, counts in (
        ("origin", summary.by_origin),
        ("kind", summary.by_kind),
        ("task", summary.by_task),
        ("outcome of changes", summary.by_outcome),
        ("chip", summary.by_chip),
        ("framework", summary.by_framework),
    ):
        section(out, f"By {title}")
        out.print(table((title, "cases"), _rows(counts), (LEFT, RIGHT)))


def show_case(answer: CaseAnswer) -> None:
    """`shardwise history show`."""
    out = console()
    case = answer.case
    heading(out, f"{case.id} [{case.kind}, {case.origin}]")
    paragraph(out, answer.text)
    facts = case.model_dump(mode="json", exclude_none=True, exclude={"id", "kind", "origin", "source", "architecture"})
    rows = [(words(name), plain(_told(value))) for name, value in facts.items() if value not in ("", [], {})]
    out.print(table(("fact", "value"), rows, (LEFT, LEFT)))


def show_matches(matches: Sequence[PastMatch]) -> None:
    """`shardwise history search`."""
    out = console()
    if not matches:
        paragraph(out, "No past case bears on this job.")
    for match in matches:
        heading(out, f"{match.match}, closeness {match.similarity:.2f} [{match.case.id}]")
        paragraph(out, match.case.text)
        for line in remarks(match):
            bullet(out, line)


def show_history(out: Console, matches: Sequence[PastMatch]) -> None:
    """The section of a plan; nothing where no past case bears on it."""
    if not matches:
        return
    section(out, "Past optimisations nearest to this job")
    for match in matches:
        bullet(out, f"{match.match} [{match.case.id}]: {match.case.text}")
        for line in remarks(match):
            paragraph(out, line, indent="      ")


def show_outcome_added(added: OutcomeAdded) -> None:
    """`shardwise history add`."""
    out = console()
    heading(out, f"{'Recorded' if added.created else 'Replaced'} {added.id}")
    paragraph(out, added.case.text)
    if added.note:
        paragraph(out, added.note)


def remarks(match: PastMatch) -> tuple[str, ...]:
    """What a reader must know before taking a past case for this job."""
    lines = []
    if match.differs:
        lines.append(f"differs: {'; '.join(match.differs)}")
    if match.stale:
        lines.append(f"stale: {match.stale}")
    for other in match.contradicts:
        differs = f", which had {'; '.join(other.differs)}" if other.differs else ", with nothing known to differ"
        lines.append(f"contradicted by {other.case_id}{differs}")
    return tuple(lines)


def _rows(counts: Sequence[HistoryCount]) -> list[tuple[str, str]]:
    rows = [(plain(count.value), f"{count.cases:,}") for count in counts[:MOST_ROWS]]
    rest = counts[MOST_ROWS:]
    if rest:
        rows.append((f"{len(rest)} others", f"{sum(count.cases for count in rest):,}"))
    return rows


def _told(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_told(one)}" for name, one in value.items())
    if isinstance(value, list):
        return "; ".join(_told(one) for one in value)
    return str(value)
