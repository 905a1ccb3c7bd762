"""JSON text into a record; what does not match becomes one typed error with the nearest known keys."""

import json
from collections.abc import Iterator
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from app.schemas import FieldProblem
from projector.errors import InvalidDescription
from projector.nearest import nearest_names

M = TypeVar("M", bound=BaseModel)


class InvalidRequest(InvalidDescription):
    """A description that does not match its record: `fields` has one entry a wrong key."""

    def __init__(self, fields: tuple[FieldProblem, ...]) -> None:
        self.fields = fields
        self.nearest = tuple(dict.fromkeys(name for field in fields for name in field.nearest))
        first = fields[0]
        more = f" (and {len(fields) - 1} more)" if len(fields) > 1 else ""
        where = f"{first.path}: " if first.path else ""
        hint = f"nearest known: {', '.join(self.nearest)}" if self.nearest else ""
        super().__init__(f"{where}{first.message}{more}", hint=hint)


def parse(model: type[M], text: bytes | str) -> M:
    """The record that a JSON text describes.

    Raises InvalidRequest, also for a key that stands twice in an object, and whatever typed error the record's own
    validators raise.
    """
    _refuse_repeated_keys(text)
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise InvalidRequest(tuple(field_problems(error, model))) from error


def _refuse_repeated_keys(text: bytes | str) -> None:
    """InvalidRequest: which of two values counts would be a guess."""
    try:
        json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        return  # no JSON: told by the validation


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = dict.fromkeys(name for name in names if names.count(name) > 1)
        raise InvalidRequest(
            tuple(FieldProblem(path=name, message="the key is given more than once") for name in twice)
        )
    return found


def field_problems(error: ValidationError, model: type[BaseModel]) -> Iterator[FieldProblem]:
    """What is wrong, key by key."""
    for item in error.errors(include_url=False, include_context=False, include_input=False):
        path = ".".join(str(part) for part in item["loc"])
        if item["type"] == "extra_forbidden":
            known = _keys_beside(model, item["loc"])
            nearest = nearest_names(str(item["loc"][-1]), known)
            message = "unknown key" if nearest else f"unknown key; known: {', '.join(known)}"
            yield FieldProblem(path=path, message=message, nearest=nearest)
        else:
            yield FieldProblem(path=path, message=item["msg"].removeprefix("Value error, "))


def _keys_beside(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """Keys that would have been right where the last part of `loc` is wrong."""
    current: Any = model
    for part in loc[:-1]:
        record = _record_in(current)
        if record is not None and part in record.model_fields:
            current = record.model_fields[str(part)].annotation
    record = _record_in(current)
    return list(record.model_fields) if record is not None else []


def _record_in(annotation: Any) -> type[BaseModel] | None:
    """The model an annotation holds: itself, or inside Optional, tuple or dict."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (Union, UnionType, tuple, list, dict):
        return next((found for arg in get_args(annotation) if (found := _record_in(arg))), None)
    return None
