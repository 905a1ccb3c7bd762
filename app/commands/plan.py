"""`shardwise plan TRACE`: the plan of POST /v1/plans without a service."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from app.commands.files import add_kernel_rules, content_of, print_document, readable, say
from projector.errors import InvalidDescription

if TYPE_CHECKING:
    from agents.findings import PlanResult

HELP = "diagnose a trace and propose ranked, projected plans"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """TRACE..., --request, --kernel-rules, --csv, --json."""
    parser.add_argument("trace", type=Path, nargs="*", metavar="TRACE", help="files, folders or archives of one job")
    parser.add_argument("--request", type=Path, metavar="FILE", help="request as JSON, - for stdin (keys: see the API)")
    add_kernel_rules(parser)
    parser.add_argument(
        "--csv", type=Path, metavar="FILE", help="write every projection as a row of a CSV file as well"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Plan in this process."""
    from agents.request import PlanRequest
    from app.schemas import CommandPlan, TraceHeadline
    from app.settings import load_settings
    from app.tables import show_plan
    from app.validation import parse
    from app.wiring import command_planner

    if not arguments.trace and arguments.request is None:
        raise InvalidDescription("neither a trace nor a request", hint="shardwise plan TRACE, or --request FILE")
    request = parse(PlanRequest, content_of(arguments.request)) if arguments.request is not None else PlanRequest()
    traces = readable(arguments.trace)
    with command_planner(load_settings(kernel_rules=arguments.kernel_rules), say) as planner:
        outcome = planner.plan(request, traces)
    if arguments.csv is not None:
        _write_csv(outcome.result, arguments.csv)
    headline = TraceHeadline.of(outcome.summary) if outcome.summary is not None else None
    if arguments.json:
        print_document(CommandPlan.of(outcome.result, headline, outcome.launch))
    else:
        show_plan(outcome.result, headline)
    return 0


def _write_csv(result: "PlanResult", path: Path) -> None:
    from app.frames import projections_to_frame

    try:
        projections_to_frame(result).to_csv(path, index=False)
    except OSError as error:
        raise InvalidDescription(
            f"cannot write {path.name!r}: {error.strerror}", hint="name a file in a folder"
        ) from error
