"""Seeds that are no text: XPlane and Chakra protobufs, Nsight databases, archives, gzip files."""

import gzip
import sqlite3
import tempfile
from pathlib import Path
from typing import Final

from tests.fuzz.text_seeds import kineto_seeds
from tests.unit.chakra import chakra_examples as chakra
from tests.unit.jobs.archive_examples import gz, tar_of, zip_of
from tests.unit.nsys import nsys_builder as nsys
from tests.unit.xplane import xplane_builder as xplane

_PS: Final = 1_000_000


def xplane_seeds() -> tuple[bytes, ...]:
    tpu = xplane.tpu_plane(0, peak_teraflops_per_second=459.0, peak_hbm_bw_gigabytes_per_second=2765.0)
    steps, ops, flight = tpu.line("Steps", 5), tpu.line("XLA Ops", 5), tpu.line("Async XLA Ops", 5)
    cost = xplane.memory_breakdown((xplane.READ, xplane.HBM, 4096))
    fusion = tpu.kind(
        "%f = f32[4]",
        "fusion.1",
        hlo_category="convolution fusion",
        flops=1000,
        bytes_accessed=64,
        memory_access_breakdown=cost,
        tf_op="jit(f)/dot",
    )
    start = tpu.kind(
        "%ag = f32[8]{0} all-gather-start(), replica_groups={{0,1}}", "ag", hlo_category="all-gather-start"
    )
    loop = tpu.kind("%w = f32[4] while()", "while.1", hlo_category="while")
    for step in range(2):
        at = step * 100 * _PS
        steps.event(tpu.kind(str(step)), at, 90 * _PS, group_id=step)
        ops.event(loop, at, 60 * _PS)
        ops.event(fusion, at, 50 * _PS, device_offset_ps=at, device_duration_ps=50 * _PS, run_id=3)
        ops.event(start, at + 60 * _PS, 2 * _PS)
        flight.event(start, at + 60 * _PS, 20 * _PS)
    gpu, host = xplane.PlaneBuilder("/device:GPU:0", stats={"device_vendor": "AMD", "core_count": 304}), _cpu_plane()
    stream = gpu.line("Stream #3(Kernel,MemcpyD2D)")
    stream.event(gpu.kind("loop_add_fusion"), 0, 40 * _PS, correlation_id=7, hlo_op="all-gather.2")
    stream.event(gpu.kind("MemcpyD2D"), 50 * _PS, 9 * _PS, memcpy_details="kind:D2D size:4096 dest:0 async:1")
    environment = xplane.PlaneBuilder("Task Environment", stats={"profile_start_time": 5, "profile_stop_time": 9})
    return xplane.space(tpu), xplane.space(gpu, host, environment), xplane.space(_cpu_plane())


def _cpu_plane() -> xplane.PlaneBuilder:
    host = xplane.PlaneBuilder("/host:CPU")
    python, eigen = host.line("python"), host.line("tf_XLAEigen/123")
    python.event(host.kind("train"), 0, 90 * _PS, step_num=1)
    python.event(host.kind("hipModuleLaunchKernel"), 5 * _PS, 2 * _PS, correlation_id=7)
    eigen.event(host.kind("dot.3"), 3 * _PS, 9 * _PS, hlo_op="dot.3", hlo_module="jit_f", device_ordinal=0)
    eigen.event(
        host.kind("all-reduce.1"), 13 * _PS, 9 * _PS, hlo_op="all-reduce.1", hlo_module="jit_f", device_ordinal=1
    )
    return host


def nsys_seeds() -> tuple[bytes, ...]:
    whole = nsys.Export()
    whole.gpu(0, "NVIDIA H100")
    whole.launched("nvjet_tst", 100, 200, 1, 50)
    whole.launched("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 200, 300, 2, 60, streamId=20)
    whole.copy(300, 320, 1, 4096)
    whole.memset(320, 330, 64)
    whole.span("aten::mm, op_id = 7, sizes = [[4, 8], [8, 16]]", 45, 58)
    whole.span("step 1", 40, 400)
    whole.domain("NCCL", 1)
    whole.span("ncclAllReduce", 55, 70, domain=1, binaryData=nsys.reduced(9, 4096))
    whole.span("ncclCommInitRank", 1, 9, domain=1, binaryData=nsys.made(9, 2, 0))
    nsys.describe_nccl(whole)
    whole.add("TARGET_INFO_SYSTEM_ENV", name="RANK", value="0")
    graphs = nsys.Export(version="3.1.7")
    graphs.graph(3, 10, 90)
    graphs.kernel("gemm", 100, 110, pid=1001, deviceId=1)
    graphs.renamed[nsys.KERNEL] = f"{nsys.KERNEL}_V2"
    with tempfile.TemporaryDirectory() as folder:
        return tuple(
            _small_pages(export.write(Path(folder) / f"{number}.sqlite"))
            for number, export in enumerate((whole, graphs))
        )


def _small_pages(path: Path) -> bytes:
    """The file with pages of 512 bytes: an eighth of the usual size, and so more of it is hit."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA page_size = 512")
    connection.execute("VACUUM")
    connection.close()
    return path.read_bytes()


def chakra_seeds() -> tuple[bytes, ...]:
    collective = {"comm_type": chakra.ALL_REDUCE, "comm_size": 4096, "pg_name": "0", "is_cpu_op": False, "stream": 20}
    node = chakra.node
    timed = chakra.et(
        node(1, "## process_group:init ##", chakra.METADATA, inputs=chakra.operands('[\'[{"pg_name": "0"}]\']')),
        node(
            2,
            "aten::mm",
            chakra.COMP,
            start=10,
            duration=9,
            is_cpu_op=True,
            tid=1,
            inputs=chakra.operands("[]", "[[4, 8], [8, 16]]", "['Tensor(float)', 'Tensor(float)']"),
        ),
        node(3, "nvjet", chakra.COMP, start=12, duration=9, parents=(2,), is_cpu_op=False, stream=7),
        node(4, "ncclKernel_AllReduce", chakra.COLL, start=30, duration=9, parents=(3,), **collective),
        node(5, "send", chakra.SEND, start=40, duration=2, comm_src=0, comm_dst=1, is_cpu_op=False),
        node(6, "copy", chakra.MEM_LOAD, start=50, duration=2, tensor_size=64, involved_dim=(True, False)),
    )
    return timed, chakra.et(node(1, "a", chakra.COMP, duration=5))


def archive_seeds() -> tuple[bytes, ...]:
    files = {"rank0.json": b'{"traceEvents": []}', "a/rank1.json.gz": gz(b"[1]"), "b.zip": zip_of({"c": b"d" * 40})}
    return (
        zip_of(files),
        tar_of(files),
        tar_of(files, "w:gz"),
        tar_of({"a" * 150: b"x", "b": b""}, "w:bz2"),
        tar_of({"a": b"x"}, "w:xz"),
        zip_of({"inner.tar": tar_of({"deep.zip": zip_of({"x": b"y"})})}),
    )


def gzip_seeds() -> tuple[bytes, ...]:
    text = kineto_seeds()[1]
    named = gzip.compress(text, 6, mtime=0)
    return (
        named,
        gzip.compress(b"") + gzip.compress(text[:500], 1, mtime=0),
        named[:-30],
        named + b"trailing",
        b"\x1f\x8b",
    )
