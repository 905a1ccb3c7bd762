"""Classes with provenance: which evidence decides, and where the kernel's name must not."""

import pytest
from trace_examples import Event, annotation, external, kernel, launch, memcpy, memset, op, trace_of

from traces.naming import KINDS, NO_KIND, By, Classified, EventClass, classify
from traces.trace import Trace

COLLECTIVE = {"Collective name": "allreduce", "Group size": 8}


def outcome(*events: Event) -> list[tuple[str, EventClass, By]]:
    """(name, class, reason) of every device event, in order of start."""
    trace = trace_of(*events)
    return told(trace, classify(trace))


def told(trace: Trace, found: Classified) -> list[tuple[str, EventClass, By]]:
    return [
        (trace.name(row), EventClass(event_class), By(by))
        for row, event_class, by in zip(found.links.rows, found.event_class, found.by, strict=True)
    ]


def kinds(*events: Event) -> dict[str, str]:
    trace = trace_of(*events)
    found = classify(trace)
    return {
        trace.name(row): KINDS[kind] if kind != NO_KIND else ""
        for row, kind in zip(found.links.rows, found.kind, strict=True)
    }


def test_the_order_of_evidence() -> None:
    assert outcome(
        memcpy(0, 1),
        memset(2, 1),
        kernel("mystery", 10, 1, **COLLECTIVE),
        op("record_param_comms", 12, 5, **external(1)),
        launch(1, 13, **external(1)),
        kernel("mystery", 20, 1, correlation=1, **external(1)),
        kernel("ncclDevKernel_AllReduce", 30, 1),
        kernel("__amd_rocclr_copyBuffer", 40, 1),
        kernel("nvjet_x", 50, 1),
        op("aten::mm", 55, 9, **external(2)),
        launch(2, 56, **external(2)),
        kernel("mystery", 60, 1, correlation=2, **external(2)),
        kernel("mystery", 70, 1),
    ) == [
        ("Memcpy DtoD (Device -> Device)", EventClass.COPY, By.CATEGORY),
        ("Memset (Device)", EventClass.COPY, By.CATEGORY),
        ("mystery", EventClass.COMMUNICATION, By.COLLECTIVE_ARGS),
        ("mystery", EventClass.COMMUNICATION, By.ENCLOSING_OP),
        ("ncclDevKernel_AllReduce", EventClass.COMMUNICATION, By.NAME_RULE),
        ("__amd_rocclr_copyBuffer", EventClass.COPY, By.NAME_RULE),
        ("nvjet_x", EventClass.COMPUTE, By.NAME_RULE),
        ("mystery", EventClass.COMPUTE, By.ENCLOSING_OP),
        ("mystery", EventClass.COMPUTE, By.UNCLASSIFIED),
    ]


@pytest.mark.parametrize("library_kernel", ["void at::native::elementwise_kernel<128>(int)", "triton_poi_fused_add_0"])
def test_pointwise_kernels_inside_a_collective_stay_compute(library_kernel: str) -> None:
    ((_, event_class, by),) = outcome(
        op("c10d::allreduce_", 0, 9, **external(1)),
        launch(1, 1, **external(1)),
        kernel(library_kernel, 5, 1, correlation=1, **external(1)),
    )
    assert (event_class, by) == (EventClass.COMPUTE, By.NAME_RULE)


def test_only_the_innermost_operator_decides() -> None:
    ((_, event_class, _),) = outcome(
        op("vllm::all_reduce", 0, 9),
        op("aten::copy_", 2, 5),
        launch(1, 3),
        kernel("mystery", 20, 1, correlation=1),
    )
    assert event_class == EventClass.COMPUTE


def test_an_operator_is_found_through_time_where_ids_are_missing() -> None:
    ((_, event_class, by),) = outcome(
        annotation("nccl:all_to_all", 0, 9), launch(1, 3), kernel("mystery", 20, 1, correlation=1)
    )
    assert (event_class, by) == (EventClass.COMMUNICATION, By.ENCLOSING_OP)


def test_an_external_id_that_repeats_the_correlation_is_not_followed() -> None:
    """Before 2023 Kineto wrote so; followed, the id 5 would point at an unrelated collective."""
    ((_, event_class, by),) = outcome(
        op("record_param_comms", 0, 1, **external(5)),
        op("aten::mm", 10, 5, **external(7)),
        launch(5, 11, **external(5)),
        kernel("mystery", 20, 1, correlation=5, **external(5)),
    )
    assert (event_class, by) == (EventClass.COMPUTE, By.ENCLOSING_OP)


