"""`shardwise eval advice`: the whole service held against published workloads."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from app.commands.files import print_document, say
from projector.errors import InvalidDescription, UnknownName

if TYPE_CHECKING:
    from agents.evaluation.advice_parts import Part
    from agents.planning.state import Knowledge

PHASES = ("pretrain", "sft", "lora", "qlora", "rl", "serving")


def add_advice(parser: argparse.ArgumentParser) -> None:
    """FILE..., what is told and what is left out."""
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="workloads (.jsonl), rows beside them or named too; or before/after cases",
    )
    parser.add_argument("--phase", choices=PHASES, default="pretrain", help="phase of the workloads (default pretrain)")
    parser.add_argument(
        "--framework",
        choices=("named", "unknown"),
        default="unknown",
        help="whether the planner is told the workload's framework (default unknown)",
    )
    parser.add_argument("--no-history", action="store_true", help="as --ablate history")
    parser.add_argument("--no-diversity", action="store_true", help="as --ablate diversity")
    parser.add_argument("--ablate", default="", metavar="PARTS", help="parts to leave out, with commas between")
    parser.add_argument("--ablations", action="store_true", help="every part left out by itself, as a table (minutes)")
    parser.add_argument("--workloads", action="store_true", help="every workload, in the document (--json)")
    parser.add_argument(
        "--write-practice",
        type=Path,
        metavar="FILE",
        help="fit the weights that ship, and write them",
    )


def run_advice(arguments: argparse.Namespace) -> None:
    """Read, ask, compare, print."""
    from agents.evaluation.advice_parts import Setup
    from agents.evaluation.advice_run import Question, advice, practice_model
    from app.evaluation_files import for_topk
    from app.tables_advice import show_advice
    from knowledge_base.history_files import bundled_history
    from knowledge_base.past import MOST_MATCHES

    ablated = _parts(arguments)
    if arguments.phase == "serving":
        _served_advice(arguments, ablated)
        return
    material = for_topk(arguments.files, say)
    history = bundled_history()
    if arguments.write_practice is not None:
        files = " and ".join(path.name for path in arguments.files)
        past = partial(history.past, k=MOST_MATCHES)
        model = practice_model(material.workloads, material.rows, past, f"adopted layouts of {files}", say)
        _write(arguments.write_practice, f"{model.model_dump_json(indent=2)}\n")
        return
    question = Question(
        phase=arguments.phase,
        framework=arguments.framework,
        setup=Setup(ablated),
        every_part=arguments.ablations,
        with_ids=arguments.ids,
        with_workloads=arguments.workloads,
    )
    with _notes(ablated) as knowledge:
        report = advice(
            material.workloads,
            material.rows,
            question,
            knowledge,
            partial(history.past, k=MOST_MATCHES),
            say,
        )
    if arguments.json:
        print_document(report)
    else:
        show_advice(report)


def _served_advice(arguments: argparse.Namespace, ablated: "frozenset[Part]") -> None:
    from agents.evaluation.advice_parts import Setup
    from agents.evaluation.advice_served import NOTES, advised_fleets
    from agents.evaluation.served_topk import served_topk
    from app.evaluation_files import for_served_topk
    from app.tables_served import show_served_topk
    from knowledge_base.history_files import bundled_history
    from knowledge_base.past import MOST_MATCHES

    if arguments.framework == "named":
        raise InvalidDescription("--framework named: serving workloads name no engine", hint="leave it out")
    workloads, rows = for_served_topk(arguments.files, say)
    past = partial(bundled_history().past, k=MOST_MATCHES)
    with _notes(ablated) as knowledge:
        report = served_topk(
            workloads,
            rows,
            with_ids=arguments.ids,
            with_workloads=arguments.workloads,
            say=say,
            answer=advised_fleets(knowledge, past, Setup(ablated)),
            notes=NOTES,
        )
    if arguments.json:
        print_document(report)
    else:
        show_served_topk(report)


@contextmanager
def _notes(ablated: "frozenset[Part]") -> "Iterator[Knowledge]":
    """The knowledge base, opened only where it takes part."""
    from agents.planning.state import NoKnowledge
    from app.settings import load_settings
    from app.wiring import command_knowledge

    if "knowledge" in ablated:
        yield NoKnowledge()
        return
    with command_knowledge(load_settings(), say) as knowledge:
        yield knowledge().get()


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidDescription(f"cannot write {path.name!r}: {error.strerror}") from error


def _parts(arguments: argparse.Namespace) -> "frozenset[Part]":
    """The parts to leave out. InvalidDescription for one that is none."""
    from agents.evaluation.advice_parts import PARTS

    named = {part for part in arguments.ablate.split(",") if part}
    named |= {"history"} if arguments.no_history else set()
    named |= {"diversity"} if arguments.no_diversity else set()
    for part in sorted(named):
        if part not in PARTS:
            raise UnknownName("part of the advice", part, PARTS)
    return frozenset(part for part in PARTS if part in named)
