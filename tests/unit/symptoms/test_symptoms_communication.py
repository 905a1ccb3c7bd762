"""Communication that other tools do not see, or see wrongly."""

from dataclasses import replace

import pytest

from tests.unit.traces.trace_examples import Event, annotation, kernel, launch, op, trace_of
from traces.rules import rules_with
from traces.rules.rule import Rule
from traces.summary import summarise
from traces.summary_types import TraceSummary


def summary_of(*events: Event) -> TraceSummary:
    return summarise([trace_of(*events)])


@pytest.mark.parametrize(
    "name",
    [
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "nccldevkernel_allreduce_sum_bf16_ring_ll",
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
        "ncclSymDevKernel_AllReduce_RSxLD_AGxST_sum_bf16(ncclSymDevArgs)",
        "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(int)",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
    ],
)
def test_overlap_is_a_number_for_every_spelling_of_a_collective(name: str) -> None:
    summary = summary_of(kernel("nvjet", 0, 10), kernel(name, 5, 10, stream=20))
    assert (summary.communication_ns, summary.exposed_communication_ns) == (10_000, 5_000)
    assert summary.collectives[0].collective == "all_reduce"


def test_without_a_collective_communication_is_zero_and_nothing_is_divided_by_it() -> None:
    summary = summary_of(kernel("nvjet", 0, 10))
    assert (summary.communication_ns, summary.exposed_communication_ns, summary.collectives) == (0, 0, ())


def test_exposed_communication_is_what_the_time_line_shows() -> None:
    """A tenth of the time, that another tool reports as 0.2 %."""
    layers = [
        event
        for layer in range(10)
        for event in (
            kernel("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn", 100 * layer, 90),
            kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL()", 100 * layer + 85, 15, stream=20),
        )
    ]
    summary = summary_of(*layers)
    assert (summary.window_ns, summary.compute_ns) == (1_000_000, 900_000)
    assert (summary.communication_ns, summary.exposed_communication_ns) == (150_000, 100_000)


def test_on_rocm_the_arguments_say_which_collective_a_generic_kernel_is() -> None:
    names = ("allreduce", "_allgather_base", "_reduce_scatter_base", "all_to_allv")
    events = [
        kernel("ncclDevKernel_Generic(ncclDevComm*, channelMasks, ncclWork*)", 10 * at, 5, **{"Collective name": name})
        for at, name in enumerate(names)
    ]
    assert sorted(line.collective for line in summary_of(*events).collectives) == [
        "all_gather",
        "all_reduce",
        "all_to_all",
        "reduce_scatter",
    ]


def test_without_arguments_the_operator_around_it_says_so() -> None:
    summary = summary_of(
        annotation("nccl:_all_gather_base", 0, 9),
        op("record_param_comms", 1, 7),
        launch(1, 3),
        kernel("ncclDevKernel_Generic(ncclDevComm*)", 10, 5, correlation=1),
    )
    assert [line.collective for line in summary.collectives] == ["all_gather"]


def test_a_rule_of_ones_own_makes_communication_of_a_kernel_nobody_knows() -> None:
    """No source of ours is edited for a new library."""
    rule = Rule("communication", "expert_dispatch", "ours", r"^acme_dispatch", ("acme_dispatch_v2",), own=True)
    trace = trace_of(kernel("nvjet", 0, 10), kernel("acme_dispatch_v2", 10, 10, stream=27))
    assert summarise([trace]).communication_ns == 0
    told = summarise([replace(trace, rules=rules_with((rule,)))])
    assert (told.communication_ns, told.exposed_communication_ns) == (10_000, 10_000)
    assert [line.collective for line in told.collectives] == ["expert_dispatch"]


def test_expert_parallel_kernels_are_communication_though_no_name_says_nccl() -> None:
    summary = summary_of(
        kernel("nvjet", 0, 100),
        kernel("void deep_ep::internode::dispatch<false, 8>(int)", 5, 40, stream=27),
        kernel("void deep_ep::internode::combine<__nv_bfloat16, 8>(int)", 50, 60, stream=27),
    )
    assert (summary.communication_ns, summary.exposed_communication_ns) == (100_000, 10_000)


def test_ids_wider_than_64_bits_do_not_cost_the_event() -> None:
    """NCCL's communicator ids ("Comms Id") are unsigned 64-bit numbers, and some writers' wider."""
    wide = {"Comms Id": 2**64 - 1, "Seq": 2**70, "External id": 2**63, "Collective name": "allreduce"}
    trace = trace_of(kernel("ncclDevKernel_Generic", 0, 5, **wide))
    assert trace.collectives[0].name == "allreduce"
    assert trace.collectives[0].sequence is None
    assert trace.external_id.tolist() == [-1]
