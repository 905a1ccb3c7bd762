"""`shardwise audit`: what a run asked, was told and answered, and whether it gives the same answer again."""

import argparse
from pathlib import Path
from uuid import UUID

from app.commands.files import print_document
from projector.errors import InvalidDescription

HELP = "show, check and replay recorded runs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """list | show ID | replay ID | check, each with --data-dir and --json."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, text in (
        ("list", "every recorded run, oldest first"),
        ("show", "every record of one run"),
        ("replay", "run it again from its record and compare the answers"),
        ("check", "whether the log was tampered with"),
    ):
        action = actions.add_parser(name, help=text, description=text)
        if name in ("show", "replay"):
            action.add_argument("id", metavar="ID", help="id of the plan")
        action.add_argument("--data-dir", type=Path, help="folder of all state (default ./.shardwise)")
        action.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Exit code 1 where a replay gives another answer or the chain is broken."""
    from app.replay import replay
    from app.schemas_audit import AuditAnswer, AuditList
    from app.settings import load_settings
    from app.tables_audit import show_check, show_records, show_replay, show_runs
    from app.wiring import audit_of

    log = audit_of(load_settings(data_dir=arguments.data_dir, audit=True))
    assert log is not None
    if arguments.action == "list":
        runs = AuditList(runs=tuple(log.runs()))
        print_document(runs) if arguments.json else show_runs(runs.runs)
        return 0
    if arguments.action == "check":
        check = log.check()
        print_document(check) if arguments.json else show_check(check)
        return 0 if check.unbroken else 1
    run_id = _uuid(arguments.id)
    if arguments.action == "show":
        answer = AuditAnswer(id=run_id, records=log.records(run_id))
        print_document(answer) if arguments.json else show_records(answer.records)
        return 0
    replayed = replay(log, run_id)
    print_document(replayed) if arguments.json else show_replay(replayed)
    return 0 if replayed.identical else 1


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidDescription(
            f"{text[:64]!r} is no id of a plan", hint="`shardwise audit list` shows them"
        ) from None
