"""`shardwise project`: the projector's figures for one plan on one cluster."""

import argparse

from app.commands.described import add_cluster, add_workload, cluster_of, plan_of, workload_of
from app.commands.files import print_document

HELP = "project one plan of one model on one cluster"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Model, cluster, --plan, workload sizes, what is trained, --kernel-tables, --json."""
    add_workload(parser)
    add_cluster(parser)
    parser.add_argument("--plan", required=True, metavar="KEY=VALUE,...", help="plan fields, for example dp=8,tp=4")
    parser.add_argument(
        "--kernel-tables", choices=("aiconfigurator",), help="serving: a second opinion from these measured kernels"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Check, project, print."""
    from app.schemas import ProjectAnswer
    from app.tables import show_projection
    from projector.catalog import architecture, chip
    from projector.legality import check
    from projector.project import project

    workload = workload_of(arguments)
    plan = plan_of(arguments.plan, workload.phase)
    hardware = chip(arguments.chip)
    model = architecture(arguments.model)
    cluster = cluster_of(arguments, hardware.id)
    rejections = check(plan, workload, model, cluster, hardware)
    projection = None if rejections else project(plan, workload, model, cluster, hardware)
    opinion = None
    if arguments.kernel_tables and projection is not None:
        from agents.kernel_tables.aiconfigurator import Aiconfigurator
        from agents.kernel_tables.tables import second_opinion

        opinion = second_opinion(projection, workload, model, hardware, Aiconfigurator())
    answer = ProjectAnswer(
        plan=plan,
        workload=workload,
        cluster=cluster,
        legal=not rejections,
        illegal=rejections,
        projection=projection,
        second_opinion=opinion,
    )
    if arguments.json:
        print_document(answer)
    else:
        show_projection(answer)
    return 0
