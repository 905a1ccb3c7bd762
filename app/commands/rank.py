"""`shardwise rank`: every legal plan of a workload on a cluster, ranked by an objective."""

import argparse

from app.commands.described import (
    add_cluster,
    add_workload,
    cluster_of,
    described,
    fields_of,
    listed,
    measured_of,
    plan_of,
    slo_of,
    workload_of,
)
from app.commands.files import print_document

HELP = "rank every legal plan of a workload on a cluster"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The workload, the cluster, what to rank by and to show, what bounds the plans, --json."""
    add_workload(parser)
    add_cluster(parser)
    parser.add_argument("--objective", metavar="NAME", help="what to rank by (default: that of the phase)")
    parser.add_argument("--slo", metavar="KEY=MS,...", help="serving: budgets to keep, as ttft_ms=500,tpot_ms=25")
    parser.add_argument("--top", type=int, default=10, metavar="N", help="layouts to show (default 10)")
    parser.add_argument("--pareto", metavar="NAME,NAME,...", help="two to four objectives: show their Pareto set")
    parser.add_argument("--current", metavar="KEY=VALUE,...", help="the plan that runs: gains are told against it")
    parser.add_argument("--measured", metavar="KEY=X,...", help="serving: of --current, as tpot_ms=21,ttft_ms=240")
    parser.add_argument("--relieve", metavar="CAUSE", help="a diagnosed cause: show what saves most of its time")
    parser.add_argument("--framework", metavar="NAME", help="training stack that runs it, for example megatron-bridge")
    parser.add_argument("--fix", metavar="KEY=VALUE,...", help="plan fields with the only value allowed")
    parser.add_argument("--max-chips", type=int, metavar="N", help="use no more chips than this")
    parser.add_argument("--allow-numerics-changes", action="store_true", help="precision may change")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Enumerate, project, rank, print."""
    from app.ranking import ranking_of
    from app.schemas_ranking import RankRequest
    from app.tables_ranking import show_ranking
    from projector.catalog import chip
    from projector.errors import UnknownName
    from projector.specs.bottleneck import CAUSES
    from projector.specs.constraints import Constraints

    if arguments.relieve is not None and arguments.relieve not in CAUSES:
        raise UnknownName("cause", arguments.relieve, CAUSES)
    workload = workload_of(arguments, any_load=True)
    limits = {
        "fixed": {} if arguments.fix is None else fields_of(arguments.fix, "--fix"),
        "max_chips": arguments.max_chips,
        "allow_numerics_changes": arguments.allow_numerics_changes,
    }
    request = described(
        RankRequest,
        {
            "workload": workload,
            "cluster": cluster_of(arguments, chip(arguments.chip).id),
            "framework": arguments.framework,
            "current_plan": None
            if arguments.current is None
            else plan_of(arguments.current, workload.phase, "--current"),
            "objective": arguments.objective,
            "pareto": () if arguments.pareto is None else listed(arguments.pareto),
            "relieve": arguments.relieve,
            "measured": None if arguments.measured is None else measured_of(arguments.measured),
            "top": arguments.top,
            "slo": slo_of(arguments.slo),
            "constraints": described(Constraints, limits),
        },
    )
    ranking = ranking_of(request)
    if arguments.json:
        print_document(ranking)
    else:
        show_ranking(ranking, request)
    return 0
