"""No name, and no file, costs more than it is long: ratios of cost at one and at twice or four times the size.

A quadratic cost would have ratios of 4 and 16 where a linear one has 2 and 4; no time on the wall is looked at.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import pytest

import traces
from projector.errors import ShardwiseError
from tests.fuzz.adversarial_names import hard_names
from tests.fuzz.cost import cost_ns, growth
from tests.unit.traces.trace_examples import (
    Event,
    annotation,
    device_annotation,
    document,
    kernel,
    launch,
    memcpy,
    op,
    traces_of_text,
)
from traces.content import Content, Limits
from traces.readers import chakra, jax_chrome, kineto, pytorch_et
from traces.rules.kernel_rules import built_in_rules
from traces.rules.rule import LONGEST_NAME, Rule
from traces.summary import summarise

SUPERLINEAR = 3.0
"""Of twice the size; measured ratios of linear patterns stay below 2.5."""
SUPERLINEAR_OF_FOUR = 9.0
"""Of four times the size."""
WORTH_A_LOOK_NS = 30_000

# used with match alone, at one place: (module, name)
ANCHORED = {
    ("traces.execution_trace.node_texts", "_FIRST_KEY"),
    ("traces.chrome.stream", "_ARRAY"),
    ("traces.xplane.dcn_ops", "_OPERAND"),
    ("traces.stored.redact", "_FILE_NAME"),
}


def hard_for(pattern: re.Pattern[str]) -> list[str]:
    """The names of LONGEST_NAME characters that cost a pattern more than twice what half of them costs."""

    def costs(name: str) -> float:
        return cost_ns(lambda: pattern.search(name), least_ns=100_000)

    suspects = [name for name in hard_names(pattern.pattern, LONGEST_NAME) if costs(name) > WORTH_A_LOOK_NS]
    return [name for name in suspects if all(_ratio(pattern, name) > SUPERLINEAR for _ in range(3))]


def _ratio(pattern: re.Pattern[str], name: str) -> float:
    half = name[: LONGEST_NAME // 2]
    return growth(lambda: pattern.search(half), lambda: pattern.search(name))


@pytest.mark.parametrize("rule", built_in_rules(), ids=lambda rule: f"{rule.table}-{rule.id}")
def test_no_name_is_hard_for_a_rule(rule: Rule) -> None:
    assert hard_for(rule.compiled) == []


def patterns_of_modules() -> Iterator[tuple[str, str, re.Pattern[str]]]:
    """Every compiled pattern for texts that a module of the package holds, also inside tuples and dicts."""

    def within(value: Any, depth: int = 0) -> Iterator[re.Pattern[str]]:
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
            yield value
        elif isinstance(value, (tuple, list)) and depth < 4:
            for one in value:
                yield from within(one, depth + 1)
        elif isinstance(value, dict) and depth < 4:
            yield from within(list(value.values()), depth + 1)

    for info in walk_packages(traces.__path__, "traces."):
        for name, value in vars(import_module(info.name)).items():
            for pattern in within(value):
                yield info.name, name, pattern


@pytest.mark.slow
def test_no_name_is_hard_for_a_pattern_of_any_module() -> None:
    found = {
        (module, name, pattern.pattern): hard[0][:40]
        for module, name, pattern in patterns_of_modules()
        if (module, name) not in ANCHORED and (hard := hard_for(pattern))
    }
    assert found == {}


ALL_REDUCE = {"Collective name": "allreduce", "In msg nelems": 64, "dtype": "Float", "Group size": 2}
SHAPES = {"Input Dims": [[4, 8], [8, 16]], "Input type": ["float", "float"]}


def launched(count: int, *marks: Event) -> list[Event]:
    calls = [launch(number + 1, count + number) for number in range(count)]
    return [
        *marks,
        *calls,
        *(kernel("nvjet", 4 * count + number, 1, correlation=number + 1) for number in range(count)),
    ]


SHAPES_OF_FILES: dict[str, Callable[[int], list[Event]]] = {
    "a stream each": lambda n: [kernel("mystery", 2 * i, 1, stream=i) for i in range(n)],
    "a thread each": lambda n: [op("aten::mm", 3 * i, 3, thread=i) for i in range(n)],
    "a thread and a launch each": lambda n: [
        event
        for i in range(n)
        for event in (
            op("aten::mm", 3 * i, 3, thread=i),
            launch(i + 1, 3 * i + 1, thread=i),
            kernel("k", 3 * i + 2, 1, correlation=i + 1),
        )
    ],
    "a name each": lambda n: [kernel(f"nvjet_{i}", 2 * i, 1) for i in range(n)],
    "a group each": lambda n: [
        kernel("ncclDevKernel_AllReduce", 2 * i, 1, **ALL_REDUCE, **{"Process Group Name": str(i)}) for i in range(n)
    ],
    "a pair each": lambda n: [
        kernel(
            "ncclDevKernel_SendRecv",
            2 * i,
            1,
            **{**ALL_REDUCE, "Collective name": "send", "Src Rank": i, "Dst Rank": i + 1},
        )
        for i in range(n)
    ],
    "a step each": lambda n: launched(n, *(annotation(f"ProfilerStep#{i}", n + i, 1) for i in range(n))),
    "a step on the device each": lambda n: [
        event
        for i in range(n)
        for event in (device_annotation(f"ProfilerStep#{i}", 3 * i, 3), kernel("k", 3 * i + 1, 1))
    ],
    "steps around everything": lambda n: launched(
        n, *(annotation("Optimizer.step#A.step", i / 1000, 9 * n, thread=i) for i in range(n))
    ),
    "operators in one another": lambda n: launched(
        n, *(op("aten::linear", i / 1000, n - i / 500, **SHAPES) for i in range(n))
    ),
    "operators that all ended": lambda n: launched(n, *(op("aten::mm", i / 1000, n - i / 1000) for i in range(n))),
    "kernels over all later ones": lambda n: [kernel("nvjet", i, n - i) for i in range(n)],
    "copies over all later ones": lambda n: [memcpy(i, 2 * n) for i in range(n)],
    "one graph": lambda n: [launch(1, 0), *(kernel("nvjet", 2 * i + 5, 1, correlation=1) for i in range(n))],
    "a category each": lambda n: [kernel("k", 0, 1), *({**kernel("k", i, 1), "cat": f"c{i}"} for i in range(n))],
    "an iteration of a kind each": lambda n: [
        kernel("k", 0, 1),
        *(annotation(f"{'abcdefghij'[i % 10]}{'x' * (i // 10 % 40)}_iteration {i}", 9 * i, 2) for i in range(n)),
    ],
}


@pytest.mark.parametrize("shape", SHAPES_OF_FILES)
def test_reading_costs_no_more_than_the_file_grows(shape: str) -> None:
    """Whatever a file makes up many of, four times as many cost about four times as much, to the summary."""
    small, large = (json.dumps(document(*SHAPES_OF_FILES[shape](count))).encode() for count in (1_000, 4_000))

    def read(text: bytes) -> None:
        summarise(traces_of_text(text))

    ratios = (growth(lambda: read(small), lambda: read(large), least_ns=0) for _ in range(3))
    assert any(ratio < SUPERLINEAR_OF_FOUR for ratio in ratios)


BEGINNINGS: dict[str, tuple[Callable[[Content, Limits], object], bytes]] = {
    "an event": (kineto.read, b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "a", "ts": 1, "dur": 1},'),
    "a name": (kineto.read, b'{"traceEvents": [{"ph": "X", "cat": "kernel", "ts": 1, "dur": 1, "name": "'),
    "a time": (kineto.read, b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "a", "dur": 1, "ts":'),
    "a key": (kineto.read, b'{"x": '),
    "a list": (kineto.read, b"["),
    "a name in a viewer's file": (
        jax_chrome.READER.read,
        b'{"metadata": {"highres-ticks": true}, "traceEvents": [{"ph": "X", "pid": 1, "name": "',
    ),
    "a node": (pytorch_et.READER.read, b'{"schema": "1.1.1", "nodes": [{"id": 1, "name": "a"},'),
    "a node of a graph": (chakra.READER.read, b'{"workload_graph": [{"Id": 1},'),
}
UNITS = (
    b'"',
    b"\\",
    b'"\\',
    b'\\"',
    b"{",
    b"[",
    b"}",
    b"]",
    b'{"a":',
    b'{"ph":',
    b",",
    b" ",
    b"\n",
    b'"a":',
    b"{}",
    b'},{"',
    b'],"traceName":',
    b"NaN,",
    b"\xff",
    b"\x00",
    b"1",
    b"\\u",
    b'{"name":"a","type":',
    b'{"id":1,',
    b'"traceEvents":[',
    b'{"ph":"X","cat":"kernel","name":"a"b","ts":1,"dur":1},',
    b'{"ph":"X","cat":"kernel","name":"\\q","ts":1,"dur":1},',
)


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=repr)
@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_broken_text_costs_no_more_than_it_is_long(beginning: str, unit: bytes) -> None:
    read, head = BEGINNINGS[beginning]
    small, large = (head + unit * (size // len(unit)) for size in (50_000, 200_000))

    def run(data: bytes) -> None:
        with suppress(ShardwiseError):
            read(Content("broken.json", data), Limits())

    if cost_ns(lambda: run(large), least_ns=0) > 20_000_000:
        ratios = (growth(lambda: run(small), lambda: run(large), least_ns=0) for _ in range(3))
        assert any(ratio < SUPERLINEAR_OF_FOUR for ratio in ratios)
