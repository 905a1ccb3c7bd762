"""TensorCore planes: loops, asynchronous collectives, copies, unidentified operators, steps, clocks."""

from pathlib import Path

import pytest
from xplane_builder import HBM, READ, LineBuilder, PlaneBuilder, memory_breakdown, space, tpu_plane

from traces.content import Content, Limits
from traces.naming import KINDS
from traces.rank import rank_parts
from traces.read import read_traces
from traces.summary import summarise
from traces.summary_types import TraceSummary
from traces.trace import UNKNOWN_WORK, Category, Trace
from traces.xplane.convert import traces_of
from traces.xplane.decode import decode_space

NS = 1_000


def traces(*planes: PlaneBuilder) -> tuple[Trace, ...]:
    return traces_of(decode_space(Content("a.xplane.pb", space(*planes)), Limits()))


def summary(*planes: PlaneBuilder) -> TraceSummary:
    return summarise(traces(*planes))


def op_line(plane: PlaneBuilder, *ops: tuple[str, str, int, int]) -> LineBuilder:
    """An op line of (name, category, begin ns, end ns)."""
    line = plane.line("XLA Ops")
    add(line, *ops)
    return line


def add(line: LineBuilder, *ops: tuple[str, str, int, int]) -> None:
    for name, category, begin, end in ops:
        stats = {"hlo_category": category} if category else {}
        line.event(line.plane.kind(f"%{name} = f32[4]", name, **stats), begin * NS, (end - begin) * NS)


def shares(found: TraceSummary) -> tuple[int, ...]:
    return (
        found.window_ns,
        found.compute_ns,
        found.communication_ns,
        found.exposed_communication_ns,
        found.exposed_copy_ns,
        found.idle_ns,
    )


def test_categories_become_classes() -> None:
    plane = tpu_plane(0)
    op_line(
        plane,
        ("fusion.1", "convolution fusion", 0, 50),
        ("all-reduce.1", "all-reduce", 50, 70),
        ("infeed.1", "infeed", 70, 75),
        ("fusion.2", "loop fusion", 80, 100),
    )
    found = summary(plane)
    assert shares(found) == (100, 70, 20, 20, 5, 5)
    assert {(one.kind, one.total_ns) for one in found.kernel_classes} == {("gemm", 50), ("elementwise", 20)}
    assert [(one.event_class, one.by) for one in found.classification] == [
        ("communication", "collective_args"),
        ("compute", "category"),
        ("copy", "category"),
    ]
    assert [(one.collective, one.count, one.total_ns) for one in found.collectives] == [("all_reduce", 1, 20)]


def test_a_loop_does_not_hide_the_collective_inside_it() -> None:
    plane = tpu_plane(0)
    op_line(
        plane,
        ("while.1", "while", 0, 100),
        ("fusion.1", "loop fusion", 0, 40),
        ("all-gather.1", "all-gather", 40, 90),
    )
    found = summary(plane)
    assert shares(found) == (100, 50, 50, 50, 0, 0)
    rows = {row.name: row for row in found.op_table}
    assert (rows["while.1"].total_ps, rows["while.1"].count) == (10 * NS, 1)
    assert rows["while.1"].bound == "unknown"


def asynchronous(async_line: bool) -> PlaneBuilder:
    plane = tpu_plane(0)
    line = op_line(
        plane,
        ("all-gather-start.1", "all-gather-start", 0, 2),
        ("fusion.1", "convolution fusion", 2, 60),
        ("all-gather-done.1", "all-gather-done", 60, 80),
        ("fusion.2", "loop fusion", 80, 100),
    )
    if async_line:
        flight = plane.line("Async XLA Ops")
        add(flight, ("all-gather-start.1", "all-gather-start", 0, 80), ("copy-start.1", "copy-start", 80, 100))
    assert line.events
    return plane


def test_an_asynchronous_collective_is_one_and_hidden_while_the_core_computes() -> None:
    found = summary(asynchronous(async_line=True))
    assert shares(found) == (100, 78, 80, 22, 0, 0)
    assert [(one.collective, one.count, one.total_ns, one.exposed_ns) for one in found.collectives] == [
        ("all_gather", 1, 80, 22)
    ]
    kpis = found.kpis
    assert kpis is not None
    assert (kpis.communication_frac, kpis.in_flight_frac) == (0.22, 0.8)


