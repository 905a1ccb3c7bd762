"""History as files: what is bundled, and the folder of outcomes users recorded. One JSON object a line.

The bundled cases name their model and their source by a key of models.jsonl and sources.jsonl, so that the numbers of
a model and the address of a page stand once. A user's outcome stands for itself in a file named for its id.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from knowledge_base.history_match import History
from knowledge_base.history_parts import PastArchitecture, PastSource, Words
from knowledge_base.past import PastCase
from projector.errors import InvalidDescription, KnowledgeUnavailable
from projector.nearest import nearest_names
from projector.specs.record import Record

HISTORY_FOLDER = Path(__file__).parent / "history"
MODELS, SOURCES = "models.jsonl", "sources.jsonl"
# what ids of bundled cases begin with, and those of users never
BUNDLED_PREFIXES = ("pub-", "chg-")
MAX_OUTCOME_BYTES = 16_000
MAX_USER_OUTCOMES = 2000

R = TypeVar("R", bound=Record)


class NamedModel(Record):
    """A model of the bundled cases: its name, the family an evaluation hides together, and its numbers."""

    model: Words
    family: Words
    architecture: PastArchitecture = PastArchitecture()


class NamedSource(Record):
    """A source of the bundled cases and its key."""

    key: Words
    source: PastSource


@cache
def bundled_history() -> History:
    """The cases that ship with the product."""
    return History(read_history(HISTORY_FOLDER))


def read_history(folder: Path) -> tuple[PastCase, ...]:
    """Every case of a folder of bundled files, by file and line.

    InvalidDescription with file and line: no JSON object, an unknown key, chip, lever, cause, model or source, a
    layout that contradicts itself, an id that occurs twice.
    """
    models = {entry.model: entry for entry in _records(folder / MODELS, NamedModel)}
    sources = {entry.key: entry.source for entry in _records(folder / SOURCES, NamedSource)}
    found: dict[str, PastCase] = {}
    for path in sorted(folder.glob("*.jsonl")):
        if path.name in (MODELS, SOURCES):
            continue
        for where, values in _lines(path):
            case = parse_case(_whole(values, models, sources, where), where)
            if case.id in found:
                raise InvalidDescription(f"{where}: the id {case.id!r} occurs twice")
            found[case.id] = case
    return tuple(found.values())


def parse_case(values: Mapping[str, Any], where: str) -> PastCase:
    """One case from its JSON object. InvalidDescription naming `where`, the key and what is wrong with it."""
    return _validated(values, PastCase, where)


class HistoryFolder:
    """The bundled cases and what users recorded in a folder, read again when a file there changes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._seen: tuple[tuple[str, int, int], ...] | None = None
        self._history: History | None = None

    def __call__(self) -> History:
        """The history as it is now. KnowledgeUnavailable naming a recorded outcome that cannot be read any more."""
        with self._lock:
            seen = tuple(_stamps(self.folder))
            if self._history is None or seen != self._seen:
                recorded = tuple(_recorded(self.folder / name) for name, _, _ in seen)
                self._history = History((*bundled_history().cases, *recorded)) if recorded else bundled_history()
                self._seen = seen
            return self._history

    def recorded(self) -> tuple[PastCase, ...]:
        """The users' outcomes, by id. Errors as calling."""
        return tuple(case for case in self().cases if case.origin == "user")


def _stamps(folder: Path) -> Iterator[tuple[str, int, int]]:
    """(name, time of change, size) of each outcome's file; what another process removes meanwhile is left out."""
    for path in sorted(folder.glob("*.json")):
        try:
            status = path.stat()
        except FileNotFoundError:
            continue
        yield path.name, status.st_mtime_ns, status.st_size


def _recorded(path: Path) -> PastCase:
    """A stored outcome. KnowledgeUnavailable: edited by hand since, and broken."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_OUTCOME_BYTES + 1).decode("utf-8")
        if len(text) > MAX_OUTCOME_BYTES:
            raise InvalidDescription(f"more than {MAX_OUTCOME_BYTES} bytes")
        case = parse_case(json_object(text, path.name), path.name)
        if case.id != path.stem or case.origin != "user" or case.id.startswith(BUNDLED_PREFIXES):
            raise InvalidDescription(f"its id is {case.id!r} of origin {case.origin}")
        return case
    except (OSError, UnicodeDecodeError, InvalidDescription) as error:
        reason = error.message if isinstance(error, InvalidDescription) else str(error)
        raise KnowledgeUnavailable(
            f"the recorded outcome {path.name} cannot be read: {reason}", hint=f"repair or remove {path.name}"
        ) from error


def json_object(text: str, where: str) -> dict[str, Any]:
    """A JSON object without repeated keys and without NaN. InvalidDescription for anything else."""
    try:
        value = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidDescription(f"{where}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InvalidDescription(f"{where}: not a JSON object")
    return value


def _lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(file:line, object) of every line that holds anything."""
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if line.strip():
            where = f"{path.name}:{number}"
            yield where, json_object(line, where)


def _records(path: Path, kind: type[R]) -> list[R]:
    return [_validated(values, kind, where) for where, values in _lines(path)] if path.exists() else []


def _whole(
    values: dict[str, Any], models: Mapping[str, NamedModel], sources: Mapping[str, PastSource], where: str
) -> dict[str, Any]:
    """A bundled line with its model's numbers and its source in place of their keys."""
    key = values.get("source")
    if not isinstance(key, str) or key not in sources:
        raise InvalidDescription(f"{where}: source {key!r} is not in {SOURCES}")
    whole = values | {"source": sources[key]}
    model = values.get("model")
    if model is not None:
        if model not in models:
            raise InvalidDescription(f"{where}: model {model!r} is not in {MODELS}")
        whole |= {"family": models[model].family, "architecture": models[model].architecture}
    return whole


def _validated(values: Mapping[str, Any], kind: type[R], where: str) -> R:
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        hint = ""
        if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
            hint = ", ".join(nearest_names(place, tuple(kind.model_fields)))
        raise InvalidDescription(
            f"{where}: {place + ': ' if place else ''}{first['msg']}", hint=f"nearest known: {hint}" if hint else ""
        ) from error


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) != len(pairs):
        raise ValueError("a key occurs twice")
    return read


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON number")
