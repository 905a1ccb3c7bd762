"""However a file is cut into chunks and however its JSON is laid out, the Trace is the same, on either way."""

import json
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from same_trace import assert_same, outcome

from traces.content import Content, Limits
from traces.readers import kineto
from traces.trace import Trace

NAMES = (
    "aten::linear",
    "ncclDevKernel_AllReduce",
    "ProfilerStep#3",
    "[memory]",
    'quote " and backslash \\',
    'looks like structure },\n  {\n    "ph": "X", "cat": "kernel" ] } {',
    "operator[]{lambda()#1}",
    "späße 核",
    "",
)
CATEGORIES = (
    "kernel",
    "gpu_memcpy",
    "cpu_op",
    "user_annotation",
    "cuda_runtime",
    "python_function",
    "ac2g",
    "Trace",
    "cpu_instant_event",
    "Operator",
    "mtia_ccp_events",
    "kernel",
    "cpu_op",
)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 2**70), st.floats(0, 9), st.sampled_from(("7", "x", "s 3"))
)
ARGS = st.fixed_dictionaries(
    {},
    optional={
        "External id": st.integers(0, 4) | SCALARS,
        "external id": st.integers(0, 4),
        "Record function id": st.integers(0, 4),
        "correlation": st.integers(0, 4) | SCALARS,
        "device": st.sampled_from((0, 1, None, "1")),
        "stream": st.sampled_from((7, 20, "stream 7", True)),
        "bytes": st.integers(0, 99),
        "kind": st.sampled_from(("HtoD", "DtoD", 3)),
        "flops": st.integers(0, 9),
        "Collective name": st.sampled_from(("allreduce", None, 5)),
        "Input Dims": st.sampled_from(([[2, 3], []], "none", [[[1], [2]]])),
        "Device Type": st.sampled_from((0, 1)),
        "Device Id": st.sampled_from((0, 1)),
        "Total Allocated": st.integers(0, 99),
        "cat": st.just("kernel"),
        "stack": st.sampled_from(([{"ph": "X"}, {"ph": "X"}], {"a": {"b": []}})),
    },
)
TIMES = st.one_of(st.integers(0, 99), st.sampled_from((1.5, 2.001, 3.25)))
PLAIN = st.fixed_dictionaries(
    {
        "ph": st.just("X"),
        "cat": st.sampled_from(CATEGORIES),
        "name": st.sampled_from(NAMES),
        "pid": st.sampled_from((1, 2)),
        "tid": st.sampled_from((1, 2)),
        "ts": TIMES,
        "dur": TIMES,
        "args": st.fixed_dictionaries(
            {"External id": st.integers(0, 4)},
            optional={"correlation": st.integers(0, 4), "stream": st.just(7), "Input Dims": st.just([[2, 3], []])},
        ),
    }
)
ODD = st.fixed_dictionaries(
    {"ts": TIMES | st.sampled_from(("17.5", 0.0005, 1e3, None)), "pid": st.just(1)},
    optional={
        "ph": st.sampled_from(("X", "X", "X", "i", "s", "B", "M")),
        "cat": st.sampled_from(CATEGORIES) | st.sampled_from((None, 3)),
        "name": st.sampled_from(NAMES) | st.sampled_from((None, 3)),
        "tid": st.sampled_from((1, 2, "stream 7", "worker")),
        "dur": TIMES | st.sampled_from((-1, None, "3", "soon", 1e15)),
        "args": ARGS | st.none() | st.just("text"),
    },
)
EVENTS = st.lists(PLAIN, min_size=1, max_size=8) | st.lists(PLAIN | ODD, min_size=2, max_size=8)
OUTER = st.fixed_dictionaries(
    {},
    optional={
        "deviceProperties": st.just([{"id": 0, "name": "H100"}, {"id": 1, "name": "H100"}]),
        "distributedInfo": st.just({"rank": 1, "world_size": 4}),
        "traceName": st.just('a "traceEvents": [ b'),
    },
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """An outer object whose list of events stands before, behind or between its other keys."""
    outer, events = draw(OUTER), draw(EVENTS)
    items = [*outer.items(), ("traceEvents", events)]
    return dict(draw(st.permutations(items)))


@st.composite
def layouts(draw: st.DrawFn) -> dict[str, Any]:
    """Arguments of json.dumps."""
    return {
        "indent": draw(st.sampled_from((None, 0, 1, 2, 3, "\t"))),
        "separators": draw(st.sampled_from(((",", ":"), (", ", ": "), (" ,", " : "), ("\n,\r\n", ":\t")))),
        "ensure_ascii": draw(st.booleans()),
    }


def read(text: str | bytes, *, chunk_bytes: int = 1 << 18, careful: bool = False) -> tuple[Trace, ...] | str:
    data = text.encode() if isinstance(text, str) else text
    content = Content("t.json", data)
    return outcome(lambda: kineto.read(content, Limits(), careful=careful, chunk_bytes=chunk_bytes))


@settings(deadline=None, max_examples=300)
@given(documents(), layouts(), st.integers(1, 400))
def test_chunks_of_any_size_give_the_same(document: dict[str, Any], layout: dict[str, Any], chunk_bytes: int) -> None:
    text = json.dumps(document, **layout)
    assert_same(read(text), read(text, chunk_bytes=chunk_bytes))


@settings(deadline=None, max_examples=300)
@given(documents(), layouts(), st.integers(1, 400))
def test_event_by_event_gives_the_same(document: dict[str, Any], layout: dict[str, Any], chunk_bytes: int) -> None:
    text = json.dumps(document, **layout)
    assert_same(read(text), read(text, chunk_bytes=chunk_bytes, careful=True))


@settings(deadline=None, max_examples=200)
@given(documents(), layouts(), layouts(), st.randoms(use_true_random=False), st.integers(1, 400))
def test_the_layout_changes_nothing(
    document: dict[str, Any], left: dict[str, Any], right: dict[str, Any], chance: random.Random, chunk_bytes: int
) -> None:
    shuffled = {**document, "traceEvents": [_shuffled(event, chance) for event in document["traceEvents"]]}
    assert_same(read(json.dumps(document, **left)), read(json.dumps(shuffled, **right), chunk_bytes=chunk_bytes))


@settings(deadline=None, max_examples=200)
@given(EVENTS, layouts(), st.integers(1, 400))
def test_a_bare_array_is_the_same_list(events: list[Any], layout: dict[str, Any], chunk_bytes: int) -> None:
    whole = json.dumps({"traceEvents": events})
    assert_same(read(whole), read(json.dumps(events, **layout), chunk_bytes=chunk_bytes))


@settings(deadline=None, max_examples=300)
@given(documents(), layouts(), st.floats(0, 1), st.integers(1, 400))
def test_a_file_cut_anywhere_gives_the_same_on_either_way(
    document: dict[str, Any], layout: dict[str, Any], kept_frac: float, chunk_bytes: int
) -> None:
    text = json.dumps(document, **layout).encode()
    cut = text[: int(kept_frac * len(text))]
    if b'"traceEvents"' in cut:
        assert_same(read(cut, careful=True), read(cut, chunk_bytes=chunk_bytes))


@settings(deadline=None, max_examples=500)
@given(documents(), layouts(), st.floats(0, 1), st.binary(max_size=3), st.integers(0, 3), st.integers(1, 400))
def test_damage_anywhere_gives_the_same_on_either_way(
    document: dict[str, Any], layout: dict[str, Any], where: float, put: bytes, taken: int, chunk_bytes: int
) -> None:
    text = json.dumps(document, **layout).encode()
    at = int(where * len(text))
    damaged = text[:at] + put + text[at + taken :]
    if b'"traceEvents"' in damaged:
        assert_same(read(damaged, careful=True), read(damaged, chunk_bytes=chunk_bytes))


def _shuffled(event: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    items = list(event.items())
    chance.shuffle(items)
    args = event.get("args")
    return {key: _shuffled(args, chance) if key == "args" and isinstance(args, dict) else value for key, value in items}
