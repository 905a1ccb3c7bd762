"""Chakra execution traces, protobuf (`*.et`) and the older JSON form: recognised, not read."""

from traces.content import Content, Limits
from traces.reader import Reader, unsupported
from traces.trace import Trace


def claims(content: Content) -> bool:
    """A JSON workload graph, or a length-delimited metadata message that names the schema."""
    if content.json_start:
        return content.matches(rb'"workload_graph"\s*:')
    head = content.head
    if len(head) < 4 or head[0] >= 0x80 or head[1] not in (0x0A, 0x12):
        return False
    first_message = head[1 : 1 + head[0]]
    return b"schema" in first_message or b"version" in first_message or b"chakra" in first_message


def read(content: Content, _limits: Limits) -> tuple[Trace, ...]:
    """Always `UnsupportedTrace`."""
    form = "a JSON workload graph" if content.json_start else "an execution trace (protobuf)"
    unsupported(content, f"{form} of Chakra", "give the Kineto trace of the same run: it has the device times")


READER = Reader("chakra", "Chakra execution trace (protobuf, JSON)", claims, read)
