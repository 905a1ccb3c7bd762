"""Whose work a kernel does: the innermost operator with a formula, once, over all of its kernels."""

from tests.unit.traces.trace_examples import Event, annotation, external, kernel, launch, op, trace_of
from traces.measure_types import ClassWork
from traces.naming import classify
from traces.work.class_work import work_of

MM = {"Input Dims": [[64, 32], [32, 48]], "Input type": ["c10::BFloat16"] * 2, "Concrete Inputs": ["", ""]}
LINEAR = {"Input Dims": [[64, 32], [48, 32]], "Input type": ["c10::BFloat16"] * 2, "Concrete Inputs": ["", ""]}
COPY = {"Input Dims": [[64, 48], [64, 48]], "Input type": ["c10::BFloat16"] * 2, "Concrete Inputs": ["", ""]}
FLOP = 196_608


def gemm(correlation: int, start: float, duration: float = 10, name: str = "sm90_xmma_gemm_bf16") -> Event:
    return kernel(name, start, duration, correlation=correlation)


def work(*events: Event) -> tuple[ClassWork, ...]:
    trace = trace_of(*events)
    return work_of(trace, classify(trace))


def test_one_product():
    (found,) = work(op("aten::mm", 0, 20, **MM), launch(1, 5), gemm(1, 30))
    assert (found.kind, found.count, found.total_ns, found.known_count, found.known_ns) == (
        "gemm",
        1,
        10_000,
        1,
        10_000,
    )
    assert (found.flop, found.moved_bytes, found.basis) == (FLOP, 13_312, "operator shapes")
    assert found.flop_per_s == FLOP / 10e-6
    assert found.bytes_per_s == 13_312 / 10e-6
    assert found.intensity_flop_per_byte == FLOP / 13_312


def test_both_kernels_of_a_split_product_are_its_time():
    (found,) = work(
        op("aten::mm", 0, 20, **MM), launch(1, 5), launch(2, 8), gemm(1, 30), gemm(2, 45, 2, "splitKreduce_kernel")
    )
    (operator,) = found.operators
    assert (operator.calls, operator.kernels, operator.total_ns, operator.flop) == (1, 2, 12_000, FLOP)


def test_operators_inside_one_another_count_once():
    (found,) = work(op("aten::linear", 0, 40, **LINEAR), op("aten::mm", 10, 20, **MM), launch(1, 15), gemm(1, 50))
    assert [one.operator for one in found.operators] == ["aten::mm"]
    assert found.flop == FLOP


def test_an_outer_product_s_own_kernels_stay_unknown():
    (found,) = work(
        op("aten::linear", 0, 60, **LINEAR),
        op("aten::mm", 10, 20, **MM),
        launch(1, 15),
        launch(2, 40),
        gemm(1, 50),
        gemm(2, 70),
    )
    assert (found.flop, found.known_ns, found.total_ns) == (FLOP, 10_000, 20_000)


def test_a_kernel_of_an_unknown_operator_is_its_product_s():
    (found,) = work(op("aten::linear", 0, 60, **LINEAR), op("library::secret", 10, 20), launch(1, 15), gemm(1, 50))
    assert [one.operator for one in found.operators] == ["aten::linear"]


def test_a_pointwise_operator_does_not_claim_what_runs_inside_it():
    (found,) = work(op("aten::copy_", 0, 60, **COPY), op("library::secret", 10, 20), launch(1, 15), gemm(1, 50))
    assert (found.flop, found.known_count, found.basis) == (None, 0, "")


def test_an_operator_that_begins_with_its_child_does_not_belong_to_it():
    (found,) = work(op("library::secret", 0, 60), op("aten::linear", 0, 20, **LINEAR), launch(1, 40), gemm(1, 50))
    assert found.known_count == 0


def test_all_kernels_of_a_call_have_the_kind_of_its_costliest():
    kinds = work(
        op("aten::mm", 0, 20, **MM),
        launch(1, 5),
        launch(2, 8),
        gemm(1, 30),
        gemm(2, 45, 2, "void at::native::vectorized_elementwise_kernel<4>"),
    )
    assert [(one.kind, one.count) for one in kinds] == [("gemm", 2)]


def test_a_kernel_without_an_operator_is_listed_with_its_time():
    (found,) = work(op("aten::mm", 0, 20, **MM), gemm(9, 30))
    assert (found.total_ns, found.known_ns, found.flop, found.flop_per_s) == (10_000, 0, None, None)


def test_calls_alike_are_one_line():
    events = [
        event
        for number in range(3)
        for event in (
            op("aten::mm", 100 * number, 20, **MM),
            launch(number + 1, 100 * number + 5),
            gemm(number + 1, 100 * number + 30),
        )
    ]
    (found,) = work(*events)
    (operator,) = found.operators
    assert (operator.calls, operator.shapes, found.flop) == (3, "[64, 32] [32, 48]", 3 * FLOP)


def test_the_external_id_leads_to_the_operator():
    (found,) = work(
        op("aten::mm", 0, 20, **MM, **external(7)),
        launch(1, 5),
        kernel("sm90_xmma_gemm", 30, 10, correlation=1, **external(7)),
    )
    assert found.flop == FLOP


def test_communication_and_copies_are_no_work():
    assert work(annotation("step", 0, 90), launch(1, 5), kernel("ncclDevKernel_AllReduce", 30, 10, correlation=1)) == ()


def test_files_whose_kernels_have_no_correlation_are_joined_by_external_id():
    # as ROCm's older profilers write them: the id of kernel 2 is the call's, and by chance the second operator's
    events = [
        event
        for number in (1, 2)
        for event in (
            op("aten::mm", 100 * number, 20, **(MM if number == 1 else LINEAR), **external(number)),
            {**launch(0, 100 * number + 5), "args": external(2 * number)},
            kernel("Cijk_Ailk_Bljk_BBS", 100 * number + 30, 10, **external(2 * number)),
        )
    ]
    (found,) = work(*events)
    assert (found.known_count, found.operators[0].calls + found.operators[1].calls) == (2, 2)


def test_an_operator_one_of_whose_kernels_is_missing_has_unknown_work():
    (found,) = work(op("aten::mm", 0, 20, **MM), launch(1, 5), launch(2, 8), gemm(1, 30))
    assert (found.total_ns, found.known_ns) == (10_000, 0)
