"""`shardwise size`: the cheapest chip and count that meet a target."""

import argparse

from app.commands.described import add_workload, described, fields_of, listed, slo_of, workload_of
from app.commands.files import print_document, say
from projector.errors import InvalidDescription

HELP = "find the cheapest chips that train or serve a workload within a target"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The workload, the target, which machines to compare at which price, what bounds the plans, --json."""
    add_workload(parser)
    parser.add_argument("--tokens-per-s", type=float, metavar="X", help="target: trained tokens a second, at least")
    parser.add_argument("--step-time-s", type=float, metavar="X", help="target: seconds a step, at most")
    parser.add_argument("--days", type=float, metavar="X", help="target: days for --budget-tokens, at most")
    parser.add_argument("--cost-usd", type=float, metavar="X", help="target: price of --budget-tokens, at most")
    parser.add_argument("--budget-tokens", type=float, metavar="N", help="tokens to train on, for example 2e12")
    parser.add_argument("--requests-per-s", type=float, metavar="X", help="target of serving: requests a second")
    parser.add_argument("--output-tokens-per-s", type=float, metavar="X", help="target of serving: generated tokens")
    parser.add_argument("--slo", metavar="KEY=MS,...", help="serving: budgets to keep, as ttft_ms=500,tpot_ms=25")
    parser.add_argument("--chips", metavar="CHIP,...", help="chips to compare (default: every chip of the catalogue)")
    parser.add_argument("--max-chips", type=int, metavar="N", help="compare powers of two up to this (default 1024)")
    parser.add_argument("--counts", metavar="N,...", help="compare these counts of each chip instead")
    parser.add_argument("--price", metavar="CHIP=USD,...", help="price of a chip and hour, in place of the catalogue's")
    parser.add_argument("--framework", metavar="NAME", help="training stack that runs it, for example megatron-bridge")
    parser.add_argument("--fix", metavar="KEY=VALUE,...", help="plan fields with the only value allowed")
    parser.add_argument("--allow-numerics-changes", action="store_true", help="serving: precision may change")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Compare and print; each machine is told on stderr as it is done."""
    from app.ranking import sizing_of
    from app.schemas_ranking import SizeRequest
    from app.tables_ranking import show_sizing
    from projector.catalog import chips
    from projector.ranking.sizing_records import ChipCounts, SizingTarget
    from projector.specs.constraints import Constraints

    target = {
        name: getattr(arguments, name) for name in SizingTarget.model_fields if getattr(arguments, name) is not None
    }
    names = () if arguments.chips is None else listed(arguments.chips)
    machines: tuple[ChipCounts, ...] = ()
    if arguments.counts is not None:
        if arguments.max_chips is not None:
            raise InvalidDescription("--counts and --max-chips both say how many chips", hint="give one of the two")
        counts = listed(arguments.counts)
        compared = names or tuple(chip.id for chip in chips())
        machines, names = tuple(described(ChipCounts, {"chip": name, "chips": counts}) for name in compared), ()
    values: dict[str, object] = {
        "workload": workload_of(arguments, any_load=True),
        "slo": slo_of(arguments.slo),
        "framework": arguments.framework,
        "target": described(SizingTarget, target),
        "chips": names,
        "machines": machines,
        "prices_usd": {} if arguments.price is None else _prices(arguments.price),
        "constraints": described(
            Constraints,
            {
                "fixed": {} if arguments.fix is None else fields_of(arguments.fix, "--fix"),
                "allow_numerics_changes": arguments.allow_numerics_changes,
            },
        ),
    }
    if arguments.max_chips is not None:
        values["max_chips"] = arguments.max_chips
    request = described(SizeRequest, values)
    sizing = sizing_of(request, say)
    if arguments.json:
        print_document(sizing)
    else:
        show_sizing(sizing, request)
    return 0


def _prices(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for item in text.split(","):
        name, _, value = item.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise InvalidDescription(f"--price: {item!r}", hint="as CHIP=USD, for example h100-sxm=2.5") from None
    return found
