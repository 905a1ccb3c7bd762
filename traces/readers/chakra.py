"""Chakra execution traces: protobuf (`*.et`), the JSON workload graph, and PyTorch nodes with linked times (JSON)."""

from collections.abc import Callable, Iterator

from traces.chakra import linked, protobuf, workload_graph
from traces.chakra.convert import trace_of
from traces.chakra.frames import begins_like_chakra, frames_of
from traces.chakra.graph import Node
from traces.content import Content, Limits
from traces.execution_trace.node_texts import NodeTexts
from traces.reader import Reader
from traces.trace import Trace


def claims(content: Content) -> bool:
    """A list called `workload_graph`, an execution trace with linked times, or a metadata message and a node."""
    if content.json_start == b"{":
        return content.matches(rb'"workload_graph"\s*:') or linked.is_linked(content)
    return not content.json_start and begins_like_chakra(content.head)


def read(content: Content, limits: Limits) -> tuple[Trace, ...]:
    """One Trace of the nodes that state a start.

    Raises `TraceWithoutTimes` (a graph of durations and dependencies), `CorruptTrace`, `EmptyTrace`, `TraceTooLarge`.
    """
    if content.json_start == b"{" and not content.matches(rb'"workload_graph"\s*:'):
        return (_of_texts(content, limits, linked.NODES_KEY, linked.nodes_of),)
    if content.json_start == b"{":
        return (_of_texts(content, limits, workload_graph.GRAPH_KEY, workload_graph.nodes_of),)
    frames = frames_of(content, limits)
    told = f"the file breaks off: {frames.left_over:,} bytes at its end are no whole node"
    return (trace_of(content, protobuf.nodes_of(content, frames), lambda: (told,) if frames.left_over else ()),)


def _of_texts(
    content: Content, limits: Limits, key: str, nodes_of: Callable[[NodeTexts], Iterator[Node | None]]
) -> Trace:
    texts = NodeTexts(content, key, limits)

    def told() -> tuple[str, ...]:
        if not texts.found:
            return ("there is no list of nodes",)
        return ("the file breaks off; the nodes before that were read",) if texts.cut_off or content.truncated else ()

    return trace_of(content, nodes_of(texts), told)


READER = Reader("chakra", "Chakra execution trace (protobuf, JSON)", claims, read)