def test_without_a_line_of_asynchronous_operators_only_the_waiting_is_known() -> None:
    found = summary(asynchronous(async_line=False))
    assert shares(found) == (100, 78, 22, 22, 0, 0)
    assert found.kpis is not None
    assert found.kpis.in_flight_frac is None
    assert any("only the waiting is known" in warning for warning in found.warnings)


def test_an_operator_without_a_category_is_unclassified_whatever_its_name() -> None:
    plane = tpu_plane(0)
    op_line(plane, ("softmax gemm fill", "", 0, 60), ("fusion.1", "loop fusion", 60, 100))
    (trace,) = traces(plane)
    assert trace.stated_kind is not None
    assert trace.stated_kind.tolist() == [UNKNOWN_WORK, KINDS.index("elementwise")]
    found = summarise([trace])
    assert (found.compute_ns, found.unclassified_ns) == (100, 60)
    assert found.kpis is not None
    assert found.kpis.unattributed_frac == 0.6
    assert [(row.name, row.attributed) for row in found.op_table] == [("fusion.1", True), ("softmax gemm fill", False)]


def test_waits_for_the_host_are_off_duty() -> None:
    plane = tpu_plane(0)
    op_line(
        plane, ("fusion.1", "loop fusion", 0, 50), ("infeed.1", "infeed", 50, 90), ("fusion.2", "loop fusion", 90, 100)
    )
    kpis = summary(plane).kpis
    assert kpis is not None
    assert kpis.duty_cycle_frac == 0.6


def test_operators_outside_the_steps_are_left_out_of_the_table_aloud() -> None:
    plane = tpu_plane(0)
    op_line(plane, ("fusion.1", "loop fusion", 0, 20), ("fusion.2", "loop fusion", 20, 100))
    steps = plane.line("Steps")
    steps.event(plane.kind("12"), 20 * NS, 80 * NS, group_id=12)
    found = summary(plane)
    assert [(row.name, row.share_of_step_frac) for row in found.op_table] == [("fusion.2", 1.0)]
    assert [(step.name, step.window_ns, step.compute_ns) for step in found.ranks[0].steps] == [("XLA step 12", 80, 80)]
    assert any(warning.startswith("20% of operator time lies outside") for warning in found.warnings)


def test_a_step_that_was_cut_off_is_not_averaged() -> None:
    plane = tpu_plane(0)
    op_line(plane, ("fusion.1", "loop fusion", 0, 250))
    steps = plane.line("Steps")
    for index, (begin, end) in enumerate(((0, 100), (100, 200), (200, 210))):
        steps.event(plane.kind(str(index)), begin * NS, (end - begin) * NS)
    kpis = summary(plane).kpis
    assert kpis is not None
    assert (kpis.steps, kpis.step_time_s) == (2, pytest.approx(100e-9))


def test_two_steps_of_one_number_stay_two() -> None:
    plane = tpu_plane(0)
    op_line(plane, ("fusion.1", "loop fusion", 0, 100))
    steps, kind = plane.line("Steps"), plane.kind("0")
    steps.event(kind, 0, 40 * NS)
    steps.event(kind, 60 * NS, 40 * NS)
    names = [(step.name, step.window_ns) for step in summary(plane).ranks[0].steps]
    assert names == [("XLA step 0", 40), ("XLA step 0 (2)", 40)]


def test_the_device_s_own_clock_is_used_where_all_events_state_it() -> None:
    plane = tpu_plane(0)
    line, kind = plane.line("XLA Ops"), plane.kind("%fusion.1", "fusion.1", hlo_category="loop fusion")
    line.event(kind, 0, 33 * NS, device_offset_ps=500 * NS, device_duration_ps=30 * NS)
    line.event(kind, 40 * NS, 33 * NS, device_offset_ps=530 * NS, device_duration_ps=30 * NS)
    assert shares(summary(plane))[:2] == (60, 60)
    line.event(kind, 80 * NS, 20 * NS, device_offset_ps=2**62, device_duration_ps=1)
    assert shares(summary(plane))[:2] == (100, 86)


def test_every_device_is_a_rank_and_one_operator_of_all_is_one_row() -> None:
    planes = [tpu_plane(index) for index in range(3)]
    for plane in planes:
        op_line(plane, ("fusion.1", "loop fusion", 0, 10))
    found = summary(*planes)
    assert [rank.device for rank in found.ranks] == [0, 1, 2]
    assert [(row.count, row.total_ps) for row in found.op_table] == [(3, 30 * NS)]
    assert found.implied.devices_per_host is not None
    assert found.implied.devices_per_host.value == 3


