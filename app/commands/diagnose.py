"""`shardwise diagnose TRACE`: what bounds the job, from its trace alone."""

import argparse
from pathlib import Path

from app.commands.files import existing, print_document

HELP = "diagnose the bottleneck of a trace"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """TRACE..., --json."""
    parser.add_argument("trace", type=Path, nargs="+", metavar="TRACE", help="trace files of one job, one a rank")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Read, summarise, diagnose, print."""
    from agents.planning.analyzer import diagnose
    from app.schemas import DiagnoseAnswer
    from app.settings import load_settings
    from app.tables import show_diagnosis
    from app.wiring import limits_of
    from traces.summary import read_summary

    summary = read_summary(existing(arguments.trace), limits=limits_of(load_settings()))
    answer = DiagnoseAnswer.of(summary, diagnose(summary))
    if arguments.json:
        print_document(answer)
    else:
        show_diagnosis(answer)
    return 0
