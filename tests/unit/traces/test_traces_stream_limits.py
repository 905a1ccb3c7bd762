"""The stream's limits: memory, giant events, boundaries that are none, lists that stand twice."""

import json
import tracemalloc
from collections.abc import Iterator

import pytest
from same_trace import assert_same, outcome
from trace_examples import document, kernel, op, traces_of_text

from projector.errors import CorruptTrace, TraceTooLarge
from traces.chrome import mending
from traces.content import Content, Limits
from traces.readers import kineto
from traces.trace import Trace

HEAD = b'{"schemaVersion": 1, "traceEvents": [\n'
TAIL = b"  " + json.dumps(kernel("last", 5, 1)).encode() + b"\n]}"
STACK = json.dumps({"ph": "X", "cat": "python_function", "name": "main.py(1): f", "ts": 1, "dur": 2}).encode()
BLOCK = (b"  " + STACK + b",\n") * 8_192


class Repeated(Content):
    """A file that says one thing many times, made as it is read."""

    def __init__(self, times: int) -> None:
        super().__init__("long.json", HEAD)
        self._times = times

    def blocks(self) -> Iterator[bytes]:
        yield HEAD
        for _ in range(self._times):
            yield BLOCK
        yield TAIL


def read(text: bytes, *, chunk_bytes: int = 64, limits: Limits = Limits()) -> tuple[Trace, ...]:  # noqa: B008
    return kineto.read(Content("t.json", text), limits, chunk_bytes=chunk_bytes)


def test_memory_does_not_grow_with_what_nobody_reads() -> None:
    peaks = []
    for times in (4, 40):
        tracemalloc.start()
        (trace,) = kineto.read(Repeated(times), Limits())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert trace.event_counts == {"kernel": 1, "python_function": 8_192 * times}
    assert peaks[1] < 1.2 * peaks[0]
    assert peaks[1] < 10 * len(BLOCK)


def test_the_number_of_events_is_held_as_the_file_is_read() -> None:
    with pytest.raises(TraceTooLarge, match=r"number of events in long.json is at least .* over the limit of 100,000"):
        kineto.read(Repeated(10**9), Limits(max_events=100_000))


def test_an_event_may_be_larger_than_a_chunk() -> None:
    giant = kernel("giant" * 10_000, 3, 1, note=[{"ph": "X"}, {"ph": "X"}] * 100)
    text = json.dumps(document(kernel("a", 1, 1), giant, kernel("b", 9, 1))).encode()
    for chunk_bytes in (1_000, 1 << 20):
        (trace,) = read(text, chunk_bytes=chunk_bytes)
        assert [trace.name(row)[:5] for row in range(3)] == ["a", "giant", "b"]
        assert trace.warnings == ()


def test_objects_within_an_event_that_look_like_events_are_not_cut() -> None:
    """The last boundary of many a chunk is inside an event here; what is cut there is no list of whole objects."""
    inner = [{"ph": "X", "cat": "kernel", "name": "inner", "ts": 1, "dur": 1}] * 40
    events = [op("aten::mm", 10 * number, 5, note=inner) for number in range(30)]
    text = json.dumps({"traceEvents": events}, separators=(",", ":")).encode()
    (whole,) = read(text, chunk_bytes=1 << 20)
    assert len(whole) == 30
    assert whole.warnings == ()
    for chunk_bytes in (500, 1_500, 4_000):
        assert_same(read(text, chunk_bytes=chunk_bytes), (whole,))


def test_a_key_of_the_list_inside_another_object_is_passed_over() -> None:
    text = json.dumps({"note": {"traceEvents": [1, 2]}, **document(kernel("k", 1, 1))}).encode()
    (trace,) = read(text, chunk_bytes=1 << 20)
    assert trace.names == ("k",)


def test_of_two_lists_the_first_counts() -> None:
    text = b'{"traceEvents": [%s], "traceEvents": [], "traceName": "t"}' % json.dumps(kernel("k", 1, 1)).encode()
    (trace,) = read(text)
    assert (trace.names, trace.metadata.trace_name) == (("k",), "t")


@pytest.mark.parametrize("text", [b"\xef\xbb\xbf", b"\n\n  \t"])
def test_what_may_stand_before_the_json(text: bytes) -> None:
    for whole in (HEAD + TAIL, b"[" + TAIL[:-1]):
        (trace,) = read(text + whole, chunk_bytes=1)
        assert trace.names == ("last",)


@pytest.mark.parametrize(
    "text", [b'{"traceEvents": ', b'{"traceEvents": null}', b'{"schemaVersion": 1}', b'"traceEvents"']
)
def test_a_file_without_a_list_is_corrupt(text: bytes) -> None:
    with pytest.raises(CorruptTrace, match="without a list of events"):
        read(text)


def test_invalid_utf8_is_counted_wherever_it_stands() -> None:
    stack = STACK.replace(b"main", b"m\xff\xfe")
    text = b'{"traceName": "\xff", "traceEvents": [\n' + stack + b",\n" + TAIL
    for careful in (False, True):
        (trace,) = traces_of_text(text, careful=careful)
        assert trace.warnings == ("3 byte sequences were not valid UTF-8 and were replaced",)


def test_damage_far_into_a_file_is_mended_as_event_by_event() -> None:
    broken = BLOCK + STACK.replace(b"main", b"C:\\qml") + b",\n" + BLOCK
    for text in (HEAD + broken * 3 + TAIL, HEAD + broken + b"  <<<< rubbish,\n" + broken + TAIL):
        content = Content("t.json", text)
        streamed = outcome(lambda content=content: kineto.read(content, Limits()))
        assert_same(streamed, outcome(lambda content=content: kineto.read(content, Limits(), careful=True)))
        assert isinstance(streamed, tuple)
        assert "events had broken JSON and were repaired" in "".join(streamed[0].warnings)


@pytest.mark.parametrize(
    "text",
    [
        HEAD + json.dumps(kernel("k" * 9_000, 1, 1)).encode() + b"\n]}",
        HEAD + TAIL[:-1] + b', "note": "' + b"x" * 9_000 + b'"}',
        b'{"note": "' + b"x" * 9_000 + b'", ' + HEAD[1:] + TAIL,
        HEAD + b" " * 9_000 + TAIL,
    ],
    ids=["event", "behind", "before", "blanks"],
)
def test_what_has_to_be_in_memory_at_once_has_a_limit(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(read(text)[0]) == 1
    monkeypatch.setattr(mending, "LONGEST_PIECE", 5_000)
    with pytest.raises(TraceTooLarge, match="one event, or the text around the list of events, is longer than 5,000"):
        read(text)