def test_framework_operators_tell_the_kind_of_job() -> None:
    plane = tpu_plane(0)
    line = plane.line("XLA Ops")
    for index, scope in enumerate(
        ("jvp(decoder)/self_attention/dot_product_attention", "transpose(jvp(decoder))/mlp", "decoder/rms_norm/mul")
    ):
        kind = plane.kind(
            f"%fusion.{index}", f"fusion.{index}", hlo_category="convolution fusion", tf_op=f"jit(step)/{scope}"
        )
        for occurrence in range(3):
            line.event(kind, (index * 3 + occurrence) * 10 * NS, 10 * NS)
    found = summary(plane)
    assert found.implied.phase is not None
    assert found.implied.phase.value == "training"
    assert found.implied.is_transformer_lm is not None
    assert found.implied.is_transformer_lm.value
    assert found.op_table[0].framework_op.startswith("jit(step)/")


def test_a_matrix_product_called_convolution_makes_no_vision_model() -> None:
    plane = tpu_plane(0)
    line = plane.line("XLA Ops")
    for index in range(6):
        scope = "jit(step)/decoder/self_attention/rope" if index % 2 else "jit(step)/decoder/token_embedder/take"
        kind = plane.kind(
            f"%convolution.{index}", f"convolution.{index}", hlo_category="convolution fusion", tf_op=scope
        )
        line.event(kind, index * 10 * NS, 10 * NS)
    found = summary(plane)
    assert [one.kind for one in found.kernel_classes] == ["gemm"]
    assert found.implied.is_transformer_lm is not None
    assert found.implied.is_transformer_lm.value


def test_operators_of_two_programs_are_two_rows() -> None:
    plane = tpu_plane(0)
    line = plane.line("XLA Ops")
    for index, program in enumerate((-5, -6)):
        kind = plane.kind("%fusion.1", "fusion.1", hlo_category="loop fusion", program_id=program)
        line.event(kind, index * 10 * NS, 10 * NS)
    assert [row.count for row in summary(plane).op_table] == [1, 1]


def test_a_long_op_table_says_how_much_it_leaves_out() -> None:
    plane = tpu_plane(0)
    op_line(plane, *((f"fusion.{index}", "loop fusion", index, index + 1) for index in range(501)))
    found = summary(plane)
    assert len(found.op_table) == 500
    assert "the op table lists 500 of 501 operators, identified ones first, by time" in found.warnings


def test_markup_in_a_name_stays_text(tmp_path: Path) -> None:
    plane = tpu_plane(0)
    op_line(plane, ("<script>alert(1)</script>", "custom-call", 0, 10))
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(space(plane))
    (trace,) = read_traces([path])
    assert trace.names[0] == "<script>alert(1)</script>"


def test_sparse_cores_are_kept_apart_aloud() -> None:
    plane = tpu_plane(0)
    op_line(plane, ("fusion.1", "loop fusion", 0, 10))
    sparse = [PlaneBuilder(f"/device:TPU:0 SparseCore {index}") for index in range(3)]
    line = sparse[0].line("Sparse Core Ops")
    line.event(sparse[0].kind("gather"), 0, 5 * NS)
    line.event(sparse[0].kind("scatter"), 3 * NS, 5 * NS)
    sparse[1].line("Sparse Core Modules").event(sparse[1].kind("jit_step"), 0, 9 * NS)
    (trace,) = traces(plane, *sparse)
    assert trace.warnings == (
        "2 SparseCores with 3 events are kept apart: operators kept 1 of them busy for 8 ns in all, and none of it is "
        "in the times of the TensorCores",
    )
    assert trace.rows(Category.KERNEL).tolist() == [0]


def module_runs(*runs: tuple[str, int, int]) -> PlaneBuilder:
    plane = tpu_plane(0)
    op_line(plane, *((f"fusion.{index}", "loop fusion", begin, end) for index, (_, begin, end) in enumerate(runs)))
    line = plane.line("XLA Modules")
    for index, (program, begin, end) in enumerate(runs):
        line.event(plane.kind(f"{program}({1000 + index % 2})"), begin * NS, (end - begin) * NS)
    return plane