def test_one_launch_of_a_graph_serves_many_kernels() -> None:
    found = outcome(
        annotation("execute_context_0(0)_generation_2(2)", 0, 90),
        launch(1, 3),
        *(
            kernel(name, 20 + 10 * place, 5, correlation=1)
            for place, name in enumerate(("nvjet_a", "mystery", "ncclKernel_x"))
        ),
    )
    assert [event_class for _, event_class, _ in found] == [
        EventClass.COMPUTE,
        EventClass.COMPUTE,
        EventClass.COMMUNICATION,
    ]


def test_a_stream_of_communication_alone_hints_at_its_unnamed_kernels() -> None:
    found = outcome(
        kernel("nvjet", 0, 50, stream=7),
        kernel("ncclDevKernel_AllReduce", 0, 30, stream=20),
        kernel("mystery", 31, 10, stream=20),
        kernel("mystery", 60, 10, stream=7),
    )
    assert [(by, event_class) for name, event_class, by in found if name == "mystery"] == [
        (By.STREAM_HINT, EventClass.COMMUNICATION),
        (By.UNCLASSIFIED, EventClass.COMPUTE),
    ]


@pytest.mark.parametrize(
    "on_the_stream",
    [
        [kernel("ncclDevKernel_AllReduce", 0, 5, stream=20), kernel("mystery", 31, 10, stream=20)],
        [
            kernel("nvjet", 0, 30, stream=20),
            kernel("ncclDevKernel_AllReduce", 31, 30, stream=20),
            kernel("mystery", 62, 1, stream=20),
        ],
        [kernel("mystery", 31, 10, stream=20)],
    ],
    ids=["the unnamed prevail", "shared with compute", "nothing known"],
)
def test_a_hint_that_is_too_weak(on_the_stream: list[Event]) -> None:
    found = outcome(kernel("nvjet", 0, 50, stream=7), *on_the_stream)
    assert [by for name, _, by in found if name == "mystery"] == [By.UNCLASSIFIED]


def test_a_single_stream_is_not_a_dedicated_one() -> None:
    found = outcome(kernel("ncclDevKernel_AllReduce", 0, 50), kernel("mystery", 60, 1))
    assert found[-1][2] == By.UNCLASSIFIED


def test_names_alone_as_other_tools_classify() -> None:
    trace = trace_of(
        kernel("mystery", 0, 1, **COLLECTIVE), kernel("ncclKernel_x", 2, 1), memcpy(4, 1), kernel("nvjet", 6, 1)
    )
    assert [event_class for _, event_class, _ in told(trace, classify(trace, "names"))] == [
        EventClass.COMPUTE,
        EventClass.COMMUNICATION,
        EventClass.COPY,
        EventClass.COMPUTE,
    ]


def test_operators_refine_the_kind() -> None:
    assert kinds(
        op("vllm::moe_forward", 0, 4),
        launch(1, 1),
        kernel("bmm_MxE4m3_MxE2m1MxE4m3", 10, 1, correlation=1),
        annotation("Optimizer.step#SGD.step", 20, 10),
        op("aten::_foreach_add_", 21, 5),
        launch(2, 22),
        kernel("void at::native::multi_tensor_apply_kernel<int>(int)", 40, 1, correlation=2),
        op("aten::embedding", 50, 5),
        launch(3, 51),
        kernel("void at::native::vectorized_gather_kernel<16, long>(char*)", 60, 1, correlation=3),
        kernel("ncclKernel_x", 70, 1),
    ) == {
        "bmm_MxE4m3_MxE2m1MxE4m3": "moe",
        "void at::native::multi_tensor_apply_kernel<int>(int)": "optimizer",
        "void at::native::vectorized_gather_kernel<16, long>(char*)": "embedding",
        "ncclKernel_x": "",
    }


def test_a_product_is_no_collective_for_its_name() -> None:
    """A fused product may be called after what is beside it; kernels of a collective library are not."""
    found = kinds(
        op("aten::mm", 0, 4),
        launch(1, 1),
        kernel("allreduce_gemm_kernel", 10, 1, correlation=1),
        op("aten::mm", 20, 4),
        launch(2, 21),
        kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)", 30, 1, correlation=2),
        kernel("allreduce_kernel", 40, 1),
    )
    assert found == {
        "allreduce_gemm_kernel": "gemm",
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)": "",
        "allreduce_kernel": "",
    }
