"""`shardwise diagnose TRACE`: what bounds the job, from its trace alone."""

import argparse
from pathlib import Path

from app.commands.files import add_kernel_rules, print_document, readable

HELP = "diagnose the bottleneck of a trace"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """TRACE..., --kernel-rules, --json."""
    parser.add_argument("trace", type=Path, nargs="+", metavar="TRACE", help="files, folders or archives of one job")
    add_kernel_rules(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Read, summarise, diagnose, print."""
    from agents.planning.analyzer import diagnose
    from app.reading import read_job
    from app.schemas import DiagnoseAnswer
    from app.settings import load_settings
    from app.tables import show_diagnosis

    summary = read_job(
        readable(arguments.trace), load_settings(kernel_rules=arguments.kernel_rules), show_progress=True
    )
    answer = DiagnoseAnswer.of(summary, diagnose(summary))
    if arguments.json:
        print_document(answer)
    else:
        show_diagnosis(answer)
    return 0
