"""Files that once broke a reader, as small as they could be made; each was found by hypothesis or by the fuzzer."""

import json
from typing import Any

import pytest

from projector.errors import CorruptTrace, TraceTooLarge, UnknownTraceFormat
from tests.fuzz.checks import checked
from tests.fuzz.harness import file_of, target
from tests.fuzz.seeds import SEEDS
from tests.unit.jobs.archive_examples import zip_of
from tests.unit.traces.trace_examples import document, kernel, op, trace_of, traces_of_text
from tests.unit.xplane.xplane_builder import space, tpu_plane
from traces.content import Content, Limits
from traces.read import read_traces
from traces.readers import xplane
from traces.rules.pattern import why_refused
from traces.stored.document import document_of, read_summary_document
from traces.stored.redact import redact
from traces.summary import summarise

NS = 1_000


def kineto(*events: Any) -> bytes:
    return json.dumps({"traceEvents": list(events)}).encode()


@pytest.mark.parametrize(
    "data",
    [
        kineto([]),
        kineto(5, kernel("k", 1, 2), "7.0", None),
        kineto(kernel("k", 1, 2), [[[{"a": [{"ph": "X", "cat": "kernel", "ts": 1}]}]]]),
        kineto({**kernel("k", 1, 2), "ts": [{"a": 0.5}]}),
        kineto({**kernel("k", 1, 2), "args": {"Input Dims": [0.5, [1.5]], "External id": 1e5}}, {"args": 0}),
        kineto(op("aten::mm", 1, 2, **{"External id": 1e5, "Input Dims": [[0.5, 2]]}), op("a", 3, 1, bytes=-1)),
        kineto(op("aten::mm", 1, 2, **{"Input Dims": [[1]], "Input type": ["a\ufffd"]})).replace(
            b"\\ufffd", b"\xff\xfe"
        ),
    ],
    ids=["a list", "numbers", "nested lists", "a list as time", "decimals", "exponents", "no text"],
)
def test_every_way_through_a_file_gives_the_same(data: bytes) -> None:
    """Events that are no objects, decimals inside lists, numbers with exponents, bytes that are no text."""
    target("kineto").run(data)


def test_where_the_list_begins_does_not_depend_on_how_much_was_read_at_first() -> None:
    """A key of the same name inside the metadata."""
    inner = b'{"distributedInfo": {"rank": 3, "pg_config": [{"traceEvents": [0, 1]}]}, "traceEvents": ['
    data = inner + b", ".join(json.dumps(kernel(f"k{number}", number, 1)).encode() for number in range(9)) + b"]}"
    target("kineto").run(data)
    (trace,) = traces_of_text(data)
    assert (len(trace), trace.metadata.rank) == (9, 3)


def test_halves_of_surrogate_pairs_in_metadata_can_be_written() -> None:
    group = {"pg_name": "\ud800", "pg_desc": "x\ud800", "pg_size": 2, "ranks": [0, 1]}
    info = {"rank": 0, "backend": "\udc00", "pg_config": [group]}
    trace = trace_of(kernel("k", 1, 2), distributedInfo=info, deviceProperties=[{"id": 0, "name": "\ud800"}])
    checked([trace])
    assert trace.metadata.groups[0].description == "x\ufffd"


def test_metadata_that_cannot_be_read_is_told() -> None:
    for text in ('{"distributedInfo": @, "traceEvents": [%]}', '{"traceEvents": [%, {"ph" 1}], "distributedInfo": @}'):
        deep = "[" * 100_000 + "]" * 100_000
        (trace,) = traces_of_text(text.replace("@", deep).replace("%", json.dumps(kernel("k", 1, 2))))
        assert any("what stands around the list of events is broken" in warning for warning in trace.warnings)


def test_a_pattern_that_a_later_python_reads_otherwise_is_refused() -> None:
    assert why_refused("[[a]b") == "it is no regular expression: Possible nested set at position 1"


def test_products_that_take_no_time_have_no_share_to_divide_by() -> None:
    summary = checked([trace_of(kernel("volta_sgemm_128x64", 5, 0), kernel("x", 6, 1))])
    assert summary.implied.dtype is None


