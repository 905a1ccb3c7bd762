"""Files the JAX profiler wrote: the CPU backend (tests/data/traces/jax), MI300X and TPU among the shared samples."""

import gzip
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from projector.errors import CorruptTrace
from traces.read import read_traces
from traces.summary import measured_breakdown, read_summary
from traces.summary_types import TimeShares, TraceSummary
from traces.xplane.chrome_space import NO_TIME, exact_ps

DATA = Path(__file__).parents[2] / "data" / "traces" / "jax"
XPLANE, CHROME = DATA / "vm.xplane.pb", DATA / "vm.trace.json.gz"
SHARED = Path(os.environ.get("SHARDWISE_SHARED", Path(__file__).parents[4] / "shared")) / "traces"
SHARES = tuple(TimeShares.model_fields)

needs_samples = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no samples at {SHARED}; set SHARDWISE_SHARED")


def shares(summary: TraceSummary) -> Mapping[str, int]:
    return {name: getattr(summary, name) for name in SHARES}


def identity_holds(of: TimeShares) -> bool:
    return of.compute_ns + of.exposed_communication_ns + of.exposed_copy_ns + of.idle_ns == of.window_ns


def test_the_cpu_backend_of_four_virtual_devices() -> None:
    found = read_summary([XPLANE])
    assert shares(found) == {
        "window_ns": 273_055_291,
        "compute_ns": 44_238_676,
        "communication_ns": 176_596_674,
        "exposed_communication_ns": 176_596_674,
        "copy_ns": 0,
        "exposed_copy_ns": 0,
        "idle_ns": 52_219_941,
        "unclassified_ns": 20_378_794,
    }
    assert all(
        identity_holds(one) for one in (found, *found.ranks, *(step for rank in found.ranks for step in rank.steps))
    )
    assert [rank.rank for rank in found.ranks] == [0, 1, 2, 3]
    assert [[step.name for step in rank.steps] for rank in found.ranks] == [
        ["JAX step train 0", "JAX step train 1", "JAX step train 2"]
    ] * 4
    assert [(one.collective, one.count, one.total_ns) for one in found.collectives] == [("all_reduce", 24, 176_596_674)]
    assert not found.window.device
    assert found.implied.world_size is not None
    assert found.implied.world_size.value == 4
    assert found.implied.framework is not None
    assert found.implied.framework.value == "jax"
    assert measured_breakdown(found).total_s == pytest.approx(0.0282885, rel=1e-4)


def test_the_chrome_json_of_the_same_run_gives_the_same_times() -> None:
    ours, theirs = read_summary([XPLANE]), read_summary([CHROME])
    assert theirs.format == "jax_chrome"
    assert shares(theirs) == shares(ours)
    assert theirs.top_kernels == ours.top_kernels
    assert theirs.collectives == ours.collectives
    assert [rank.steps[1].window_ns for rank in theirs.ranks] == [rank.steps[1].window_ns for rank in ours.ranks]
    assert theirs.implied.framework == ours.implied.framework


def test_of_both_the_protobuf_counts() -> None:
    found = read_summary([CHROME, XPLANE])
    assert found.files == ("vm.xplane.pb",)
    assert shares(found) == shares(read_summary([XPLANE]))
    assert any("vm.trace.json.gz is the viewer's copy of this profile" in warning for warning in found.warnings)


def test_a_chrome_json_of_another_run_counts_as_well(tmp_path: Path) -> None:
    other = tmp_path / "other.trace.json.gz"
    other.write_bytes(CHROME.read_bytes())
    assert set(read_summary([other, XPLANE]).files) == {"vm.xplane.pb", "other.trace.json.gz"}


@pytest.mark.parametrize("bytes_kept", [100, 5_000, 198_000, 290_000])
def test_a_truncated_protobuf_says_where_it_ends(tmp_path: Path, bytes_kept: int) -> None:
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(XPLANE.read_bytes()[:bytes_kept])
    with pytest.raises(CorruptTrace, match=rf"at byte [\d,]+ of {bytes_kept:,}$"):
        read_traces([path])


def test_a_gzipped_protobuf_is_read_as_well(tmp_path: Path) -> None:
    path = tmp_path / "vm.xplane.pb.gz"
    path.write_bytes(gzip.compress(XPLANE.read_bytes()))
    assert shares(read_summary([path])) == shares(read_summary([XPLANE]))


