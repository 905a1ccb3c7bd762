"""`shardwise simulate`: one serving plan, request by request, for percentiles and goodput."""

import argparse
from pathlib import Path

from app.commands.described import add_cluster, add_workload, cluster_of, described, plan_of, slo_of, traffic_of
from app.commands.files import content_of, existing, print_document

HELP = "simulate a serving plan request by request: percentiles, goodput"
TRAINING_ONLY = ("seq_len", "global_batch", "lora_rank", "lora_targets", "frozen_dtype", "packed", "padded")
SIZES = ("input_len", "output_len", "concurrency")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The workload and its traffic, or a log; the cluster, the plan; requests, seed, routing, budgets, --json."""
    add_workload(parser)
    add_cluster(parser)
    parser.add_argument("--plan", required=True, metavar="KEY=VALUE,...", help="plan fields, for example tp=8,dp=2")
    parser.add_argument(
        "--log", type=Path, metavar="FILE", help="recorded requests: JSONL as Mooncake's traces, or CSV"
    )
    parser.add_argument("--block-tokens", type=int, help="tokens a hash of a JSONL log stands for (default 512)")
    parser.add_argument("--requests", type=int, metavar="N", help="requests to measure (default 2000)")
    parser.add_argument("--warmup-requests", type=int, metavar="N", help="requests before them (default: by arrivals)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of what is drawn (default 0)")
    parser.add_argument("--routing", default="least_loaded", help="least_loaded (default) or round_robin")
    parser.add_argument("--slo", metavar="KEY=MS,...", help="budgets, for example ttft_ms_p99=500,tpot_ms=25")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Read the log, simulate, print."""
    from agents.request_logs import BLOCK_TOKENS, MOST_LOG_BYTES, read_log
    from app.schemas_simulation import SimulationRequest
    from app.simulating import simulated
    from app.tables_simulation import show_simulation
    from projector.catalog import chip
    from projector.errors import InvalidDescription
    from projector.specs.workload import WorkloadSpec

    read = None
    if arguments.log is not None:
        (path,) = existing([arguments.log])
        read = read_log(content_of(path, MOST_LOG_BYTES + 1), block_tokens=arguments.block_tokens or BLOCK_TOKENS)
    elif arguments.block_tokens is not None:
        raise InvalidDescription("--block-tokens without --log")
    sizes = {name: getattr(arguments, name) for name in SIZES if getattr(arguments, name) is not None}
    training = [name for name in TRAINING_ONLY if getattr(arguments, name) is not None]
    if training:
        raise InvalidDescription(f"--{training[0].replace('_', '-')} is of a training workload")
    shared = {
        "phase": "serving",
        "model": arguments.model,
        "precision": arguments.precision,
        "engine": arguments.engine,
    }
    request = described(
        SimulationRequest,
        {
            "workload": described(WorkloadSpec, shared | sizes | traffic_of(arguments.traffic)),
            "cluster": cluster_of(arguments, chip(arguments.chip).id),
            "plan": plan_of(arguments.plan, "serving"),
            "requests": arguments.requests,
            "warmup_requests": arguments.warmup_requests,
            "seed": arguments.seed,
            "routing": arguments.routing,
            "slo": slo_of(arguments.slo),
        },
    )
    answer = simulated(request, read)
    if arguments.json:
        print_document(answer)
    else:
        show_simulation(answer)
    return 0
