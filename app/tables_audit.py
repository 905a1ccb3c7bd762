"""The audit log for people."""

import json
from collections.abc import Sequence

from app.audit import AuditCheck, AuditRecord
from app.replay import ReplayAnswer
from app.tables_parts import LEFT, RIGHT, bullets, console, heading, paragraph, table
from app.wording import plain

DATA_CHARACTERS = 90


def show_runs(runs: Sequence[AuditRecord]) -> None:
    """`shardwise audit list`."""
    out = console()
    heading(out, f"{len(runs)} recorded runs")
    rows = [(str(run.run), run.at.strftime("%Y-%m-%d %H:%M:%S"), _short(run.data.get("request"))) for run in runs]
    out.print(table(("plan", "UTC", "request"), rows, (LEFT, LEFT, LEFT)))


def show_records(records: Sequence[AuditRecord]) -> None:
    """`shardwise audit show`."""
    out = console()
    heading(out, f"Plan {records[0].run}: {len(records)} records")
    rows = [(str(record.seq), record.at.strftime("%H:%M:%S"), record.kind, _short(record.data)) for record in records]
    out.print(table(("line", "UTC", "kind", "data, cut"), rows, (RIGHT, LEFT, LEFT, LEFT)))
    paragraph(out, "--json shows everything.")


def show_check(check: AuditCheck) -> None:
    """`shardwise audit check`."""
    out = console()
    heading(out, "The audit log is unbroken" if check.unbroken else f"The audit log is broken at {check.broken_at}")
    paragraph(out, f"{check.lines} lines hold{f'; then {check.why}' if check.why else ''}.")


def show_replay(answer: ReplayAnswer) -> None:
    """`shardwise audit replay`."""
    out = console()
    heading(out, "The same answer, byte for byte" if answer.identical else "Another answer than the recorded one")
    paragraph(out, f"recorded {answer.recorded_sha256}")
    paragraph(out, f"replayed {answer.replayed_sha256}")
    paragraph(out, f"{answer.model_calls} recorded questions to a language model")
    bullets(out, "Parts that differ", answer.differing_parts)
    changes = [
        f"{change.name}: {change.recorded or 'none'} -> {change.now or 'none'}" for change in answer.changed_versions
    ]
    bullets(out, "Versions that changed", changes)
    if answer.changed_questions:
        paragraph(out, f"{answer.changed_questions} questions are not those that were recorded")


def _short(data: object) -> str:
    text = plain(json.dumps(data, ensure_ascii=True))
    return text if len(text) <= DATA_CHARACTERS else f"{text[: DATA_CHARACTERS - 1]}…"
