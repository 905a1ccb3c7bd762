"""Typed access to one JSON object of a foreign file: a value of another type is a reason to refuse the row."""

from collections.abc import Mapping

from agents.evaluation.refusal import Refused

MOST_SHOWN = 40
# beyond any count, rate or time of a run, so that quotients of two of them stay finite
LARGEST, SMALLEST = 1e18, 1e-18


class Fields:
    """An object whose values may be missing or null, which is None, or of the wrong type, which is Refused."""

    def __init__(self, values: Mapping[str, object], where: str = "") -> None:
        self.values = values
        self._where = where

    def part(self, name: str) -> "Fields":
        """A nested object, empty where it is missing."""
        value = self.values.get(name)
        if value is None:
            return Fields({}, f"{self._where}{name}.")
        if not isinstance(value, dict):
            raise self._wrong(name, "an object")
        return Fields(value, f"{self._where}{name}.")

    def text(self, name: str) -> str | None:
        """Text."""
        value = self.values.get(name)
        if value is None or isinstance(value, str):
            return value
        raise self._wrong(name, "text")

    def whole(self, name: str) -> int | None:
        """A whole number, also one that is written as 8.0."""
        value = self.number(name)
        if value is None:
            return None
        if not value.is_integer():
            raise self._wrong(name, "a whole number")
        return int(value)

    def number(self, name: str) -> float | None:
        """A number; neither infinite nor absurd."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
            raise self._wrong(name, "a number")
        return float(value)

    def positive(self, name: str) -> float | None:
        """A number above zero, not absurdly small; zero stands for nothing measured."""
        value = self.number(name)
        if value is not None and value != 0 and value < SMALLEST:
            raise self._wrong(name, "a positive number")
        return value or None

    def switch(self, name: str) -> bool | None:
        """True or false, also where a log printed it as a word."""
        value = self.values.get(name)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        raise self._wrong(name, "true or false")

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts, or one text."""
        value = self.values.get(name)
        if value is None:
            return ()
        if isinstance(value, str):
            return (value,)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._wrong(name, "a list of texts")
        return tuple(value)

    def _wrong(self, name: str, wanted: str) -> Refused:
        shown = repr(self.values[name])
        shown = shown if len(shown) <= MOST_SHOWN else shown[:MOST_SHOWN] + "..."
        return Refused(f"{self._where}{name} is {shown}, not {wanted}")
