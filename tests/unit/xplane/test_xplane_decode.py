"""XSpace protobuf to columns, and files that are cut off, damaged or not what they seem."""

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xplane_builder import PlaneBuilder, bytes_field, number_field, space, text_field, tpu_plane

from projector.errors import CorruptTrace, EmptyTrace, TraceTooLarge
from traces.content import Content, Limits
from traces.xplane.decode import decode_space
from traces.xplane.space import Space, Span


def decoded(data: bytes, limits: Limits | None = None) -> Space:
    return decode_space(Content("sample.xplane.pb", data), limits or Limits())


def small() -> PlaneBuilder:
    plane = tpu_plane(0, peak_teraflops_per_second=459.0)
    kind = plane.kind("%fusion.1 = f32[]", "fusion.1", hlo_category="loop fusion", flops=10, program_id=-3)
    line = plane.line("XLA Ops", timestamp_ns=5)
    line.event(kind, 1_000, 2_000, group_id=7, hlo_op="fusion.1")
    line.event(kind, 4_000, 500, hlo_op="fusion.1")
    return plane


def test_planes_lines_events_and_stats() -> None:
    found = decoded(space(small(), hostnames=("host-a",)))
    assert found.hostnames == ("host-a",)
    (plane,) = found.planes
    assert (plane.name, plane.stats) == (
        "/device:TPU:0",
        {"device_type_string": "TPU v5p", "peak_teraflops_per_second": 459.0},
    )
    (line,) = plane.lines
    assert (line.name, line.timestamp_ns, found.origin_ns) == ("XLA Ops", 5, 5)
    assert line.begin_ps.tolist() == [1_000, 4_000]
    assert line.duration_ps.tolist() == [2_000, 500]
    kind = plane.kinds[line.kind[0]]
    assert (kind.name, kind.title) == ("%fusion.1 = f32[]", "fusion.1")
    assert kind.stats == {"hlo_category": "loop fusion", "flops": 10, "program_id": -3}
    assert line.ints["group_id"].tolist() == [7, -1]
    assert [line.texts["hlo_op"].values[index] for index in line.texts["hlo_op"].ids] == ["fusion.1", "fusion.1"]


def test_lines_are_put_on_one_clock() -> None:
    plane = PlaneBuilder("/device:GPU:0")
    kind = plane.kind("kernel")
    for start_ns in (10**18 + 5, 10**18):
        plane.line(f"Stream #{start_ns % 10}(Kernel)", timestamp_ns=start_ns).event(kind, 1, 1)
    lines = decoded(space(plane)).planes[0].lines
    assert [line.begin_ps.tolist() for line in lines] == [[5_001], [1]]


def test_a_line_whose_clock_was_never_set_is_dropped_aloud() -> None:
    plane = PlaneBuilder("/device:GPU:0")
    kind = plane.kind("kernel")
    for index, start_ns in enumerate((10**18, 10**18, 3)):
        plane.line(f"Stream #{index}(Kernel)", timestamp_ns=start_ns).event(kind, 1, 1)
    found = decoded(space(plane))
    assert len(found.planes[0].lines) == 2
    assert found.warnings == ("1 lines start more than a day away from the others and were dropped",)


def test_events_without_a_usable_time_are_dropped_aloud() -> None:
    plane = small()
    line = plane.lines[0]
    line.event(1, 5_000, -1)
    line.event(1, 5_000, 10**18)
    line.events.append(number_field(1, 1) + number_field(5, 12) + number_field(3, 100))
    found = decoded(space(plane))
    assert len(found.planes[0].lines[0]) == 2
    assert found.warnings == ("3 events on line 'XLA Ops' of '/device:TPU:0' have no usable time and were dropped",)


def test_an_event_without_metadata_is_kept_as_such() -> None:
    plane = small()
    plane.lines[0].event(99, 9_000, 10)
    (found,) = decoded(space(plane)).planes
    assert found.kinds[found.lines[0].kind[2]].name == "(an event without metadata)"


