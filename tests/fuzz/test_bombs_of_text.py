"""Text that asks for much: nesting, digits, one value that does not end, and a million of everything.

Read in a process of its own whose memory is watched, as in test_bombs.
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.bomb_examples import FLAT, MIB, WHOLE, packed, refused, written
from tests.fuzz.measured import STATUS, Reader, Reading
from tests.unit.traces.trace_examples import kernel
from tests.unit.xplane.xplane_builder import space, tpu_plane
from traces.content import Limits

pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="the peak of resident memory is read from /proc")

ONE_EVENT = 64 * MIB
"""The longest event that is believed (`traces.chrome.stream`); its text is there as it is and as it is searched."""
ANY_RATIO = Limits(max_ratio=1e9)


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    with Reader() as process:
        yield process


# --- nesting, digits, lengths -----------------------------------------------------------------------------------------

DEEP = 1_000_000
BRACKETS = b"[" * DEEP + b"]" * DEEP
NESTED: dict[str, tuple[bytes, str]] = {
    "an argument": (
        b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1, "args": {"a": @}}]}',
        "TraceTooLarge",
    ),
    "events": (b'{"traceEvents": @}', "CorruptTrace"),
    "no events": (b"@", "UnknownTraceFormat"),
    "a viewer's argument": (
        b'{"metadata": {"highres-ticks": true}, "traceEvents": [{"args": {"a": @}}]}',
        "TraceTooLarge",
    ),
    "a node": (b'{"schema": "1.1.1", "nodes": [{"id": 1, "name": "a", "inputs": {"values": @}}]}', "TraceTooLarge"),
    "a node of a graph": (b'{"workload_graph": [{"Id": 1, "x": @}]}', "TraceTooLarge"),
    "a summary": (b'{"shardwise_summary": 1, "redacted": false, "summary": @}', "CorruptTrace"),
}


@pytest.mark.parametrize("place", NESTED)
def test_a_million_brackets(reader: Reader, tmp_path: Path, place: str) -> None:
    text, kind = NESTED[place]
    for number, brackets in enumerate((BRACKETS, b"[" * DEEP, b'{"a":' * DEEP + b"1" + b"}" * DEEP)):
        path = packed(tmp_path / f"{number}.json.gz", [text.replace(b"@", brackets)])
        reading = reader.read(path)
        assert reading.outcome in {kind, "TraceTooLarge", "CorruptTrace", "UnknownTraceFormat"}, reading
        assert reading.rise_bytes <= FLAT, reading


def test_nested_metadata_does_not_cost_the_events(reader: Reader, tmp_path: Path) -> None:
    text = b'{"distributedInfo": @, "traceEvents": [' + WHOLE + b"]}"
    reading = reader.read(packed(tmp_path / "outer.json.gz", [text.replace(b"@", BRACKETS)]))
    assert reading.outcome in ("read", "TraceTooLarge")
    assert reading.rise_bytes <= FLAT


DIGITS = b"1" * 1_000_000
NUMBERS: dict[str, bytes] = {
    "a time": b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": @, "dur": 1}, %]}',
    "a duration": b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": "@"}, %]}',
    "ids": b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1, "pid": @, "tid": "@", '
    b'"args": {"correlation": @}}, %]}',
    "shapes": b'{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 1, '
    b'"args": {"Input Dims": [[@]], "Input type": ["float"]}}, %]}',
    "ranks": b'{"distributedInfo": {"rank": @, "world_size": @}, "baseTimeNanoseconds": @, "traceEvents": [%]}',
}


@pytest.mark.parametrize("place", NUMBERS)
def test_numbers_of_a_million_digits(reader: Reader, tmp_path: Path, place: str) -> None:
    text = NUMBERS[place].replace(b"@", DIGITS).replace(b"%", WHOLE)
    reading = reader.read(packed(tmp_path / "digits.json.gz", [text]))
    assert reading.outcome == "read", reading
    assert reading.facts["ranks"] in (1, 2)  # an event whose device cannot be read is of no known one
    assert reading.rise_bytes <= FLAT


@pytest.mark.parametrize(
    "text",
    [
        b'{"metadata": {"highres-ticks": true}, "traceEvents": [{"ph": "X", "pid": @, "tid": 1, "ts": 1, "dur": 1}]}',
        b'{"metadata": {"highres-ticks": true}, "traceEvents": [{"ph": "X", "pid": 1, "tid": 1, "ts": @, "dur": @}]}',
        b'{"schema": "1.1.1", "nodes": [{"id": @, "name": "a"}]}',
        b'{"workload_graph": [{"Id": @, "start_time_micros": @}]}',
        b'{"shardwise_summary": @, "summary": {}}',
        b'{"shardwise_summary": 1, "redacted": false, "summary": {"window_ns": @}}',
    ],
)
def test_numbers_of_a_million_digits_elsewhere(reader: Reader, tmp_path: Path, text: bytes) -> None:
    reading = reader.read(packed(tmp_path / "digits.json.gz", [text.replace(b"@", DIGITS)]))
    assert reading.outcome in ("CorruptTrace", "EmptyTrace", "TraceWithoutTimes"), reading
    assert reading.rise_bytes <= FLAT


HUGE = 100
LONG: dict[str, tuple[bytes, bytes]] = {
    "a name": (b'{"traceEvents": [{"ph": "X", "cat": "kernel", "ts": 1, "dur": 1, "name": "', b'"}, ' + WHOLE + b"]}"),
    "a name without an end": (b'{"traceEvents": [{"ph": "X", "cat": "kernel", "ts": 1, "dur": 1, "name": "', b""),
    "an argument nobody reads": (
        b'{"traceEvents": [{"ph": "X", "cat": "kernel", "args": {"x": "',
        b'"}}, ' + WHOLE + b"]}",
    ),
    "metadata before the events": (b'{"x": "', b'", "traceEvents": [' + WHOLE + b"]}"),
    "metadata behind the events": (b'{"traceEvents": [' + WHOLE + b'], "x": "', b'"}'),
}


@pytest.mark.slow
@pytest.mark.parametrize("place", LONG)
def test_one_text_of_a_hundred_megabytes(reader: Reader, tmp_path: Path, place: str) -> None:
    """With the limit on the ratio lifted, so that it is the text itself that is too long."""
    before, behind = LONG[place]
    path = packed(tmp_path / "long.json.gz", [before, *[b"a" * MIB] * HUGE, behind])
    reading = reader.read(path, ANY_RATIO)
    refused(reading, "TraceTooLarge", "longer than", rise=FLAT + 2 * ONE_EVENT)


@pytest.mark.slow
def test_one_text_of_half_a_gigabyte_stops_at_its_ratio(reader: Reader, tmp_path: Path) -> None:
    before = LONG["a name"][0]
    path = packed(tmp_path / "long.json.gz", [before, *[b"a" * MIB] * 500, b'"}]}'])
    assert path.stat().st_size < 4 * MIB
    refused(reader.read(path), "TraceTooLarge", "compression ratio")


# --- many of everything -----------------------------------------------------------------------------------------------

_COLLECTIVE = '"Collective name": "allreduce", "In msg nelems": 8, "dtype": "Float"'
MANY: dict[str, str] = {
    "names": '{"ph": "X", "cat": "kernel", "name": "gemm_%(i)d", "pid": 0, "tid": 7, "ts": %(i)d, "dur": 1}',
    "streams": '{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": %(i)d, "ts": %(i)d, "dur": 1}',
    "threads": '{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": %(i)d, "ts": %(i)d, "dur": 1}',
    "process groups": '{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 7, '
    '"ts": %(i)d, "dur": 1, "args": {' + _COLLECTIVE + ', "Group size": 8, "Process Group Name": "g%(i)d"}}',
    "process groups of a million ranks": '{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, '
    '"tid": 7, "ts": %(i)d, "dur": 1, "args": {'
    + _COLLECTIVE
    + ', "Group size": 1000000, "Process Group Name": "g%(i)d", '
    '"Global rank start": %(i)d, "Global rank stride": 1}}',
    "shapes": '{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": %(i)d, "dur": 1, '
    '"args": {"Input Dims": [[%(i)d, 8], [8, 4]], "Input type": ["float", "float"]}}',
    "memory reports": '{"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": %(i)d, '
    '"args": {"Device Type": 1, "Device Id": %(i)d, "Total Allocated": 5}}',
}
BYTES_AN_EVENT = 3_000
"""What may be held for an event that makes up a thing of its own: row, text, arguments, a line of a table."""
LARGEST_SUMMARY_BYTES = 4 * MIB


def many(path: Path, what: str, count: int) -> Path:
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write('{"traceEvents": [\n')
        file.writelines(MANY[what] % {"i": number} + ",\n" for number in range(count))
        file.write(WHOLE.decode() + "]}")
    return path


@pytest.mark.parametrize("what", MANY)
def test_twenty_thousand_of_a_thing(reader: Reader, tmp_path: Path, what: str) -> None:
    check_many(reader.read(many(tmp_path / "many.json.gz", what, 20_000)), 20_000)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("what", MANY)
def test_a_million_of_a_thing(reader: Reader, tmp_path: Path, what: str) -> None:
    check_many(reader.read(many(tmp_path / "many.json.gz", what, 1_000_000)), 1_000_000)


def check_many(reading: Reading, count: int) -> None:
    assert reading.outcome == "read", reading
    assert sum(reading.facts["event_counts"].values()) == count + 1
    assert reading.rise_bytes <= FLAT + BYTES_AN_EVENT * count, reading
    assert reading.facts["bytes"] <= LARGEST_SUMMARY_BYTES


def test_more_devices_than_any_machine_has(reader: Reader, tmp_path: Path) -> None:
    path = tmp_path / "devices.json.gz"
    events = ({**kernel("k", number, 1), "args": {"device": number, "stream": 7}} for number in range(20_000))
    packed(path, [b'{"traceEvents": [', b",".join(json.dumps(event).encode() for event in events), b"]}"])
    refused(reader.read(path), "TraceTooLarge", "number of devices in devices.json.gz is at least 20,000")
    planes = space(*(tpu_plane(number) for number in range(2_000)))
    refused(reader.read(written(tmp_path / "a.xplane.pb", planes)), "TraceTooLarge", "number of planes")


def test_a_viewers_file_of_many_events_needs_little_memory(reader: Reader, tmp_path: Path) -> None:
    """The whole of it is decoded at once; that is a few times its text."""
    named: list[dict[str, Any]] = [
        {"ph": "M", "pid": 3, "name": "process_name", "args": {"name": "/device:TPU:0"}},
        {"ph": "M", "pid": 3, "tid": 2, "name": "thread_name", "args": {"name": "XLA Ops"}},
    ]
    args = {"hlo_category": "loop fusion", "long_name": "%fusion = f32[1024]{0} fusion(f32[1024]{0} %p), kind=kLoop"}
    timed = [
        {"ph": "X", "pid": 3, "tid": 2, "name": f"fusion.{number % 100}", "ts": number, "dur": 0.5, "args": args}
        for number in range(100_000)
    ]
    text = json.dumps({"metadata": {"highres-ticks": True}, "traceEvents": named + timed}).encode()
    reading = reader.read(packed(tmp_path / "host.trace.json.gz", [text]))
    assert (reading.outcome, reading.facts["compute_ns"]) == ("read", 100_000 * 500)
    assert reading.rise_bytes <= FLAT + 6 * len(text)