def test_ranks_of_a_thousand_digits_are_no_ranks() -> None:
    args = {"Collective name": "allreduce", "Process Group Ranks": f"[0, {'1' * 5_000}]", "Group size": 2}
    trace = trace_of(kernel("ncclDevKernel_AllReduce", 0, 5, **args))
    assert trace.collectives[0].ranks == ()


def test_a_member_of_a_zip_without_a_name() -> None:
    data = bytearray(zip_of({"x": kineto(kernel("k", 1, 2))}))
    for header, place in ((b"PK\x03\x04", 26), (b"PK\x01\x02", 28)):
        lengths = data.index(header) + place
        data[lengths : lengths + 4] = b"\0\0\1\0"  # the name becomes an extra field
    with file_of(bytes(data)) as path:
        assert len(read_traces([path])) == 1


def test_a_file_with_the_marks_of_two_formats_is_refused() -> None:
    data = b'{"workload_graph": [{"Id": 1}], "traceEvents": []}'
    with file_of(data) as path, pytest.raises(UnknownTraceFormat, match=r"marks of several formats: Chakra.*Kineto"):
        read_traces([path])


def test_a_device_with_a_number_of_a_hundred_digits_is_no_device() -> None:
    plane = tpu_plane(0)
    plane.name = "/device:TPU:" + "1" * 100
    plane.line("XLA Ops").event(plane.kind("%f", "f", hlo_category="all-reduce"), 0, 50 * NS)
    target("xplane").run(space(plane))


@pytest.mark.parametrize(
    "stats",
    [{"memory_size": float("inf")}, {"peak_teraflops_per_second": 1e-320}, {"peak_hbm_bw_gigabytes_per_second": 1e300}],
)
def test_figures_no_device_has_are_not_stated(stats: dict[str, float]) -> None:
    plane = tpu_plane(0, **stats)
    plane.line("XLA Ops").event(plane.kind("%f", "f", hlo_category="loop fusion", flops=2**62, bytes_accessed=5), 0, NS)
    summary = checked(xplane.read(Content("a.xplane.pb", space(plane)), Limits()))
    assert summary.op_table[0].roofline_efficiency_frac is None


def test_a_file_called_like_a_word_of_ours_leaves_our_words_alone() -> None:
    """A file named "b" stood inside "hbm", and the redacted summary was none any more."""
    (trace,) = xplane.read(Content("b", SEEDS["xplane"]()[0]), Limits())
    summary = redact(summarise([trace]))
    assert {row.bound for row in summary.op_table} == {row.bound for row in summarise([trace]).op_table}


def forged(**changes: Any) -> bytes:
    summary = json.loads(document_of(summarise([trace_of(kernel("nvjet", 0, 5))]), redacted=False).model_dump_json())
    for path, value in changes.items():
        *outer, last = path.split("__")
        place = summary["summary"]
        for key in outer:
            place = place[int(key)] if key.isdigit() else place[key]
        place[last] = value
    return json.dumps(summary).encode()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"ranks__0__launch_bound_frac": 1.5}, "launch_bound_frac is 1.5"),
        ({"ranks__0__launch_bound_frac": -0.5}, "launch_bound_frac is -0.5"),
        ({"kernel_classes__0__total_ns": -1}, "total_ns is -1"),
        ({"top_kernels__0__count": -1}, "count is -1"),
        ({"ranks__0__window__end_ns": 7}, "window"),
    ],
)
def test_a_forged_summary_with_impossible_figures_is_refused(change: dict[str, Any], told: str) -> None:
    with pytest.raises(CorruptTrace, match=told):
        read_summary_document(Content("summary.json", forged(**change)))


def test_a_file_of_more_devices_than_any_machine_has_is_refused() -> None:
    events = [kernel("k", number, 1, device=number) for number in range(1_025)]
    with pytest.raises(TraceTooLarge, match=r"number of devices in example\.json is at least 1,025"):
        traces_of_text(json.dumps(document(*events)))
