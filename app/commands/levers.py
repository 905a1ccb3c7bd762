"""`shardwise levers`: what may be tried of each lever for one model on one cluster, and what cannot matter there."""

import argparse

from app.commands.described import add_cluster, cluster_of, described, plan_of
from app.commands.files import print_document

HELP = "show what each lever may be set to for a model on a cluster, and which cannot matter there"
PHASES = ("training", "serving")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--model, --chip, --chips, --topology, --slices, --phase, --plan, --json."""
    parser.add_argument("--model", required=True, help="model of the catalogue")
    add_cluster(parser)
    parser.add_argument("--phase", default="serving", metavar="PHASE", help="training or serving (default serving)")
    parser.add_argument("--plan", metavar="KEY=VALUE,...", help="tell also what cannot matter beside these fields")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Look up and print."""
    from app.levers import levers_of
    from app.schemas_levers import LeversRequest
    from app.tables_levers import show_levers_of
    from projector.catalog import chip
    from projector.errors import UnknownName

    if arguments.phase not in PHASES:
        raise UnknownName("phase", arguments.phase, PHASES)
    request = described(
        LeversRequest,
        {
            "workload": {"phase": arguments.phase, "model": arguments.model},
            "cluster": cluster_of(arguments, chip(arguments.chip).id),
            "plan": None if arguments.plan is None else plan_of(arguments.plan, arguments.phase),
        },
    )
    answer = levers_of(request)
    if arguments.json:
        print_document(answer)
    else:
        show_levers_of(answer)
    return 0
