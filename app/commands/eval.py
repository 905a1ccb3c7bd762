"""`shardwise eval`: the projector and its search against published measurements in files."""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.commands.eval_advice import add_advice, run_advice
from app.commands.files import print_document, say
from projector.errors import InvalidDescription

if TYPE_CHECKING:
    from agents.evaluation.rows import Unreadable
    from agents.evaluation.serving_rows import ServingRow

HELP = "hold the projector against measured runs: errors, ranking, hit rates"
PHASES = ("pretrain", "sft", "lora", "qlora", "rl", "serving")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """ACTION with its own arguments; --json."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    errors = "error of projected step time and memory, and ranking inside sweeps"
    accuracy = actions.add_parser("accuracy", help=errors, description=errors)
    accuracy.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="rows (.jsonl), workloads with rows beside, vTrain (.csv); or serving rows (.jsonl, .csv)",
    )
    accuracy.add_argument(
        "--folds", action="store_true", help="what one level a chip, own group left out, would change"
    )
    accuracy.add_argument("--rows", action="store_true", help="every modelled row, in the document (--json)")
    hits = "whether published layouts are among the projector's first three"
    topk = actions.add_parser("topk", help=hits, description=hits)
    topk.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="workloads (.jsonl), rows beside them or named too"
    )
    topk.add_argument("--phase", choices=PHASES, default="pretrain", help="phase of the workloads (default pretrain)")
    topk.add_argument(
        "--framework",
        choices=("named", "unknown"),
        default="unknown",
        help="whether the planner is told the workload's framework (default unknown)",
    )
    topk.add_argument("--workloads", action="store_true", help="every workload, in the document (--json)")
    corrected = "what one measured run of a sweep is worth for projecting the others"
    anchor = actions.add_parser("anchor", help=corrected, description=corrected)
    anchor.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="rows (.jsonl), vTrain (.csv), serving rows"
    )
    anchor.add_argument("--json", action="store_true", help="print one JSON document")
    told = (
        "whether the layouts experts adopted are among the service's proposals; or what it says of before/after cases"
    )
    advice = actions.add_parser("advice", help=told, description=told)
    add_advice(advice)
    advice.add_argument("--cases", action="store_true", help="what was said of every case, in the document (--json)")
    for action in (accuracy, topk, advice):
        action.add_argument("--ids", action="store_true", help="list what was refused by id")
        action.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Read, project, compare, print."""
    started = time.process_time()
    {"accuracy": _accuracy, "topk": _topk, "anchor": _anchor, "advice": _advice}[arguments.action](arguments)
    say(f"{time.process_time() - started:.1f} s of processor time")
    return 0


def _accuracy(arguments: argparse.Namespace) -> None:
    from agents.evaluation.accuracy import accuracy
    from app.evaluation_files import for_accuracy
    from app.tables_eval import show_accuracy

    material = for_accuracy(arguments.files, say)
    if material.serving:
        _serving_accuracy(arguments, material.serving)
        return
    report = accuracy(
        material.rows,
        material.strata,
        with_folds=arguments.folds,
        with_ids=arguments.ids,
        with_rows=arguments.rows,
        say=say,
    )
    if arguments.json:
        print_document(report)
    else:
        show_accuracy(report)


def _serving_accuracy(arguments: argparse.Namespace, rows: "Sequence[ServingRow | Unreadable]") -> None:
    from agents.evaluation.serving_accuracy import serving_accuracy
    from app.tables_serving import show_serving

    report = serving_accuracy(
        rows, with_folds=arguments.folds, with_ids=arguments.ids, with_rows=arguments.rows, say=say
    )
    if arguments.json:
        print_document(report)
    else:
        show_serving(report)


def _topk(arguments: argparse.Namespace) -> None:
    if arguments.phase == "serving":
        _served_topk(arguments)
        return
    from agents.evaluation.topk import topk
    from app.evaluation_files import for_topk
    from app.tables_eval import show_topk

    material = for_topk(arguments.files, say)
    report = topk(
        material.workloads,
        material.rows,
        phase=arguments.phase,
        framework=arguments.framework,
        with_ids=arguments.ids,
        with_workloads=arguments.workloads,
        say=say,
    )
    if arguments.json:
        print_document(report)
    else:
        show_topk(report)


def _served_topk(arguments: argparse.Namespace) -> None:
    from agents.evaluation.served_topk import served_topk
    from app.evaluation_files import for_served_topk
    from app.tables_served import show_served_topk

    if arguments.framework == "named":
        raise InvalidDescription("--framework named: a serving engine is not told to the planner", hint="leave it out")
    workloads, rows = for_served_topk(arguments.files, say)
    report = served_topk(workloads, rows, with_ids=arguments.ids, with_workloads=arguments.workloads, say=say)
    if arguments.json:
        print_document(report)
    else:
        show_served_topk(report)


def _advice(arguments: argparse.Namespace) -> None:
    from agents.evaluation.case_report import case_report
    from app.evaluation_files import for_cases, hold_cases
    from app.tables_cases import show_cases

    if not hold_cases(arguments.files):
        run_advice(arguments)
        return
    report = case_report(for_cases(arguments.files, say), with_cases=arguments.cases, say=say)
    if arguments.json:
        print_document(report)
    else:
        show_cases(report, with_ids=arguments.ids)


def _anchor(arguments: argparse.Namespace) -> None:
    from agents.evaluation.anchoring import anchor_report
    from app.evaluation_files import for_accuracy
    from app.tables_anchor import show_anchor

    material = for_accuracy(arguments.files, say)
    if material.serving:
        _serving_anchor(arguments, material.serving)
        return
    report = anchor_report(material.rows, material.strata, say=say)
    if arguments.json:
        print_document(report)
    else:
        show_anchor(report)


def _serving_anchor(arguments: argparse.Namespace, rows: "Sequence[ServingRow | Unreadable]") -> None:
    from agents.evaluation.serving_anchoring import serving_anchor_report
    from app.tables_served import show_serving_anchor

    report = serving_anchor_report(rows, say=say)
    if arguments.json:
        print_document(report)
    else:
        show_serving_anchor(report)
