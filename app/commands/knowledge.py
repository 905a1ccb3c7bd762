"""`shardwise knowledge`: search the notes, add one, or rebuild the index over them."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from app.commands.files import content_of, print_document, say

if TYPE_CHECKING:
    from app.settings import Settings

HELP = "search the notes, add one, or rebuild the index over them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """ACTION with its own arguments; --json."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    search = actions.add_parser(
        "search", help="the notes nearest to a query", description="the notes nearest to a query"
    )
    search.add_argument("query", nargs="+", metavar="QUERY", help="what is slow, in words")
    search.add_argument("--phase", help="training or serving (default: both)")
    search.add_argument("--cause", action="append", default=[], help="only notes on it; may be repeated")
    search.add_argument("--lever", action="append", default=[], help="only notes on it; may be repeated")
    search.add_argument("--hardware-kind", help="gpu or tpu (default: both)")
    search.add_argument("-k", type=int, default=5, help="notes at most (default 5)")
    add = actions.add_parser("add", help="check, store and index a note", description="check, store and index a note")
    add.add_argument("note", type=Path, metavar="FILE", help="markdown with typed front matter, - for stdin")
    rebuild = actions.add_parser("rebuild", help="embed every note again", description="embed every note again")
    for action in (search, add, rebuild):
        action.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Do the action."""
    from app.settings import load_settings

    actions = {"search": _search, "add": _add, "rebuild": _rebuild}
    actions[arguments.action](arguments, load_settings())
    return 0


def _search(arguments: argparse.Namespace, settings: "Settings") -> None:
    from app.knowledge import search
    from app.knowledge_tables import show_found
    from app.wiring import command_knowledge

    with command_knowledge(settings, say) as knowledge:
        answer = search(
            knowledge().get(),
            " ".join(arguments.query),
            phase=arguments.phase,
            causes=arguments.cause,
            levers=arguments.lever,
            hardware_kind=arguments.hardware_kind,
            k=arguments.k,
        )
    if arguments.json:
        print_document(answer)
    else:
        show_found(answer)


def _add(arguments: argparse.Namespace, settings: "Settings") -> None:
    from app.knowledge import add_note
    from app.knowledge_tables import show_added
    from app.wiring import KnowledgeOwner

    owner = KnowledgeOwner(settings)
    try:
        added = add_note(owner, _text(arguments.note), store_may_be_busy=True)
    finally:
        owner.close()
    if arguments.json:
        print_document(added)
    else:
        show_added(added)


def _rebuild(arguments: argparse.Namespace, settings: "Settings") -> None:
    from app.knowledge_tables import show_index
    from app.schemas_knowledge import IndexReport
    from app.wiring import KnowledgeOwner

    owner = KnowledgeOwner(settings)
    try:
        report = IndexReport.of(owner.rebuild(), len(owner.outcomes.history().cases))
    finally:
        owner.close()
    if arguments.json:
        print_document(report)
    else:
        show_index(report)


def _text(path: Path) -> str:
    from app.errors import MalformedBody
    from knowledge_base.note import MAX_NOTE_BYTES

    content = content_of(path, MAX_NOTE_BYTES + 1)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        # a cut in the middle of a character of a note that is too large anyway
        if len(content) > MAX_NOTE_BYTES:
            return content.decode("utf-8", "replace")
        raise MalformedBody(f"the note is not UTF-8 at byte {error.start}") from error
