"""`shardwise summarise TRACE`: the summary of a trace as a small file that the service takes in its place."""

import argparse
from collections.abc import Sequence
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

    _refuse_a_trace(arguments.output, arguments.trace)
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


def _refuse_a_trace(output: Path | None, traces: Sequence[Path]) -> None:
    """InvalidDescription where the summary would take the place of a trace; of one that was written before it may."""
    from traces.content import Content
    from traces.stored.document import is_summary

    if output is None or not output.is_file():
        return
    places = [trace.resolve() for trace in traces]
    if not any(output.resolve().is_relative_to(place) for place in places):
        return
    with output.open("rb") as file:
        known = is_summary(Content(output.name, file.read(4096)))
    if output.resolve() in places or not known:
        raise InvalidDescription(f"{str(output)!r} is one of the traces", hint="name another file for the summary")
