"""Execution traces and Nsight exports that lack what the tools that join them look up."""

from pathlib import Path
from typing import Any

import pytest

from projector.errors import EmptyTrace, TraceWithoutTimes, UnsupportedTrace
from tests.unit.chakra import chakra_examples as chakra
from tests.unit.execution_trace import et_examples as et
from tests.unit.nsys.nsys_builder import KERNEL, NVTX, Export, names
from tests.unit.traces.trace_examples import external, kernel, op, trace_of
from traces.execution_trace.join import join
from traces.linking import link
from traces.summary import summarise
from traces.trace import ABSENT


def test_kernels_without_correlation_are_joined_with_their_operator_by_external_id() -> None:
    """As profilers of AMD devices wrote them."""
    called: dict[str, Any] = {"Record function id": 7}
    trace = trace_of(op("aten::mm", 0, 5, **external(3), **called), kernel("Cijk_Alik_Bljk", 10, 5, **external(3)))
    assert trace.correlation.tolist() == [ABSENT, ABSENT]
    joined = join(trace, et.trace_of_nodes(et.node(7, "aten::mm", et.tensor([4, 8]), et.tensor([8, 16])), pid=100))
    assert [joined.name(row) for row in link(joined).operator.tolist()] == ["aten::mm"]
    assert joined.inputs[0].dims == ((4, 8), (8, 16))


def test_an_execution_trace_without_record_ids_is_empty_and_says_so() -> None:
    nodes = [et.node(0, "aten::mm", et.tensor([4, 8])), {"id": 5, "name": "aten::relu", "ctrl_deps": 1}]
    with pytest.raises(EmptyTrace, match="without an operator call"):
        et.trace_of_nodes(*nodes)


def test_a_parent_that_is_not_in_the_file_costs_the_node_nothing() -> None:
    data = chakra.et(
        chakra.node(3, "aten::mm", chakra.COMP, start=10, duration=9, is_cpu_op=True, parents=(999,)),
        chakra.node(4, "gemm", chakra.COMP, start=12, duration=9, is_cpu_op=False, parents=(12345, 3)),
    )
    trace = chakra.read(data)
    assert len(trace) == 2
    assert link(trace).operator.tolist() == [ABSENT]
    assert summarise([trace]).compute_ns == 9_000


def test_nodes_that_lack_every_key_a_simulator_looks_up() -> None:
    bare = (
        '{"workload_graph": [{"Id": 1}, {"Id": 4, "Name": "x"}, {"Id": 2, "NodeType": 7}, {"Id": 3, "ctrlDeps": [77]}]}'
    )
    with pytest.raises(TraceWithoutTimes, match="nodes: 4"):
        chakra.read(bare.encode())


def export_of_kernels(**renamed: str) -> Export:
    export = Export()
    export.launched("gemm_kernel", 100, 200, 1, 50)
    export.renamed.update(renamed)
    return export


def test_tables_with_a_version_in_their_name_and_no_ranges(tmp_path: Path) -> None:
    for suffix in ("", "_V2", "_V3"):
        export = export_of_kernels(**{KERNEL: KERNEL + suffix})
        assert NVTX not in export.rows
        folder = tmp_path / f"export{suffix}"
        folder.mkdir()
        assert names(export.trace(folder)) == ["cudaLaunchKernel", "gemm_kernel"]


def test_a_column_that_older_exports_lack(tmp_path: Path) -> None:
    export = export_of_kernels()
    export.without(KERNEL, "graphNodeId")
    assert summarise([export.trace(tmp_path)]).compute_ns == 100


def test_the_version_of_the_schema_decides_before_a_table_is_read(tmp_path: Path) -> None:
    export = export_of_kernels()
    export.version = "9.0.0"
    export.statements.append(f"DROP TABLE {KERNEL}")
    with pytest.raises(UnsupportedTrace, match=r"9\.0\.0"):
        export.read(tmp_path)
