"""`shardwise summarise TRACE`: the summary of a trace as a small file that the service takes in its place."""

import argparse
from pathlib import Path

from app.commands.files import add_kernel_rules, print_document, readable, say
from projector.errors import InvalidDescription

HELP = "write the summary of a trace, to be sent in its place"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """TRACE..., --kernel-rules, --redact, -o FILE."""
    parser.add_argument("trace", type=Path, nargs="+", metavar="TRACE", help="files, folders or archives of one job")
    add_kernel_rules(parser)
    parser.add_argument(
        "--redact", action="store_true", help="replace every name by a pseudonym: kernels, files, groups, hosts"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write to a file, not to stdout")


def run(arguments: argparse.Namespace) -> int:
    """Read, summarise, write."""
    from app.reading import read_job
    from app.settings import load_settings
    from traces.stored.document import document_of

    summary = read_job(
        readable(arguments.trace), load_settings(kernel_rules=arguments.kernel_rules), show_progress=True
    )
    document = document_of(summary, redacted=arguments.redact)
    if arguments.output is None:
        print_document(document)
        return 0
    text = document.model_dump_json() + "\n"
    try:
        arguments.output.write_text(text, "utf-8")
    except OSError as error:
        raise InvalidDescription(
            f"cannot write {str(arguments.output)!r}: {error.strerror}", hint="name a file in a folder"
        ) from error
    redacted = ", names redacted" if document.redacted else ""
    say(f"{len(summary.ranks)} ranks in {len(text.encode()):,} bytes{redacted}")
    return 0
