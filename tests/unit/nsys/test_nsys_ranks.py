"""Several processes and devices in one Nsight export: which rank is which, where the file says so."""

from pathlib import Path

import pytest
from nsys_builder import Export, describe_nccl, made

from traces.infer_hardware import chip_name
from traces.trace import Trace

WORLD, PAIR = 0xAA, 0xBB


def processes_with_devices(*places: tuple[int, int]) -> Export:
    export = Export()
    for pid, device in places:
        export.kernel("gemm", 100, 110, pid=pid, deviceId=device)
    return export


def ranks(traces: tuple[Trace, ...]) -> list[tuple[int | None, int | None, int | None]]:
    return [(trace.metadata.rank, trace.metadata.world_size, trace.device_index) for trace in traces]


def test_without_a_statement_there_are_no_ranks(tmp_path: Path) -> None:
    traces = processes_with_devices((20, 1), (10, 0), (10, 3)).read(tmp_path)
    assert ranks(traces) == [(None, None, 0), (None, None, 3), (None, None, 1)]
    assert traces[0].warnings == (
        "the file holds 3 devices of 2 processes and does not state their ranks; they come in the order of processes "
        "and devices",
    )


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"RANK": "3", "WORLD_SIZE": "8"}, (3, 8)),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}, (0, 2)),
        ({"SLURM_PROCID": "5", "SLURM_NTASKS": "16", "RANK": "1", "WORLD_SIZE": "4"}, (1, 4)),
        ({"RANK": "3"}, (None, None)),
        ({"RANK": "8", "WORLD_SIZE": "8"}, (None, None)),
        ({"RANK": "0", "WORLD_SIZE": "1"}, (None, None)),
        ({"RANK": "three", "WORLD_SIZE": "8"}, (None, None)),
        ({"RANK": "3", "WORLD_SIZE": "999999999"}, (None, None)),
        ({"MY_RANK": "3", "WORLD_SIZE": "8"}, (None, None)),
    ],
)
def test_the_environment_of_the_profiled_command(
    tmp_path: Path, variables: dict[str, str], expected: tuple[int | None, int | None]
) -> None:
    export = processes_with_devices((10, 2))
    for name, value in variables.items():
        export.add("META_DATA_CAPTURE", name="PROCESS_0:ENVIRONMENT_VARIABLE", value=f'{name}="{value}"')
    assert ranks(export.read(tmp_path)) == [(*expected, 2)]


@pytest.mark.parametrize("separator", [";", "\0"])
def test_the_environment_of_the_profiler(tmp_path: Path, separator: str) -> None:
    export = processes_with_devices((10, 0))
    entries = ("PATH=/bin", "PMI_RANK=6", "SECRET=1", "PMI_SIZE=32")
    export.add("TARGET_INFO_SYSTEM_ENV", name="DeviceEnvironment", value=separator.join(entries))
    (trace,) = export.read(tmp_path)
    assert ranks((trace,)) == [(6, 32, 0)]
    assert trace.metadata.world_size_basis == "PMI_SIZE in the environment of the profiled command"


def test_the_environment_of_a_launcher_is_not_that_of_its_processes(tmp_path: Path) -> None:
    export = processes_with_devices((10, 0), (20, 0))
    for entry in ('RANK="3"', 'WORLD_SIZE="8"'):
        export.add("META_DATA_CAPTURE", name="PROCESS_0:ENVIRONMENT_VARIABLE", value=entry)
    assert [rank for rank, _, _ in ranks(export.read(tmp_path))] == [None, None]


def member(export: Export, pid: int, communicator: int, size: int, rank: int, device: int = 0) -> None:
    data = made(communicator, size, rank, device)
    export.span("ncclCommInitRank", 0, 5, pid=pid, domain=1, binaryData=data)


def test_ranks_within_the_largest_communicator_order_the_traces(tmp_path: Path) -> None:
    export = processes_with_devices((10, 0), (20, 1))
    describe_nccl(export)
    for pid, rank in ((10, 5), (20, 4)):
        member(export, pid, WORLD, 8, rank)
        member(export, pid, PAIR, 2, rank - 4)
    traces = export.read(tmp_path)
    assert ranks(traces) == [(4, None, 1), (5, None, 0)]
    assert [group.size for group in traces[0].metadata.groups] == [8, 2]
    assert (
        "ranks are those within the largest NCCL communicator, 0x00000000000000aa of 8 ranks, taken for the ranks in "
        "the job" in traces[0].warnings
    )


