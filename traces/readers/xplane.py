"""XSpace protobuf of the JAX / XLA profiler (`*.xplane.pb`): TPU, GPU and CPU backends."""

import re
from typing import Final

from traces.content import Content, Limits
from traces.reader import Reader
from traces.trace import Trace

# Field 1 (a plane) that begins with an optional id and a name such profiles use. Lengths are not looked at, and have
# room for bytes a text conversion made three of, so that such a file is recognised and refused by name.
_NUMBER: Final = rb"[\x80-\xff]{0,30}[\x00-\x7f]"
_FIRST_PLANE: Final = re.compile(
    rb"\A\x0a" + _NUMBER + rb"(?:\x08" + _NUMBER + rb")?\x12[\x00-\x7f]"
    rb"(?:/host:|/device:|/virtualdevice:|#Chip|Task Environment|Host CPUs|Syscalls)"
)


def claims(content: Content) -> bool:
    """A first field that is a plane with a name such as /host:CPU or /device:TPU:0."""
    return _FIRST_PLANE.match(content.head[:128]) is not None


def read(content: Content, limits: Limits) -> tuple[Trace, ...]:
    """One Trace for each device with events.

    Raises `CorruptTrace` (damaged, cut off, or converted to text), `EmptyTrace` (no operator), `TraceTooLarge`.
    """
    from traces.xplane.convert import traces_of  # imported by every process that recognises formats, needed by few
    from traces.xplane.decode import decode_space

    return traces_of(decode_space(content, limits), limits)


READER = Reader("xplane", "JAX XPlane (xplane.pb)", claims, read)
