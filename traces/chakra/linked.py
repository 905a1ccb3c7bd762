"""PyTorch execution traces to which Chakra's trace linker added the times of the Kineto trace ("host + device", JSON).

A host node gets ts and inclusive_dur; each device event becomes a node of its own, with cat, stream and, for a
collective, pg_name; its ctrl_deps name the host node that launched it, whose attributes and operands it copies. Times
are microseconds as Kineto wrote them. Written by src/trace_link/trace_linker.py of https://github.com/mlcommons/chakra
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Final

import msgspec

from projector.errors import TraceTooLarge
from traces.chakra.graph import ANNOTATION_SCOPE, Node, NodeType
from traces.chrome.exact_time import exact_ns
from traces.content import Content
from traces.execution_trace.communication import collective_args, declares_groups
from traces.execution_trace.node_texts import LARGEST_NODE_BYTES, NodeTexts
from traces.execution_trace.nodes import Node as Written
from traces.execution_trace.nodes import node_of
from traces.execution_trace.operands import op_inputs
from traces.kernel_names import communication_of
from traces.trace import CollectiveArgs

NODES_KEY: Final = "nodes"
_BATCH: Final = 4_096


def is_linked(content: Content) -> bool:
    """Whether an execution trace was given times by a linker."""
    return (
        content.json_start == b"{"
        and content.matches(rb'"schema"\s*:\s*"')
        and content.matches(rb'"nodes"\s*:')
        and content.mentions(b'"inclusive_dur"')
    )


def nodes_of(texts: NodeTexts) -> Iterator[Node | None]:
    """The nodes; None for one that cannot be decoded."""
    written = (_written(text, texts.content.file) for text in texts)
    while batch := list(islice(written, _BATCH)):
        readable = [node for node in batch if node is not None]
        yield from (None for _ in range(len(batch) - len(readable)))
        starts, start_read = exact_ns([node.timing.start for node in readable])
        durations, duration_read = exact_ns([node.timing.duration for node in readable])
        for index, node in enumerate(readable):
            yield _node(
                node,
                int(starts[index]) if start_read[index] else None,
                int(durations[index]) if duration_read[index] else None,
            )


def _written(text: bytes, file: str) -> Written | None:
    if len(text) > LARGEST_NODE_BYTES:
        return None
    try:
        return node_of(text)
    except msgspec.DecodeError:
        return None
    except RecursionError as fault:
        raise TraceTooLarge(f"a node of {file} is nested too deeply", hint="limit max_depth") from fault


def _node(written: Written, start_ns: int | None, duration_ns: int | None) -> Node:
    on_device = bool(written.timing.category)
    if declares_groups(written):
        return Node(written.id, written.name, NodeType.METADATA, groups="".join(map(str, written.inputs.values)))
    collective = _collective(written) if on_device else None
    return Node(
        id=written.id,
        name=written.name,
        type=NodeType.COMP if collective is None else NodeType.COMM_COLL,
        start_ns=start_ns,
        duration_ns=duration_ns,
        on_host=not on_device,
        parent=written.parent,
        stream=written.timing.stream,
        thread=written.thread,
        annotation=written.scope == ANNOTATION_SCOPE,
        collective=collective,
        inputs=None if on_device or start_ns is None else op_inputs(written.inputs),
    )


def _collective(written: Written) -> CollectiveArgs | None:
    """Arguments of the collective that launched a communication kernel."""
    if communication_of(written.name) is None:
        return None
    args = collective_args(written) or CollectiveArgs(name="")
    return args if args.group else replace(args, group=written.timing.group)
