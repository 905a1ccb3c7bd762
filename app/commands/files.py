"""Files a command is given, and the document it prints."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel

from projector.errors import InvalidDescription

STDIN = "-"


def add_kernel_rules(parser: argparse.ArgumentParser) -> None:
    """--kernel-rules FILE, for the commands that read traces."""
    parser.add_argument(
        "--kernel-rules", type=Path, metavar="FILE", help="own name rules (TOML), asked before the built-in ones"
    )


def existing(paths: Sequence[Path]) -> Sequence[Path]:
    """The paths, all of them regular files, for traces are read more than once; InvalidDescription otherwise."""
    for path in paths:
        if not path.exists():
            raise InvalidDescription(f"no file {str(path)!r}")
        if path.is_dir():
            raise InvalidDescription(f"{str(path)!r} is a folder", hint="name one file in it")
        if not path.is_file():
            raise InvalidDescription(f"{str(path)!r} is not a regular file", hint="save the trace to a file first")
    return paths


def readable(paths: Sequence[Path]) -> Sequence[Path]:
    """The paths, all of them regular files or folders; InvalidDescription otherwise."""
    existing([path for path in paths if not path.is_dir()])
    return paths


def content_of(path: Path, limit_bytes: int = -1) -> bytes:
    """The first bytes of a file, a pipe, or stdin for "-"; -1: all of them. InvalidDescription where there are none."""
    try:
        if str(path) == STDIN:
            if sys.stdin is None or sys.stdin.closed:
                raise InvalidDescription("stdin is closed", hint="name a file instead of -")
            return sys.stdin.buffer.read(limit_bytes)
        with path.open("rb") as file:
            return file.read(limit_bytes)
    except FileNotFoundError:
        raise InvalidDescription(f"no file {str(path)!r}") from None
    except IsADirectoryError:
        raise InvalidDescription(f"{str(path)!r} is a folder", hint="name one file in it") from None
    except OSError as error:
        raise InvalidDescription(f"{str(path)!r} cannot be read: {error.strerror}") from error


def print_document(document: BaseModel) -> None:
    """The one JSON document of a command."""
    sys.stdout.write(document.model_dump_json(indent=2) + "\n")


def say(message: str) -> None:
    """Progress, for people."""
    print(message, file=sys.stderr, flush=True)
