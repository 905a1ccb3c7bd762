"""What the reader of a family finds where layers differ: their sorts, the recurrent mixer, fields of the model."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from projector.errors import InvalidDescription
from projector.hf.fields import Config, optional_count
from projector.specs.layer_sort import LayerSort
from projector.specs.recurrence import Recurrence


@dataclass(frozen=True)
class Layers:
    """sorts and recurrence as in ModelArchitecture; `fields` of it the family says in its own way.

    common          common config keys that follow from the family's own
    experts         whether any layer has experts; None: as the family says
    class_defaults  keys the config leaves to the defaults of its class
    """

    sorts: tuple[LayerSort, ...] = ()
    recurrence: Recurrence | None = None
    common: Mapping[str, object] = field(default_factory=dict)
    fields: Mapping[str, object] = field(default_factory=dict)
    experts: bool | None = None
    class_defaults: tuple[str, ...] = ()


@dataclass
class Reading:
    """Reads keys of a config and remembers which ones were left to their class's default."""

    config: Config
    left: list[str] = field(default_factory=list)

    def count(self, key: str, default: int) -> int:
        """The whole number under a key, from 1 on, or the default of the class."""
        value = optional_count(self.config, key)
        if value is None:
            self.left.append(key)
            return default
        if value == 0:
            raise InvalidDescription(f"config key {key} is 0")
        return value


def counted(kinds: Iterable[LayerSort]) -> tuple[LayerSort, ...]:
    """Layers one by one (each a sort of one layer) as sorts with their counts, in order of first occurrence."""
    found = Counter(kinds)
    return tuple(kind.model_copy(update={"layers": number * kind.layers}) for kind, number in found.items())


def listed(value: object, key: str, kinds: Mapping[str, LayerSort]) -> Sequence[LayerSort]:
    """A list (or string of letters) of layers as one sort a layer; a name that is not in `kinds` is refused."""
    if not isinstance(value, str | list) or not value:
        raise InvalidDescription(f"config key {key} is {value!r}, not a list of layers")
    foreign = sorted({str(name) for name in value} - set(kinds))
    if foreign:
        raise InvalidDescription(f"{key} holds {', '.join(foreign)}: known are {', '.join(kinds)}")
    return [kinds[str(name)] for name in value]
