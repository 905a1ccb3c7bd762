"""`shardwise compare BEFORE AFTER`: what a change moved, and whether its promised gain arrived."""

import argparse
from pathlib import Path

from app.commands.files import add_kernel_rules, content_of, print_document, readable
from projector.errors import InvalidDescription

HELP = "compare two traces of a job, before and after a change"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """BEFORE, AFTER, --plan with --proposal or --predicted, --json."""
    for name in ("before", "after"):
        parser.add_argument(name, type=Path, metavar=name.upper(), help="file, folder, archive, or a written summary")
    promised = parser.add_mutually_exclusive_group()
    promised.add_argument(
        "--plan", type=Path, metavar="FILE", help="answer of `shardwise plan --json` that was adopted"
    )
    promised.add_argument(
        "--predicted", type=float, metavar="FRAC", help="promised change of the step time, -0.2 for a fifth less"
    )
    add_kernel_rules(parser)
    parser.add_argument("--proposal", type=int, default=1, metavar="N", help="proposal of --plan that was adopted")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Read both, compare, print."""
    from app.comparing import checked_change, promised_in
    from app.reading import read_job
    from app.settings import load_settings
    from app.tables_compare import show_comparison
    from traces.compare.compare import compare

    if arguments.plan is None and arguments.proposal != 1:
        raise InvalidDescription("--proposal names a proposal of --plan", hint="give --plan FILE as well")
    predicted = None if arguments.predicted is None else checked_change(arguments.predicted)
    if arguments.plan is not None:
        predicted = promised_in(content_of(arguments.plan), arguments.proposal)
    settings = load_settings(kernel_rules=arguments.kernel_rules)
    before = read_job(readable([arguments.before]), settings, show_progress=True)
    after = read_job(readable([arguments.after]), settings, show_progress=True)
    comparison = compare(before, after, predicted_change_frac=predicted)
    if arguments.json:
        print_document(comparison)
    else:
        show_comparison(comparison)
    return 0