def test_one_process_may_be_several_ranks(tmp_path: Path) -> None:
    export = processes_with_devices((10, 0), (10, 1))
    describe_nccl(export)
    member(export, 10, WORLD, 2, 1, device=0)
    member(export, 10, WORLD, 2, 0, device=1)
    assert ranks(export.read(tmp_path)) == [(0, None, 1), (1, None, 0)]


@pytest.mark.parametrize("second", [None, (WORLD, 8, 5), (PAIR, 2, 0)])
def test_ranks_that_not_all_have_or_two_share_are_no_ranks(tmp_path: Path, second: tuple[int, int, int] | None) -> None:
    export = processes_with_devices((10, 0), (20, 1))
    describe_nccl(export)
    member(export, 10, WORLD, 8, 5)
    if second is not None:
        member(export, 20, *second)
    assert [rank for rank, _, _ in ranks(export.read(tmp_path))] == [None, None]


def test_devices_are_numbered_as_their_process_numbers_them(tmp_path: Path) -> None:
    export = processes_with_devices((10, 0), (20, 0))
    export.gpu(0, "NVIDIA  H100\n80GB")
    export.gpu(1, "NVIDIA H200", totalMemory=141 << 30)
    export.add("TARGET_INFO_CUDA_DEVICE", gpuId=0, cudaId=0, pid=10)
    export.add("TARGET_INFO_CUDA_DEVICE", gpuId=1, cudaId=0, pid=20)
    first, second = export.read(tmp_path)
    assert [(one.index, one.name) for one in first.metadata.devices] == [(0, "NVIDIA H100 80GB")]
    (device,) = second.metadata.devices
    assert (device.index, device.name, device.memory_bytes, device.compute_units) == (0, "NVIDIA H200", 141 << 30, 132)
    assert (device.compute_major, device.compute_minor) == (9, 0)


def test_without_that_table_the_driver_s_number_counts(tmp_path: Path) -> None:
    export = processes_with_devices((10, 0))
    export.gpu(0, "Second", cuDevice=1)
    export.gpu(1, "First", cuDevice=0, smCount=None, totalMemory=0)
    (trace,) = export.read(tmp_path)
    assert [(one.index, one.name, one.memory_bytes) for one in trace.metadata.devices] == [
        (0, "First", None),
        (1, "Second", 80 << 30),
    ]
    chip = chip_name(trace.metadata, trace.device_index)
    assert chip is not None
    assert (chip.value, chip.basis) == ("First", "name in the TARGET_INFO_GPU of the export")


def test_without_devices_described_the_chip_is_unknown(tmp_path: Path) -> None:
    (trace,) = processes_with_devices((10, 0)).read(tmp_path)
    assert trace.metadata.devices == ()
    assert chip_name(trace.metadata, trace.device_index) is None


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, 1_779_630_014_975_716_426),
        ({"EXPORT_PARAM_TIME_SHIFT": "426"}, 1_779_630_014_975_716_000),
        ({"EXPORT_PARAM_TIME_SHIFT": "-574"}, 1_779_630_014_975_717_000),
        ({"EXPORT_PARAM_TIME_SHIFT": "soon"}, None),
        ({"EXPORT_PARAM_TIME_SHIFT": "--5"}, None),
        ({"EXPORT_PARAM_TIME_NORMALIZE": "true"}, 0),
    ],
)
def test_what_to_add_to_times(tmp_path: Path, facts: dict[str, str], expected: int | None) -> None:
    export = processes_with_devices((10, 0))
    export.add("TARGET_INFO_SESSION_START_TIME", utcEpochNs=1_779_630_014_975_716_426)
    for name, value in facts.items():
        export.add("META_DATA_EXPORT", name=name, value=value)
    (trace,) = export.read(tmp_path)
    assert trace.metadata.base_time_ns == expected