def test_every_form_of_a_stat() -> None:
    plane = PlaneBuilder("/device:TPU:0", stats={"whole": 3, "negative": -3, "real": 0.5, "text": "abc", "raw": b"xyz"})
    plane.stat_ids.setdefault("inline", 77)
    data = plane.encode() + bytes_field(6, number_field(1, 77) + text_field(5, "within"))
    found = decoded(bytes_field(1, data))
    stats = dict(found.planes[0].stats)
    raw = stats.pop("raw")
    assert isinstance(raw, Span)
    assert found.data[raw.start : raw.end] == b"xyz"
    assert stats == {"whole": 3, "negative": -3, "real": 0.5, "text": "abc", "inline": "within"}


def test_what_the_profiler_itself_complains_of_is_a_warning() -> None:
    data = space(small()) + text_field(2, "no device trace") + text_field(3, "dropped events")
    assert decoded(data).warnings == ("the profiler said: 'no device trace'", "the profiler said: 'dropped events'")


def test_more_events_than_are_decoded_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    plane = tpu_plane(0)
    kinds = [plane.kind(f"op.{index}") for index in range(3)]
    line = plane.line("XLA Ops")
    for index in range(300):
        stats: dict[str, int | str] = {"group_id": index} if index % 2 else {"hlo_op": f"op.{index % 3}"}
        line.event(kinds[index % 3], index * 10, 5, **stats)
    whole = decoded(space(plane)).planes[0].lines[0]
    monkeypatch.setattr("traces.xplane.decode._EVENTS_AT_ONCE", 64)
    pieces = decoded(space(plane)).planes[0].lines[0]
    assert np.array_equal(whole.begin_ps, pieces.begin_ps)
    assert np.array_equal(whole.ints["group_id"], pieces.ints["group_id"])
    told = [
        [texts.values[index] if index >= 0 else "" for index in texts.ids]
        for texts in (whole.texts["hlo_op"], pieces.texts["hlo_op"])
    ]
    assert told[0] == told[1]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_file_that_is_cut_off_is_corrupt_and_says_where(share: float) -> None:
    data = space(small())
    cut = data[: int(len(data) * share)]
    with pytest.raises(CorruptTrace, match=r"cut off or damaged: .* at byte [\d,]+ of [\d,]+") as refused:
        decoded(cut)
    assert refused.value.http_status == 400
    assert refused.value.hint


def test_a_gzip_stream_that_ends_early_is_corrupt() -> None:
    with pytest.raises(CorruptTrace, match="gzip stream ends early"):
        decode_space(Content("a.xplane.pb.gz", space(small()), truncated=True), Limits())


def test_bytes_that_went_through_a_text_conversion_are_named_as_such() -> None:
    plane = small()
    for index in range(40):
        plane.lines[0].event(1, 2**40 + index, 300, group_id=2**35)
    mangled = space(plane).decode("utf-8", "replace").encode()
    with pytest.raises(CorruptTrace, match="a conversion to text replaced") as refused:
        decoded(mangled)
    assert refused.value.hint == "copy the file in binary mode"


def test_no_plane_is_empty() -> None:
    with pytest.raises(EmptyTrace, match="holds no plane"):
        decoded(text_field(4, "host"))


def test_too_many_events_name_the_limit_and_the_overshoot() -> None:
    with pytest.raises(TraceTooLarge, match="number of events is at least 2, 1 over the limit of 1"):
        decoded(space(small()), Limits(max_events=1))


@given(st.integers(0, 400), st.integers(0, 255))
@settings(deadline=None, max_examples=200)
def test_one_wrong_byte_is_read_or_refused_never_a_crash(place: int, byte: int) -> None:
    data = bytearray(space(small()))
    data[place % len(data)] = byte
    with contextlib.suppress(CorruptTrace, EmptyTrace, TraceTooLarge):
        decoded(bytes(data))
