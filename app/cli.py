"""The command `shardwise`: one JSON document on stdout with --json, a table for people without; the rest on stderr.

Exit codes: 0 done, 2 the input is wrong, 1 something else is. With --json an error is a problem document on stdout.
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from typing import Any, NoReturn

from app import environment
from app.commands import COMMANDS
from app.output import OutputFailed, checked_stdout
from app.problems import problem_of
from app.schemas import Problem
from app.wording import plain
from projector.errors import InvalidDescription, UnknownName


class Parser(argparse.ArgumentParser):
    """A parser that takes no abbreviations and raises a typed error instead of leaving the process."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **{**keywords, "allow_abbrev": False})
        self.set_defaults(parser=self)  # the innermost one wins

    def error(self, message: str) -> NoReturn:
        """Wrong arguments."""
        raise InvalidDescription(message, hint=" ".join(self.format_usage().split()))


def build_parser() -> argparse.ArgumentParser:
    """The parser with one subcommand a module of `app.commands`."""
    parser = Parser(prog="shardwise", description="Bottleneck-first planning for LLM training and serving.")
    parser.add_argument("--version", action="version", version=version("shardwise"))
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    for name, command in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=command.HELP, description=command.HELP)
        command.add_arguments(subparser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    environment.settle()
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(message)s")
    try:
        with checked_stdout():
            return _command(list(sys.argv[1:] if argv is None else argv))
    except OutputFailed as error:
        with suppress(OSError, ValueError):
            print(f"shardwise: cannot write the output: {error}", file=sys.stderr)
        return 1


def _command(arguments: Sequence[str]) -> int:
    try:
        if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
            raise UnknownName("command", arguments[0], COMMANDS)
        parsed, unknown = build_parser().parse_known_args(arguments)
        if unknown:
            parsed.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        return COMMANDS[parsed.command].run(parsed)
    except KeyboardInterrupt:
        return 130
    except OutputFailed:
        raise
    except Exception as error:
        return _report(problem_of(error), as_json="--json" in arguments)


def _report(problem: Problem, *, as_json: bool) -> int:
    if as_json:
        print(problem.model_dump_json(exclude_none=True, indent=2))
    else:
        print(f"shardwise: {plain(problem.detail)}", file=sys.stderr)
        for field in problem.errors if len(problem.errors) > 1 else ():
            nearest = f" (nearest: {', '.join(field.nearest)})" if field.nearest else ""
            print(f"  {plain(field.path)}: {plain(field.message)}{nearest}", file=sys.stderr)
        if problem.hint:
            print(f"hint: {plain(problem.hint)}", file=sys.stderr)
    return 2 if problem.status < 500 else 1


if __name__ == "__main__":
    sys.exit(main())
