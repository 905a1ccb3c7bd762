"""How much data a collective moves: its message in bytes, and what of it passes each rank's link.

The message is the full buffer: the input of an all-reduce or a reduce-scatter, the output of an all-gather, the larger
side of an all-to-all, what is sent. Bus bytes are what a link between ranks has to carry whatever the algorithm, as
nccl-tests define them (doc/PERFORMANCE.md there), so that bus bandwidths of different collectives and group sizes can
be compared with one another and with the link. Bytes are decimal everywhere: 1 GB/s is 1e9 bytes a second.
"""

from math import prod
from typing import Final, Literal

from traces.trace import CollectiveArgs, Ints, Mask, OpInputs
from traces.work.element_types import element_of

Pattern = Literal["ring", "all_to_all", "pair"]
"""Who sends to whom: along a ring (or tree) of the group, every rank to every other, one rank to another."""

FILLS_A_LINK_BYTES: Final = 4 << 20
"""A message below this size, or below FILLS_A_LINK_BYTES_EACH a rank of the group, is carried at the pace of latencies:
at 50 GB/s 4 MiB take 84 us, ten times what a ring step and its launch take. It says nothing of the link."""

FILLS_A_LINK_BYTES_EACH: Final = 256 << 10

_LARGEST_BYTES: Final = 1 << 40  # a message lies in the memory of one device; larger ones count as not stated

_PATTERNS: Final[dict[str, Pattern]] = {
    "all_reduce": "ring",
    "all_gather": "ring",
    "reduce_scatter": "ring",
    "broadcast": "ring",
    "reduce": "ring",
    "all_to_all": "all_to_all",
    "send": "pair",
    "recv": "pair",
    "send_recv": "pair",
    "collective_permute": "pair",
}
# Spellings beyond the framework's element types: NCCL's own names, quantised and unsigned types, types of bits.
_MORE_BYTES: Final = {
    "int8": 1, "uint8": 1, "byte": 1, "unsignedchar": 1, "signedchar": 1, "qint8": 1, "quint8": 1, "bits8": 1,
    "quint4x2": 1, "quint2x4": 1, "bits1x8": 1, "bits2x4": 1, "bits4x2": 1, "float8e4m3": 1, "float8e5m2": 1,
    "float16": 2, "bits16": 2, "uint16": 2, "int16": 2, "shortint": 2, "unsignedshort": 2,
    "float32": 4, "int32": 4, "uint32": 4, "qint32": 4, "unsignedint": 4,
    "float64": 8, "int64": 8, "uint64": 8, "longint": 8, "longlong": 8, "unsignedlong": 8,
    "complexhalf": 4, "complexfloat": 8, "complexdouble": 16, "complex64": 8, "complex128": 16,
}  # fmt: skip


def pattern_of(collective: str) -> Pattern | None:
    """Traffic pattern of a collective; None for those whose bytes on the link nothing states (dispatch, barriers)."""
    return _PATTERNS.get(collective)


def bus_bytes(collective: str, message_bytes: int, group_size: int) -> float | None:
    """Bytes each link of a group of n ranks has to carry for a message of B bytes.

    all-reduce                                  B * 2 (n - 1) / n
    all-gather, reduce-scatter, all-to-all      B * (n - 1) / n
    broadcast, reduce, send, recv, permute      B
    None for other collectives, and where fewer than two ranks take part.
    """
    if collective not in _PATTERNS or group_size < 2:
        return None
    factors = {
        "all_reduce": 2 * (group_size - 1) / group_size,
        "all_gather": (group_size - 1) / group_size,
        "reduce_scatter": (group_size - 1) / group_size,
        "all_to_all": (group_size - 1) / group_size,
    }
    return message_bytes * factors.get(collective, 1.0)


def fills_a_link(message_bytes: Ints, group_size: int) -> Mask:
    """Which messages are large enough for their pace to be that of the link."""
    return message_bytes >= max(FILLS_A_LINK_BYTES, FILLS_A_LINK_BYTES_EACH * group_size)


def stated_bytes(args: CollectiveArgs) -> int | None:
    """Message the arguments of a collective state: the larger of input and output."""
    element = element_bytes(args.dtype)
    elements = [count for count in (args.in_elements, args.out_elements) if count is not None]
    return _believable(max(elements) * element) if element is not None and elements else None


def operand_bytes(inputs: OpInputs | None, collective: str, group_size: int | None) -> int | None:
    """Message of a collective whose operator shows its shapes: the largest tensor it takes.

    An all-gather that takes its input alone shows one rank's share, so the whole is group_size times that, and unknown
    without it.
    """
    if inputs is None:
        return None
    sizes = [
        prod(shape) * element
        for shape, kind in zip(inputs.dims, inputs.types, strict=False)
        if shape and (element := element_bytes(kind)) is not None
    ]
    if collective == "all_gather" and len(sizes) == 1:
        return _believable(sizes[0] * group_size) if group_size else None
    return _believable(max(sizes)) if sizes else None


def _believable(message_bytes: int) -> int | None:
    return message_bytes if 0 <= message_bytes <= _LARGEST_BYTES else None


def element_bytes(type_name: str) -> int | None:
    """Bytes of one element of a type as profilers spell it ("BFloat16", "c10::Half", "long int", "ncclFloat16")."""
    plain = type_name.lower().removeprefix("c10::").removeprefix("nccl")
    known = element_of(type_name) or element_of(plain)
    return known.size_bytes if known is not None else _MORE_BYTES.get(plain.replace(" ", ""))
