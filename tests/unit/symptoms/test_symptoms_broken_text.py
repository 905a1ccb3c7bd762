"""What profilers write that is no JSON, or no trace of theirs: read as far as it goes, or refused by name."""

import gzip
import json
import tracemalloc
from pathlib import Path

import pytest

from projector.errors import EmptyTrace, UnsupportedTrace
from tests.unit.traces.trace_examples import Event, document, kernel, op, traces_of_text
from traces.content import Limits
from traces.read import read_traces
from traces.summary import read_summary
from traces.trace import Trace


def read(text: str | bytes) -> Trace:
    (trace,) = traces_of_text(text)
    return trace


def names(trace: Trace) -> list[str]:
    return [trace.name(row) for row in range(len(trace))]


def stack(name: str) -> Event:
    return {**op(name, 2, 2), "cat": "python_function"}


def test_a_line_break_and_quotes_in_the_name_of_a_python_function_cost_no_kernel() -> None:
    text = json.dumps(document(kernel("first", 1, 2), stack("@"), kernel("last", 5, 2)))
    trace = read(text.replace("@", '<lambda "x">\n line 2'))
    assert names(trace) == ["first", "last"]
    assert trace.event_counts == {"kernel": 2, "python_function": 1}
    assert trace.warnings == ("1 events had broken JSON and were repaired",)


def test_a_control_character_in_one_of_thousands_of_names() -> None:
    events = [kernel(f"k{number}", number, 1) for number in range(5_000)]
    events[3_000]["name"] = "k@"
    trace = read(json.dumps(document(*events)).replace("k@", "k\x1b[0m"))
    assert len(trace) == 5_000
    assert trace.warnings == ("1 events had broken JSON and were repaired",)


def test_garbage_between_the_digits_of_one_event_costs_that_event_alone() -> None:
    text = json.dumps(document(kernel("a", 1, 2), kernel("b", 1234567, 2), kernel("c", 5, 2)))
    trace = read(text.encode().replace(b"1234567", b"12\x00\xfe\x00567"))
    assert names(trace) == ["a", "c"]
    assert any("could not be read and were dropped" in warning for warning in trace.warnings)


@pytest.mark.parametrize("escape", [r"\q", r"\x41", r"C:\Users\me", r"\ ", r"\u12"])
def test_an_escape_that_is_none(escape: str) -> None:
    trace = read(json.dumps(document(kernel("first", 1, 2), kernel("@", 3, 2))).replace("@", escape))
    assert names(trace) == ["first", escape]


def test_numbers_wider_than_any_type_in_arguments_nobody_reads() -> None:
    trace = read(json.dumps(document(kernel("a", 1, 2, Comms_Id=10**40, other=[2**64, -(2**70)]))))
    assert names(trace) == ["a"]
    assert trace.warnings == ()


def test_a_chrome_trace_of_something_else_is_refused_by_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(
        json.dumps({"traceEvents": [{**kernel("x", 1, 2), "cat": "blink"}, {**kernel("y", 1, 2), "cat": "gpu"}]})
    )
    with pytest.raises(UnsupportedTrace, match=r"not PyTorch's \(categories: blink, gpu\)") as refused:
        read_traces([path])
    assert refused.value.hint == "export the trace with torch.profiler"


def test_a_file_of_metadata_alone_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "meta.json"
    path.write_text(json.dumps(document({"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}})))
    with pytest.raises(EmptyTrace, match="holds no timed operator"):
        read_summary([path])


def test_no_event_at_all_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "none.json"
    path.write_text(json.dumps(document()))
    with pytest.raises(EmptyTrace, match="holds no timed operator"):
        read_summary([path])


def test_a_large_file_is_read_in_little_memory(tmp_path: Path) -> None:
    """40 MB of Python stacks with a few kernels: viewers show nothing, a parser of the whole needs ten times that."""
    one = ",\n".join(json.dumps(stack(f"module.py({number}): forward")) for number in range(2_000))
    path = tmp_path / "large.json.gz"
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write('{"traceEvents": [\n')
        for block in range(100):
            file.write(f"{one},\n{json.dumps(kernel('nvjet', 10 * block, 5))},\n")
        file.write(json.dumps(kernel("nvjet", 5_000, 5)) + "\n]}")
    tracemalloc.start()
    summary = read_summary([path], limits=Limits(max_events=1_000_000), workers=1)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert summary.event_counts == {"kernel": 101, "python_function": 200_000}
    assert peak_bytes < 16 << 20
