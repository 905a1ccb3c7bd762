"""`shardwise history`: past optimisations; list and search them, record an outcome, take one back."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from app.commands.files import content_of, print_document, say

if TYPE_CHECKING:
    from app.outcomes import OutcomeShelf
    from app.schemas_history import RecordedOutcome
    from app.settings import Settings

HELP = "past optimisations: list and search them, record an outcome, take one back"
MOST_LINES = 1_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """ACTION with its own arguments; --json."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="cases that pass filters", description="cases that pass every filter")
    for name, meaning in (
        ("kind", "published or change"),
        ("origin", "bundled or user"),
        ("phase", "training or serving"),
        ("model", "name or family of the model"),
        ("chip", "id or alias of the chip"),
        ("lever", "what was moved"),
        ("cause", "the cause it was against"),
        ("outcome", "improved, worse, neutral or unknown"),
    ):
        listing.add_argument(f"--{name}", help=meaning)
    listing.add_argument("--limit", type=int, default=20, help="cases at most (default 20)")
    listing.add_argument("--summary", action="store_true", help="only count them")
    show = actions.add_parser("show", help="one case", description="one case with its figures and its source")
    show.add_argument("id", metavar="ID")
    search = actions.add_parser(
        "search", help="cases nearest to a job", description="the cases nearest to a job, exact matches first"
    )
    search.add_argument("--phase", default="training", help="training or serving (default: training)")
    search.add_argument("--model", help="name of the model; the catalogue's numbers are compared")
    search.add_argument("--chip", help="id or alias of the chip")
    for name in ("chips", "seq-len", "global-batch", "input-len", "output-len", "concurrency"):
        search.add_argument(f"--{name}", type=int, metavar="N")
    search.add_argument("--precision", help="of the matrix products, as bf16 or fp8")
    search.add_argument("--cause", help="the diagnosed cause")
    search.add_argument("--words", help="what is seen, in words; finds changes against it")
    search.add_argument("-k", type=int, default=5, help="cases at most (default 5)")
    add = actions.add_parser(
        "add",
        help="record outcomes",
        description="check and record outcomes: one JSON object, or one a line; the next plan sees them",
    )
    add.add_argument("outcome", type=Path, metavar="FILE", help="JSON, - for stdin")
    remove = actions.add_parser("remove", help="take back an outcome", description="take back a recorded outcome")
    remove.add_argument("id", metavar="ID")
    for action in (listing, show, search, add, remove):
        action.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Do the action."""
    from app.outcomes import OutcomeShelf
    from app.settings import load_settings
    from knowledge_base.history_files import HistoryFolder

    settings = load_settings()
    shelf = OutcomeShelf(HistoryFolder(settings.history_dir))
    actions = {"list": _list, "show": _show, "search": _search, "add": _add, "remove": _remove}
    actions[arguments.action](arguments, shelf, settings)
    return 0


def _list(arguments: argparse.Namespace, shelf: "OutcomeShelf", _settings: "Settings") -> None:
    from app.history import MOST_LISTED, filter_of, listed, summary_of
    from app.history_tables import show_listed, show_summary
    from app.schemas_history import HistoryFilter
    from projector.errors import InvalidDescription

    if arguments.summary:
        summary = summary_of(shelf.history())
        print_document(summary) if arguments.json else show_summary(summary)
        return
    if not 1 <= arguments.limit <= MOST_LISTED:
        raise InvalidDescription(f"--limit {arguments.limit} is not within 1 to {MOST_LISTED}")
    wanted = filter_of({name: getattr(arguments, name) for name in HistoryFilter.model_fields})
    answer = listed(shelf.history(), wanted, arguments.limit)
    print_document(answer) if arguments.json else show_listed(answer)


def _show(arguments: argparse.Namespace, shelf: "OutcomeShelf", _settings: "Settings") -> None:
    from app.history_tables import show_case
    from app.schemas_history import CaseAnswer

    answer = CaseAnswer.of(shelf.get(arguments.id))
    print_document(answer) if arguments.json else show_case(answer)


def _search(arguments: argparse.Namespace, shelf: "OutcomeShelf", settings: "Settings") -> None:
    from app.history import question_of
    from app.history_tables import show_matches
    from app.schemas_history import HistoryMatches
    from app.wiring import command_knowledge

    names = ("phase", "model", "chip", "chips", "seq_len", "global_batch", "input_len", "output_len", "concurrency")
    question = question_of({name: getattr(arguments, name) for name in (*names, "precision", "cause", "words")})
    if question.words.strip():
        with command_knowledge(settings, say) as knowledge:
            answer = HistoryMatches(matches=knowledge().get().past(question, k=arguments.k))
    else:
        answer = HistoryMatches(matches=shelf.history().past(question, k=arguments.k))
    print_document(answer) if arguments.json else show_matches(answer.matches)


def _add(arguments: argparse.Namespace, shelf: "OutcomeShelf", settings: "Settings") -> None:
    from app.clock import utc_now
    from app.history import keep
    from app.history_tables import show_outcome_added
    from app.recording import case_of
    from app.schemas_history import OutcomesAdded
    from app.stored_plans import stored_plan

    checked = []
    for outcome in _outcomes(arguments.outcome):
        stored = stored_plan(settings, outcome.plan_id) if outcome.plan_id is not None else None
        checked.append(case_of(outcome, utc_now(), stored))
    added = []
    for case, note in checked:
        added.append(keep(shelf, case, note))
        if not arguments.json:
            show_outcome_added(added[-1])
    if arguments.json:
        print_document(OutcomesAdded(added=tuple(added)))


def _remove(arguments: argparse.Namespace, shelf: "OutcomeShelf", _settings: "Settings") -> None:
    from app.schemas_history import OutcomeRemoved

    shelf.remove(arguments.id)
    if arguments.json:
        print_document(OutcomeRemoved(id=arguments.id))
    else:
        say(f"removed {arguments.id}")


def _outcomes(path: Path) -> "list[RecordedOutcome]":
    """The outcomes of a file."""
    from app.errors import RequestTooLarge
    from app.schemas_history import RecordedOutcome
    from app.validation import parse
    from knowledge_base.history_files import MAX_OUTCOME_BYTES

    limit = MAX_OUTCOME_BYTES * MOST_LINES
    content = content_of(path, limit + 1)
    if len(content) > limit:
        raise RequestTooLarge(f"more than {limit} bytes of outcomes", hint="record them in parts")
    lines = [line for line in content.split(b"\n") if line.strip()]
    one_a_line = len(lines) > 1 and all(line.lstrip().startswith(b"{") for line in lines) and _closed(lines)
    return [parse(RecordedOutcome, text) for text in (lines if one_a_line else [content])]


def _closed(lines: list[bytes]) -> bool:
    """Whether every line is an object of its own, not a part of one that spans lines."""
    return all(line.rstrip().endswith(b"}") for line in lines)