def test_a_truncated_chrome_json_is_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "vm.trace.json"
    path.write_bytes(gzip.decompress(CHROME.read_bytes())[:100_000])
    with pytest.raises(CorruptTrace, match="damaged JSON of the JAX profiler"):
        read_traces([path])
    path.write_bytes(CHROME.read_bytes()[:20_000])
    with pytest.raises(CorruptTrace, match="gzip stream ends early"):
        read_traces([path])


def chrome(*events: dict[str, Any]) -> bytes:
    """A Chrome JSON of one TensorCore with an op line and a line of steps."""
    names = [
        {"ph": "M", "pid": 3, "name": "process_name", "args": {"name": "/device:TPU:0 (pid 3)"}},
        {"ph": "M", "pid": 3, "tid": 1, "name": "thread_name", "args": {"name": "Steps"}},
        {"ph": "M", "pid": 3, "tid": 2, "name": "thread_name", "args": {"name": "XLA Ops"}},
    ]
    timed = [{"ph": "X", "pid": 3, **event} for event in events]
    return json.dumps(
        {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": [*names, *timed, {}]}
    ).encode()


def test_a_tpu_in_chrome_json_has_categories_and_no_efficiencies(tmp_path: Path) -> None:
    path = tmp_path / "host.trace.json"
    fusion = {
        "hlo_category": "convolution fusion",
        "model_flops": "1000",
        "bytes_accessed": "64",
        "long_name": "%fusion.1 = f32[]",
    }
    path.write_bytes(
        chrome(
            {"tid": 1, "name": "4", "ts": 0, "dur": 1.0},
            {"tid": 2, "name": "fusion.1", "ts": 0, "dur": 0.600123, "args": fusion},
            {"tid": 2, "name": "all-reduce.1", "ts": 0.600123, "dur": 0.2, "args": {"hlo_category": "all-reduce"}},
            {"tid": 2, "name": "broken", "ts": 0.9, "dur": -1},
        )
    )
    found = read_summary([path])
    assert [(row.name, row.total_ps, row.bound, row.attributed) for row in found.op_table] == [
        ("fusion.1", 600_123, "unknown", True),
        ("all-reduce.1", 200_000, "unknown", True),
    ]
    assert found.kpis is not None
    assert (found.kpis.step_time_s, found.kpis.all_reduce_only_frac) == (pytest.approx(1e-6), pytest.approx(0.2))
    assert any("1 events on line 'XLA Ops'" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("text", "ps"),
    [(b"12.345678", 12_345_678), (b"7", 7_000_000), (b"0.000001", 1), (b"1e3", 10**9), (b"", 0), (b'"2.5"', 2_500_000)],
)
def test_microseconds_become_exact_picoseconds(text: bytes, ps: int) -> None:
    assert exact_ps(text) == ps


@pytest.mark.parametrize("text", [b"null", b"NaN", b"1e40", b"1e999999", b"abc"])
def test_what_is_no_time(text: bytes) -> None:
    assert exact_ps(text) == NO_TIME


@pytest.mark.shared
@needs_samples
@pytest.mark.parametrize(
    ("file", "ranks", "compute_ns", "copy_ns", "idle_ns"),
    [
        ("tracelens/mi300/jax_conv_minimal_08/tw003.xplane.pb", 8, 27_573_556, 559_321, 804_016_996),
        (
            "tracelens/mi300/jax_conv_minimal_legacy/chi-mi300x-013.ord.vultr.cpe.ice.amd.com.xplane.pb",
            2,
            3_586_493,
            889_028,
            39_153_508,
        ),
    ],
)
def test_mi300_samples(file: str, ranks: int, compute_ns: int, copy_ns: int, idle_ns: int) -> None:
    found = read_summary([SHARED / file])
    assert len(found.ranks) == ranks
    assert (found.compute_ns, found.copy_ns, found.idle_ns) == (compute_ns, copy_ns, idle_ns)
    assert all(identity_holds(one) for one in (found, *found.ranks))
    assert found.implied.chip_name is not None
    assert found.implied.chip_name.value == "AMD Instinct MI300X"


@pytest.mark.shared
@needs_samples
def test_the_tpu_sample_that_was_converted_to_text_is_refused_by_name() -> None:
    with pytest.raises(CorruptTrace, match="a conversion to text replaced"):
        read_traces([SHARED / "xprof/tpu_inference_2.xplane.pb"])
