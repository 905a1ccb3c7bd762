"""Reading argument vectors: flags with their values, and key=value pairs, as mappings with typed look-ups."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import ValidationError

from agents.wording import quoted
from projector.errors import InvalidDescription
from projector.specs.plan import ParallelismPlan

Word = TypeVar("Word", bound=str)


@dataclass
class Arguments:
    """Arguments by name, each with the values that follow it; a later one replaces an earlier one, as argparse does.

    `read` collects the names that were looked up, so that the rest can be reported.
    """

    values: Mapping[str, tuple[str, ...]]
    read: set[str] = field(default_factory=set)

    def has(self, *names: str) -> bool:
        """Whether any of the names stands in the vector."""
        self.read.update(names)
        return any(name in self.values for name in names)

    def text(self, name: str, default: str | None = None) -> str | None:
        """First value of an argument. InvalidDescription where it stands without one."""
        self.read.add(name)
        if name not in self.values:
            return default
        if not self.values[name]:
            raise InvalidDescription(f"{name} stands without its value")
        return self.values[name][0]

    def texts(self, name: str) -> tuple[str, ...]:
        """All values of an argument; () where it is absent."""
        self.read.add(name)
        return self.values.get(name, ())

    def count(self, name: str, default: int = 1) -> int:
        """A whole number of at least 1. InvalidDescription for anything else."""
        text = self.text(name)
        if text is None:
            return default
        number = _whole(text)
        if number is None or number < 1:
            raise InvalidDescription(f"{name} is {quoted(text)!r}, not a whole number of at least 1")
        return number

    def count_or_fill(self, name: str) -> int | None:
        """The same, None where the argument is absent or still a placeholder."""
        text = self.text(name)
        return None if text is None or text.startswith("<") else self.count(name)

    def size(self, name: str, default: float) -> float:
        """A number above 0 and below 1e9. InvalidDescription for anything else."""
        text = self.text(name)
        if text is None:
            return default
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if not 0 < number < 1e9:
            raise InvalidDescription(f"{name} is {quoted(text)!r}, not a number above 0 and below 1e9")
        return number

    def switch(self, name: str, *, default: bool) -> bool:
        """true or false in the spellings YAML and argparse know. InvalidDescription for anything else."""
        text = self.text(name)
        if text is None:
            return default
        known = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
        if text.lower() not in known:
            raise InvalidDescription(f"{name} is {quoted(text)!r}, neither true nor false")
        return known[text.lower()]

    def one_of(self, name: str, known: Mapping[str, Word], default: Word) -> Word:
        """The meaning of a value from a closed list. InvalidDescription naming the list for any other."""
        text = self.text(name)
        if text is None:
            return default
        if text not in known:
            raise InvalidDescription(f"{name} is {quoted(text)!r}", hint=f"read are: {', '.join(sorted(known))}")
        return known[text]

    @property
    def ignored(self) -> tuple[str, ...]:
        """Names nobody looked up, sorted."""
        return tuple(sorted(set(self.values) - self.read))


def flags(tokens: Sequence[str], aliases: Mapping[str, str] | None = None) -> Arguments:
    """`--name value ...` and `--name=value`; underscores in names read as hyphens.

    aliases: short names to the long ones. Words before the first flag are left out.
    """
    known = aliases or {}
    found: dict[str, list[str]] = {}
    open_name: str | None = None
    for token in tokens:
        name, given, value = token.partition("=")
        if name in known or (name.startswith("--") and len(name) > 2):
            open_name = known.get(name, "--" + name[2:].replace("_", "-"))
            found[open_name] = [value] if given else []
        elif open_name is not None:
            found[open_name].append(token)
    return Arguments({name: tuple(values) for name, values in found.items()})


def pairs(tokens: Iterable[str]) -> Arguments:
    """`name=value` tokens; anything else is left out."""
    found: dict[str, tuple[str, ...]] = {}
    for token in tokens:
        name, given, value = token.partition("=")
        if given and name.isidentifier():
            found[name] = (value,)
    return Arguments(found)


def divided(total: int, by: int, what: str) -> int:
    """total / by as a whole number. InvalidDescription saying what does not divide."""
    if total % by:
        raise InvalidDescription(f"{what}: {by} does not divide {total}")
    return total // by


def plan_of(fields: Mapping[str, object]) -> ParallelismPlan:
    """The plan of these fields. InvalidDescription where they contradict each other."""
    try:
        return ParallelismPlan.model_validate(fields)
    except ValidationError as error:
        reasons = "; ".join(str(each["msg"]).removeprefix("Value error, ") for each in error.errors())
        raise InvalidDescription(f"the arguments contradict each other: {reasons}") from None


def _whole(text: str) -> int | None:
    digits = text.strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else None
