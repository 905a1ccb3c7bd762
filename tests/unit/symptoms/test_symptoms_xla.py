"""Profiles of JAX and XLA in which something is missing that viewers and other tools stand on."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from projector.errors import EmptyTrace
from tests.unit.xplane.xplane_builder import PlaneBuilder, space, tpu_plane
from traces.content import Content, Limits
from traces.readers import jax_chrome
from traces.summary import read_summary, summarise
from traces.summary_types import TraceSummary
from traces.xplane import chrome_space
from traces.xplane.convert import traces_of
from traces.xplane.decode import decode_space

NS = 1_000


def summary_of(*planes: PlaneBuilder) -> TraceSummary:
    return summarise(traces_of(decode_space(Content("a.xplane.pb", space(*planes)), Limits())))


def core(*ops: tuple[str, str, int, int]) -> PlaneBuilder:
    plane = tpu_plane(0)
    line = plane.line("XLA Ops")
    for name, category, begin, end in ops:
        line.event(plane.kind(f"%{name} = f32[4]", name, hlo_category=category), begin * NS, (end - begin) * NS)
    return plane


def viewer(*events: dict[str, Any]) -> Content:
    named = [
        {"ph": "M", "pid": 3, "name": "process_name", "args": {"name": "/device:TPU:0"}},
        {"ph": "M", "pid": 3, "tid": 2, "name": "thread_name", "args": {"name": "XLA Ops"}},
    ]
    document = {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": [*named, *events]}
    return Content("host.trace.json", json.dumps(document).encode())


def fusion(number: int) -> dict[str, Any]:
    args = {"hlo_category": "loop fusion"}
    return {"ph": "X", "pid": 3, "tid": 2, "name": f"fusion.{number}", "ts": number, "dur": 0.5, "args": args}


def test_without_a_marked_step_times_are_those_of_the_window_and_not_zero() -> None:
    found = summary_of(core(("fusion.1", "convolution fusion", 0, 60), ("all-reduce.1", "all-reduce", 70, 100)))
    assert (found.window_ns, found.compute_ns, found.communication_ns, found.idle_ns) == (100, 60, 30, 10)
    assert found.ranks[0].steps == ()
    assert found.kpis is not None
    assert found.kpis.step_time_s is None


def test_a_profile_in_which_no_event_was_collected_is_empty_and_says_what_to_do() -> None:
    for planes in ((), (tpu_plane(0),), (PlaneBuilder("/host:CPU"), tpu_plane(0))):
        with pytest.raises(EmptyTrace) as refused:
            summary_of(*planes)
        assert "step" in refused.value.hint


@pytest.mark.parametrize(("events", "is_cut"), [(3, False), (4, True), (5, True)])
def test_a_viewers_file_that_reaches_its_limit_is_cut_and_told(
    monkeypatch: pytest.MonkeyPatch, events: int, is_cut: bool
) -> None:
    """The writer stops at a million events and says nothing; a file of exactly that many is taken for a cut one."""
    assert chrome_space.VIEWER_LIMIT_EVENTS == 1_000_000
    monkeypatch.setattr(chrome_space, "VIEWER_LIMIT_EVENTS", 4)
    (trace,) = jax_chrome.read(viewer(*map(fusion, range(events))), Limits())
    assert len(trace) == events
    told = [warning for warning in trace.warnings if "its writer stops at a million" in warning]
    assert bool(told) is is_cut
    assert all("give the xplane.pb of the same run" in warning for warning in told)


def test_kernels_that_name_no_operator_are_counted_and_unclassified() -> None:
    """With command buffers on, GPU kernels carry no HLO operator: the table is not empty, and nothing is made up."""
    plane = PlaneBuilder("/device:GPU:0", stats={"device_vendor": "Nvidia", "core_count": 132})
    stream = plane.line("Stream #3(Kernel)")
    stream.event(plane.kind("mystery_17"), 0, 60 * NS, correlation_id=1)
    stream.event(plane.kind("nvjet_tst_64x8"), 60 * NS, 40 * NS, correlation_id=1)
    found = summary_of(plane)
    assert (found.compute_ns, found.unclassified_ns) == (100, 60)
    assert {(row.name, row.total_ps) for row in found.op_table} == {
        ("mystery_17", 60 * NS),
        ("nvjet_tst_64x8", 40 * NS),
    }
    assert all((row.bound, row.roofline_efficiency_frac) == ("unknown", None) for row in found.op_table)


def test_the_last_operator_of_a_line_has_its_time() -> None:
    found = summary_of(core(("fusion.1", "loop fusion", 0, 10), ("fusion.2", "loop fusion", 10, 90)))
    assert {row.name: row.total_ps for row in found.op_table} == {"fusion.1": 10 * NS, "fusion.2": 80 * NS}


def test_a_viewers_file_of_many_events_in_gzip_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "host.trace.json.gz"
    path.write_bytes(gzip.compress(bytes(viewer(*map(fusion, range(20_000))).data)))
    assert read_summary([path]).compute_ns == 20_000 * 500
