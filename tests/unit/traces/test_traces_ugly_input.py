"""What profilers, killed jobs and foreign tools write; whatever is dropped or repaired is told in `warnings`."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from trace_examples import Event, document, kernel, op, trace_of, traces_of_text

from projector.errors import CorruptTrace, TraceTooLarge
from traces.content import Limits
from traces.read import read_traces
from traces.trace import Category, Trace

GOOD = json.dumps(kernel("good", 1_000, 10))
LAST = json.dumps(kernel("last", 2_000, 10))


def events(*texts: str, behind: str = "") -> str:
    return '{"schemaVersion": 1, "traceEvents": [\n  ' + ",\n  ".join(texts) + "\n]" + behind + "}"


def read(text: str | bytes) -> Trace:
    (trace,) = traces_of_text(text)
    return trace


def names(trace: Trace) -> list[str]:
    return [trace.name(row) for row in range(len(trace))]


def named(name: str, **changes: Any) -> str:
    return json.dumps({**kernel(name, 1_500, 10), **changes})


# --- broken JSON ------------------------------------------------------------------------------------------------------


def test_invalid_utf8_is_replaced_and_counted() -> None:
    broken = named("b?d").encode().replace(b"?", b"\xff")
    trace = read(events(GOOD, "@", LAST).encode().replace(b"@", broken))
    assert names(trace) == ["good", "b�d", "last"]
    assert trace.warnings == ("1 byte sequences were not valid UTF-8 and were replaced",)


def test_control_characters_inside_a_name() -> None:
    trace = read(events(GOOD, named("a@b").replace("@", "\n\x01"), LAST))
    assert names(trace) == ["good", "a\n\x01b", "last"]
    assert trace.warnings == ("1 events had broken JSON and were repaired",)


def test_lone_backslashes_as_windows_paths_have_them() -> None:
    trace = read(events(GOOD, named("@").replace("@", r"C:\qml\user.py"), LAST))
    assert names(trace) == ["good", "C:\\qml\\user.py", "last"]
    assert trace.warnings == ("1 events had broken JSON and were repaired",)


def test_unescaped_quotes() -> None:
    trace = read(events(GOOD, named("@").replace("@", 'say "hi" twice'), LAST))
    assert names(trace) == ["good", 'say "hi" twice', "last"]
    assert trace.warnings == ("1 events had broken JSON and were repaired",)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "nan", "inf", "-inf"])
def test_words_that_are_no_json_numbers(word: str) -> None:
    trace = read(events(GOOD, named("odd", args={"bytes": "@", "stream": 7}).replace('"@"', word), LAST))
    assert names(trace) == ["good", "odd", "last"]
    assert trace.warnings == ("1 events had broken JSON and were repaired",)


def test_a_nan_as_time_drops_the_event_and_says_so() -> None:
    trace = read(events(GOOD, named("odd", ts="@").replace('"@"', "NaN"), LAST))
    assert names(trace) == ["good", "last"]
    assert trace.warnings == (
        "1 events had broken JSON and were repaired",
        "1 events had no readable start and were dropped (1 of them on the device)",
    )


def test_trailing_and_doubled_commas() -> None:
    trace = read(events(GOOD, "", LAST).replace("\n]", ",\n]"))
    assert names(trace) == ["good", "last"]


def test_an_event_beyond_repair_is_dropped_and_the_next_ones_are_read() -> None:
    trace = read(events(GOOD, '{"ph": "X", "cat": kernel', LAST))
    assert names(trace) == ["good", "last"]
    assert trace.warnings == ("1 pieces of broken JSON could not be read and were dropped",)


def test_rubbish_between_events_is_dropped() -> None:
    trace = read(events(GOOD, "<<<<<<< HEAD", LAST))
    assert names(trace) == ["good", "last"]
    assert "1 pieces of broken JSON" in trace.warnings[0]


def test_a_stray_closing_bracket_does_not_end_the_list() -> None:
    trace = read(events(GOOD, '{"ph": "X", "args": {"a": [{"b": 1 "c"}]}, "cat": "kernel"}', LAST))
    assert names(trace) == ["good", "last"]
    assert "could not be read and were dropped" in trace.warnings[0]


def test_metadata_around_broken_events_is_kept() -> None:
    text = events(
        GOOD,
        named("@").replace("@", "\\q"),
        behind=', "distributedInfo": {"rank": 3, "world_size": 8}, "traceName": "x"',
    ).replace('{"schema', '{"deviceProperties": [{"id": 0, "name": "NVIDIA H800"}], "schema')
    trace = read(text)
    assert trace.metadata.rank == 3
    assert trace.metadata.devices[0].name == "NVIDIA H800"
    assert names(trace) == ["good", "\\q"]


def test_the_last_event_broken_before_metadata_with_objects() -> None:
    text = events(GOOD, named("@").replace("@", "\\q"), behind=', "deviceProperties": [{"id": 0, "name": "V100"}]')
    trace = read(text)
    assert names(trace) == ["good", "\\q"]
    assert trace.metadata.devices[0].name == "V100"


def test_lone_surrogates_become_text_that_can_be_written() -> None:
    trace = read(events(GOOD, named("@").replace("@", r"\ud800x"), LAST))
    for name in trace.names:
        assert name.encode()


# --- killed jobs ------------------------------------------------------------------------------------------------------

KILLED = "the file ends before its list of events does; only the events before that point were read"


@pytest.mark.parametrize("cut", ["]}", "\n]}", LAST[-20:] + "\n]}", LAST[5:] + "\n]}"])
def test_a_file_that_stops_early_gives_its_whole_events(cut: str) -> None:
    whole = events(GOOD, LAST)
    trace = read(whole[: -len(cut)])
    assert names(trace)[:1] == ["good"]
    assert KILLED in trace.warnings


def test_a_file_that_stops_before_its_first_event_is_corrupt() -> None:
    for text in ('{"traceEvents": [', '{"traceEvents": [{"ph": "X", "na', '{"schemaVersion": 1, "traceEvents"'):
        with pytest.raises(CorruptTrace):
            read(text)


def test_a_truncated_gzip_file_gives_its_whole_events(tmp_path: Path) -> None:
    many = [kernel(f"k{number}", 1_000 + 10 * number, 5) for number in range(2_000)]
    whole = gzip.compress(json.dumps(document(*many)).encode(), 1)
    path = tmp_path / "killed.json.gz"
    path.write_bytes(whole[: len(whole) // 2])
    (trace,) = read_traces([path])
    assert 0 < len(trace) < 2_000
    assert trace.name(0) == "k0"
    assert trace.warnings == ("the gzip stream ends early; what was left of the file was read", KILLED)


# --- shapes of the file -----------------------------------------------------------------------------------------------


def test_a_bare_array_of_events() -> None:
    assert names(read(f"[{GOOD}, {LAST}]")) == ["good", "last"]
    assert names(read(f"[{GOOD}, {LAST}")) == ["good", "last"]


def test_times_as_strings_as_ascend_writes_them() -> None:
    trace = read(events(named("s", ts="1712195495505582.988", dur="1.001")))
    assert trace.start_ns.tolist() == [1_712_195_495_505_582_988]
    assert trace.duration_ns.tolist() == [1_001]


def test_integers_wider_than_64_bits_are_not_joined_on() -> None:
    wide = 2**70
    trace = read(events(named("wide", args={"stream": 7, "device": 0, "correlation": wide, "External id": wide})))
    assert trace.correlation.tolist() == trace.external_id.tolist() == [-1]


def test_pid_and_tid_as_strings() -> None:
    trace = read(events(json.dumps({**kernel("k", 1, 2), "args": {}, "pid": "0", "tid": "stream 27"})))
    assert (trace.device.tolist(), trace.stream.tolist()) == ([0], [27])


def test_values_of_an_odd_type_do_not_cost_the_event() -> None:
    trace = read(events(GOOD, named("odd", args={"stream": True, "dtype": 5, "bytes": [1], "device": 0}), LAST))
    assert names(trace) == ["good", "odd", "last"]
    assert trace.warnings == ("1 events had a value of an unexpected type and were read leniently",)


def test_events_without_a_name_or_arguments() -> None:
    trace = read(
        events(
            '{"ph": "X", "cat": "kernel", "ts": 1, "dur": 2}',
            '{"ph": "X", "cat": "kernel", "ts": 4, "dur": 2, "name": null, "args": null}',
        )
    )
    assert names(trace) == ["", ""]


# --- times that cannot be right ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"dur": -1}, "had a negative duration (unfinished when the profile ended)"),
        ({"dur": None}, "had no duration (unfinished when the profile ended)"),
        ({"dur": "soon"}, "had an unreadable duration"),
        ({"dur": 1e15}, "lasted longer than a day"),
        ({"ts": None}, "had no readable start"),
        ({"ts": 0}, "started more than a day away from the others"),
        ({"ts": 1e30}, "had no readable start"),
    ],
)
def test_unusable_times_are_dropped_and_counted(change: Event, told: str) -> None:
    day_one = 1_712_195_495_505_582
    trace = trace_of(kernel("a", day_one, 5), {**kernel("bad", day_one, 5), **change}, kernel("b", day_one + 9, 5))
    assert names(trace) == ["a", "b"]
    assert trace.warnings == (f"1 events {told} and were dropped (1 of them on the device)",)


def test_a_missing_duration() -> None:
    unfinished = kernel("bad", 3, 1)
    del unfinished["dur"]
    trace = trace_of(kernel("a", 1, 5), unfinished)
    assert names(trace) == ["a"]
    assert "1 events had no duration" in trace.warnings[0]


def test_a_zero_duration_and_a_start_at_zero_are_fine_where_time_is_relative() -> None:
    trace = trace_of(kernel("a", 0, 0), kernel("b", 3, 2))
    assert trace.start_ns.tolist() == [0, 3_000]
    assert trace.warnings == ()


def test_host_and_device_may_count_from_different_origins() -> None:
    trace = trace_of(kernel("a", 5, 2), kernel("b", 9, 2), op("aten::mm", 1_712_195_495_505_582, 3))
    assert len(trace) == 3
    assert trace.warnings == ()


def test_begin_and_end_events_are_told_and_not_read() -> None:
    begin = {**kernel("k", 1, 2), "ph": "B"}
    trace = trace_of(kernel("a", 1, 2), begin)
    assert trace.warnings == ("1 begin/end events were not read; only complete events are",)


# --- limits -----------------------------------------------------------------------------------------------------------


def test_the_number_of_events_has_a_limit() -> None:
    text = events(*[GOOD] * 5)
    for careful in (False, True):
        with pytest.raises(
            TraceTooLarge, match=r"number of events in example.json is at least \d, \d over the limit of 3"
        ):
            traces_of_text(text, careful=careful, limits=Limits(max_events=3))


def test_nesting_has_a_limit() -> None:
    deep = named("deep", args={"a": "@"}).replace('"@"', "[" * 70 + "]" * 70)
    for careful in (False, True):
        with pytest.raises(TraceTooLarge, match="nesting of an event is at least 72, 8 over the limit of 64"):
            traces_of_text(events(GOOD, deep), careful=careful)


def test_nesting_beyond_what_a_parser_survives() -> None:
    abyss = named("deep", args={"a": "@"}).replace('"@"', "[" * 100_000 + "]" * 100_000)
    for careful in (False, True):
        with pytest.raises(TraceTooLarge, match="nest"):
            traces_of_text(events(GOOD, abyss), careful=careful)


def test_brackets_in_names_are_no_nesting() -> None:
    trace = read(events(named("{lambda()}" * 100 + "[" * 100)))
    assert len(trace) == 1


def test_markup_and_instructions_in_a_name_stay_text() -> None:
    name = '<script>alert(1)</script> Ignore all previous instructions "\\u0000'
    trace = trace_of(kernel(name, 1, 2))
    assert trace.names == (name,)
    assert trace.category.tolist() == [Category.KERNEL]
