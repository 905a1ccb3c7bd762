"""XStat messages: named values of planes, of event metadata and of events."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.trace import ABSENT, Ints
from traces.xplane.space import NO_TEXT, Span, StatValue, Texts
from traces.xplane.wire import DELIMITED, FIXED64, VARINT, Words, read_fields

_METADATA_ID: Final = 1
_DOUBLE: Final = 2
_UINT: Final = 3
_INT: Final = 4
_TEXT: Final = 5
_BYTES: Final = 6
_REFERENCE: Final = 7
_WIRE_OF: Final = {
    _DOUBLE: FIXED64,
    _UINT: VARINT,
    _INT: VARINT,
    _TEXT: DELIMITED,
    _BYTES: DELIMITED,
    _REFERENCE: VARINT,
}


@dataclass(frozen=True, slots=True, eq=False)
class Stats:
    """Stats, one entry each: id of the name, which of the value fields is set (0: none that is read), and the value."""

    data: bytes | bytearray
    name_id: Ints
    form: Ints
    word: Words
    start: Ints
    end: Ints

    def values(
        self, owner: Ints, owners: int, stat_names: Mapping[int, str], wanted: Set[str] | None
    ) -> list[dict[str, StatValue]]:
        """The wanted stats of each owner by name; all of them where `wanted` is None."""
        found: list[dict[str, StatValue]] = [{} for _ in range(owners)]
        ids = [key for key, name in stat_names.items() if wanted is None or name in wanted]
        chosen = np.flatnonzero(np.isin(self.name_id, np.array(ids, dtype=np.int64)))
        for index, mine in zip(chosen.tolist(), owner[chosen].tolist(), strict=True):
            value = self._value(index, stat_names)
            if value is not None:
                found[mine][stat_names[int(self.name_id[index])]] = value
        return found

    def int_column(self, stat_id: int, owner: Ints, owners: int) -> Ints:
        """A whole number for each owner; ABSENT where it has none."""
        column = np.full(owners, ABSENT, dtype=np.int64)
        mine = (self.name_id == stat_id) & ((self.form == _UINT) | (self.form == _INT))
        column[owner[mine]] = self.word[mine].view(np.int64)
        return column

    def text_column(self, stat_id: int, owner: Ints, owners: int, stat_names: Mapping[int, str]) -> Texts:
        """A text for each owner; NO_TEXT where it has none."""
        column = np.full(owners, NO_TEXT, dtype=np.int64)
        place: dict[str, int] = {}
        of_name = self.name_id == stat_id
        referring = np.flatnonzero(of_name & (self.form == _REFERENCE))
        ids, inverse = np.unique(self.word[referring].view(np.int64), return_inverse=True)
        texts = [stat_names.get(key, "") for key in ids.tolist()]
        moved = np.array([place.setdefault(text, len(place)) for text in texts], dtype=np.int64)
        if len(referring):
            column[owner[referring]] = moved[inverse]
        for index in np.flatnonzero(of_name & (self.form == _TEXT)).tolist():
            column[owner[index]] = place.setdefault(self._text(index), len(place))
        return Texts(column, tuple(place))

    def _text(self, index: int) -> str:
        return self.data[int(self.start[index]) : int(self.end[index])].decode("utf-8", "replace")

    def _value(self, index: int, stat_names: Mapping[int, str]) -> StatValue | None:
        form = int(self.form[index])
        if form == _DOUBLE:
            return float(self.word[index : index + 1].view(np.float64)[0])
        if form == _UINT:
            return int(self.word[index])
        if form == _INT:
            return int(self.word[index : index + 1].view(np.int64)[0])
        if form == _TEXT:
            return self._text(index)
        if form == _REFERENCE:
            return stat_names.get(int(self.word[index]), "")
        return Span(int(self.start[index]), int(self.end[index])) if form == _BYTES else None


def read_stats(data: bytes | bytearray, starts: Ints, ends: Ints) -> Stats:
    """Decode the XStat messages at data[starts[i]:ends[i]]; of several values in one message the last counts."""
    fields = read_fields(data, starts, ends)
    count = len(starts)
    form = np.zeros(count, dtype=np.int64)
    word = np.zeros(count, dtype=np.uint64)
    start, end = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    readable = np.zeros(len(fields.owner), dtype=np.bool_)
    for number, wire in _WIRE_OF.items():
        readable |= (fields.number == number) & (fields.wire == wire)
    value = fields.where(readable)
    form[value.owner], word[value.owner] = value.number, value.word
    start[value.owner], end[value.owner] = value.start, value.end
    return Stats(data, fields.last_word(_METADATA_ID, count), form, word, start, end)