def test_without_marked_steps_the_runs_of_the_main_program_are_the_steps_aloud() -> None:
    plane = module_runs(
        ("jit_step", 0, 90), ("jit_log", 90, 100), ("jit_step", 100, 190), ("jit_log", 190, 200), ("jit_step", 200, 290)
    )
    (trace,) = traces(plane)
    marks = [trace.name(row) for row in trace.rows(Category.DEVICE_ANNOTATION)]
    assert marks == ["XLA step 0 of jit_step", "XLA step 1 of jit_step", "XLA step 2 of jit_step"]
    assert trace.profile is not None
    assert (trace.profile.steps, trace.profile.window_ps) == (3, 270 * NS)
    assert (
        "the profile marks no steps; the 3 runs of the program 'jit_step', 93% of the time of all programs, count as "
        "steps" in trace.warnings
    )


@pytest.mark.parametrize(
    "runs",
    [
        (("jit_step", 0, 90), ("jit_step", 100, 190)),
        tuple((f"jit_{index}", 10 * index, 10 * index + 9) for index in range(9)),
    ],
)
def test_few_runs_and_many_programs_make_no_steps(runs: tuple[tuple[str, int, int], ...]) -> None:
    (trace,) = traces(module_runs(*runs))
    assert len(trace.rows(Category.DEVICE_ANNOTATION)) == 0
    assert trace.profile is not None
    assert trace.profile.steps == 0


def test_marked_steps_come_before_the_runs_of_programs() -> None:
    plane = module_runs(*(("jit_step", 100 * index, 100 * index + 90) for index in range(4)))
    plane.line("Steps").event(plane.kind("7"), 0, 400 * NS)
    (trace,) = traces(plane)
    assert [trace.name(row) for row in trace.rows(Category.DEVICE_ANNOTATION)] == ["XLA step 7"]


def test_each_asynchronous_collective_has_its_time_in_flight_and_its_exposed_part() -> None:
    plane = tpu_plane(0)
    op_line(
        plane,
        ("all-gather-start.1", "all-gather-start", 0, 1),
        ("fusion.1", "convolution fusion", 1, 40),
        ("reduce-scatter-start.2", "reduce-scatter-start", 40, 41),
        ("all-gather-done.1", "all-gather-done", 41, 50),
        ("fusion.2", "loop fusion", 50, 60),
        ("reduce-scatter-done.2", "reduce-scatter-done", 60, 90),
        ("send.3", "send", 90, 92),
        ("fusion.3", "loop fusion", 92, 95),
        ("send-done.3", "send-done", 95, 99),
    )
    flight = plane.line("Async XLA Ops")
    add(
        flight,
        ("all-gather-start.1", "all-gather-start", 0, 50),
        ("reduce-scatter-start.2", "reduce-scatter-start", 40, 90),
        ("send.3", "send", 90, 99),
    )
    (trace,) = traces(plane)
    lines = {line.collective: line for line in rank_parts(trace).summary.collectives}
    assert {name: (line.count, line.total_ns, line.exposed_ns) for name, line in lines.items()} == {
        "all_gather": (1, 50, 11),
        "reduce_scatter": (1, 50, 40),
        "p2p": (1, 9, 6),
    }
    found = rank_parts(trace).summary
    assert (found.communication_ns, found.exposed_communication_ns, found.compute_ns) == (99, 47, 52)


def test_costs_of_a_custom_call_may_stand_on_its_events() -> None:
    plane = tpu_plane(0, peak_teraflops_per_second=1.0, peak_hbm_bw_gigabytes_per_second=1000.0)
    line = plane.line("XLA Ops")
    kind = plane.kind("%call.1", "call.1", hlo_category="custom-call")
    line.event(kind, 0, 1_000_000, flops=400_000, bytes_accessed=100_000)
    line.event(kind, 1_000_000, 1_000_000, flops=600_000, bytes_accessed=100_000)
    (row,) = summary(plane).op_table
    assert (row.bound, row.compute_efficiency_frac, row.hbm_utilisation_frac) == ("compute", 0.5, 0.1)


def test_bytes_by_memory_come_from_the_breakdown() -> None:
    plane = tpu_plane(0, peak_teraflops_per_second=1.0, peak_hbm_bw_gigabytes_per_second=1.0)
    stats = {
        "hlo_category": "loop fusion",
        "bytes_accessed": 10**9,
        "memory_access_breakdown": memory_breakdown((READ, HBM, 300)),
    }
    plane.line("XLA Ops").event(plane.kind("%fusion.1", "fusion.1", **stats), 0, 1_000_000)
    (row,) = summary(plane).op_table
    assert row.hbm_utilisation_frac == pytest.approx(0.3)
