"""Writes synthetic XSpace protobufs for the tests, with an encoder of its own; nothing was recorded on a device."""

import struct
from dataclasses import dataclass, field

Value = int | float | str | bytes

READ, WRITE = 1, 2
HBM, CMEM, VMEM = 1, 2, 3


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def number_field(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(value)) + value


def text_field(number: int, value: str) -> bytes:
    return bytes_field(number, value.encode())


def double_field(number: int, value: float) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<d", value)


def memory_breakdown(*accesses: tuple[int, int, int]) -> bytes:
    """(READ or WRITE, HBM or CMEM or VMEM, bytes) as a MemoryAccessBreakdown."""
    return b"".join(
        bytes_field(1, number_field(1, way) + number_field(2, memory) + number_field(3, size))
        for way, memory, size in accesses
    )


@dataclass
class LineBuilder:
    plane: "PlaneBuilder"
    name: str
    timestamp_ns: int = 0
    events: list[bytes] = field(default_factory=list)

    def event(self, kind: int, begin_ps: int, duration_ps: int, **stats: Value) -> None:
        """One timed event."""
        message = number_field(1, kind) + number_field(2, begin_ps) + number_field(3, duration_ps)
        self.events.append(message + self.plane.encoded_stats(4, stats))

    def encode(self, line_id: int) -> bytes:
        head = number_field(1, line_id) + text_field(2, self.name) + number_field(3, self.timestamp_ns)
        return head + b"".join(bytes_field(4, event) for event in self.events)


@dataclass
class PlaneBuilder:
    name: str
    id: int = 0
    stats: dict[str, Value] = field(default_factory=dict)
    lines: list[LineBuilder] = field(default_factory=list)
    kinds: list[bytes] = field(default_factory=list)
    stat_ids: dict[str, int] = field(default_factory=dict)

    def line(self, name: str, timestamp_ns: int = 0) -> LineBuilder:
        self.lines.append(LineBuilder(self, name, timestamp_ns))
        return self.lines[-1]

    def kind(self, name: str, display_name: str = "", **stats: Value) -> int:
        """Event metadata; returns its id."""
        kind_id = len(self.kinds) + 1
        message = number_field(1, kind_id) + text_field(2, name)
        if display_name:
            message += text_field(4, display_name)
        self.kinds.append(message + self.encoded_stats(5, stats))
        return kind_id

    def encoded_stats(self, number: int, stats: dict[str, Value]) -> bytes:
        return b"".join(bytes_field(number, self._stat(name, value)) for name, value in stats.items())

    def _stat(self, name: str, value: Value) -> bytes:
        head = number_field(1, self._stat_id(name))
        if isinstance(value, str):
            return head + number_field(7, self._stat_id(value))
        if isinstance(value, bytes):
            return head + bytes_field(6, value)
        if isinstance(value, float):
            return head + double_field(2, value)
        return head + (number_field(3, value) if value >= 0 else number_field(4, value))

    def _stat_id(self, name: str) -> int:
        return self.stat_ids.setdefault(name, len(self.stat_ids) + 1)

    def encode(self) -> bytes:
        lines = b"".join(bytes_field(3, line.encode(index + 1)) for index, line in enumerate(self.lines))
        kinds = b"".join(
            bytes_field(4, number_field(1, index + 1) + bytes_field(2, kind)) for index, kind in enumerate(self.kinds)
        )
        own = self.encoded_stats(6, self.stats)
        names = b"".join(
            bytes_field(5, number_field(1, stat_id) + bytes_field(2, number_field(1, stat_id) + text_field(2, name)))
            for name, stat_id in self.stat_ids.items()
        )
        return number_field(1, self.id) + text_field(2, self.name) + lines + kinds + names + own


def space(*planes: PlaneBuilder, hostnames: tuple[str, ...] = ("synthetic-host",)) -> bytes:
    """The bytes of an XSpace."""
    return b"".join(bytes_field(1, plane.encode()) for plane in planes) + b"".join(
        text_field(4, name) for name in hostnames
    )


def tpu_plane(index: int, device_type: str = "TPU v5p", **stats: Value) -> PlaneBuilder:
    """A TensorCore plane; peaks only where given."""
    return PlaneBuilder(f"/device:TPU:{index}", id=index, stats={"device_type_string": device_type, **stats})
