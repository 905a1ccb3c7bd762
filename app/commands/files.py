"""Files a command is given, and the document it prints."""

import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel

from projector.errors import InvalidDescription


def existing(paths: Sequence[Path]) -> Sequence[Path]:
    """The paths, all of them readable files; InvalidDescription otherwise."""
    for path in paths:
        if not path.exists():
            raise InvalidDescription(f"no file {str(path)!r}")
        if not path.is_file():
            raise InvalidDescription(f"{str(path)!r} is not a file", hint="name the trace files, not their folder")
    return paths


def print_document(document: BaseModel) -> None:
    """The one JSON document of a command."""
    sys.stdout.write(document.model_dump_json(indent=2) + "\n")


def say(message: str) -> None:
    """Progress, for people."""
    print(message, file=sys.stderr, flush=True)
