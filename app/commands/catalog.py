"""`shardwise catalog`: chips, models, levers and objectives, each figure with where it comes from."""

import argparse
from collections.abc import Callable
from typing import Any

from app.commands.files import print_document
from projector.errors import InvalidDescription, UnknownName
from projector.specs.record import Record

HELP = "show the catalogue: chips, models, levers, objectives"
KINDS = ("chips", "models", "levers", "objectives")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """KIND, NAME, --json."""
    parser.add_argument("kind", nargs="?", metavar="KIND", help=f"{', '.join(KINDS)}; default: a count")
    parser.add_argument("name", nargs="?", metavar="NAME", help="one entry, by id, alias or hub id in any case")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Look up and print."""
    if arguments.kind is None:
        return _counts(as_json=arguments.json)
    if arguments.kind not in KINDS:
        raise UnknownName("kind of entry", arguments.kind, KINDS)
    document, show = _looked_up(arguments.kind, arguments.name)
    if arguments.json:
        print_document(document)
    else:
        show(document)
    return 0


def _looked_up(kind: str, name: str | None) -> tuple[Record, Callable[[Any], None]]:
    """The entry, or the list where no name is given, and what shows it."""
    from app import catalogue, catalogue_tables

    if name is None:
        lists: dict[str, tuple[Callable[[], Record], Callable[[Any], None]]] = {
            "chips": (catalogue.chip_list, catalogue_tables.show_chips),
            "models": (catalogue.model_list, catalogue_tables.show_models),
            "levers": (catalogue.lever_list, catalogue_tables.show_levers),
            "objectives": (catalogue.objective_list, catalogue_tables.show_objectives),
        }
        listed, show = lists[kind]
        return listed(), show
    entries: dict[str, tuple[Callable[[str], Record], Callable[[Any], None]]] = {
        "chips": (catalogue.chip_row, catalogue_tables.show_chip),
        "models": (catalogue.model_answer, catalogue_tables.show_model),
        "levers": (catalogue.lever, catalogue_tables.show_lever),
        "objectives": (catalogue.objective, catalogue_tables.show_objective),
    }
    look_up, show = entries[kind]
    return look_up(name), show


def _counts(*, as_json: bool) -> int:
    from app.catalogue_tables import show_counts

    if as_json:
        raise InvalidDescription("--json needs a kind", hint=f"one of {', '.join(KINDS)}")
    show_counts()
    return 0
