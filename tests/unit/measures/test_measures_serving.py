"""Phases of a serving engine from the names of its iterations, in the form of each engine."""

from typing import Any

import pytest

from tests.unit.measures.measure_examples import Event, annotation, call, kernel, launched, op, trace_of
from traces.linking import link
from traces.measure_types import ServingPhase
from traces.measures.serving import merged_phases, phases_of, serving_phases
from traces.measures.serving_names import ServingStep, serving_step
from traces.steps import StepWindow
from traces.summary import summarise


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (  # vLLM: two requests in prefill, three in decode
            "execute_context_2(6144)_generation_3(3)",
            ServingStep("mixed", 5, 2, 6144, None, 3, 3),
        ),
        (  # the same with sums of lengths; the prompts have reached 7144 tokens
            "execute_6147_context_2(sq6144sk7144sqsq20971520sqsk23019520)_generation_3(sq3sk6144sqsq3sqsk6144)",
            ServingStep("mixed", 5, 2, 6144, 7144, 3, 3),
        ),
        ("execute_context_0(0)_generation_32(128)", ServingStep("decode", 32, 0, 0, 0, 32, 128)),
        ("execute_context_1(888_788544)_generation_0(0)", ServingStep("prefill", 1, 1, 888, None, 0, 0)),
        ("execute_context_0(0)_generation_0(0)", ServingStep("idle", 0, 0, 0, 0, 0, 0)),
        ("execute_context_2_generation_3", ServingStep("mixed", 5, 2, None, None, 3, None)),
        ("execute_new_1_cached_0", ServingStep("prefill", 1, 1, None, None, 0, 0)),
        ("execute_new_1_cached_4", ServingStep("unknown", 5)),  # may be prefill, chunk by chunk, or decode
        ("execute_new_0_cached_0", ServingStep("idle", 0, 0, 0, 0, 0, 0)),
        ("step[EXTEND bs=2 toks=14721]", ServingStep("prefill", 2, 2, 14721, None, 0, 0)),
        ("step[EXTEND bs=2 toks=14721 c_sqsq=9 c_sqsk=9 c_sk=16221]", ServingStep("prefill", 2, 2, 14721, 16221, 0, 0)),
        ("step[DECODE bs=64]", ServingStep("decode", 64, 0, 0, 0, 64, 64)),
        ("step[DECODE bs=64 g_sq=128 g_sqsq=256]", ServingStep("decode", 64, 0, 0, 0, 64, 128)),
        ("step[TARGET_VERIFY bs=4]", ServingStep("decode", 4, 0, 0, 0, 4, None)),
        ("step[MIXED bs=5 c=2 g=3 c_sq=6144 c_sk=7144 g_sq=3]", ServingStep("mixed", 5, 2, 6144, 7144, 3, 3)),
        ("step[MIXED bs=5]", ServingStep("mixed", 5)),
        ("step[IDLE bs=0]", ServingStep("idle", 0, 0, 0, 0, 0, 0)),
        ("step[DLLM_EXTEND bs=2]", ServingStep("unknown", 2)),
        ("prefill[bs=2 tok=14721 ctx=[7803, 6918] sqsq=1 sk=16221]", ServingStep("prefill", 2, 2, 14721, 16221, 0, 0)),
        ("decode[bs=117/128 tok=117 d=117]", ServingStep("decode", 117, 0, 0, 0, 117, 117)),
        ("decode[bs=128 tok=384 p=2 d=126 tbo=1]", ServingStep("mixed", 128, 2, None, None, 126, None)),
        (
            "[Executor] _forward_step 7: 2 ctx reqs, 512 ctx tokens, 30 gen reqs",
            ServingStep("mixed", 32, 2, 512, None, 30),
        ),
        ("[Executor] _forward_step 8: 0 ctx reqs, 64 gen reqs", ServingStep("decode", 64, 0, 0, 0, 64)),
    ],
)
def test_what_a_name_tells(name: str, expected: ServingStep) -> None:
    assert serving_step(name) == expected


@pytest.mark.parametrize(
    "name",
    [
        "ProfilerStep#4",
        "execute_model",
        "step[DECODE bs=999999999999999999]",
        "step[decode bs=3]",
        "decode",
        "step[EXTEND bs=2 toks=5",
        "",
        "execute_" * 500,
    ],
)
def test_other_names_tell_nothing(name: str) -> None:
    assert serving_step(name) is None


def test_counts_that_cannot_be_are_not_believed() -> None:
    step = serving_step("execute_context_9(3)_generation_4(1)")
    assert step == ServingStep("mixed", 13, 9, None, None, 4, None)


def iteration(name: str, begin: float, took: float, number: int) -> list[Event]:
    return [annotation(name, begin, 10), *launched(number, begin + 1, 2, begin + 5, took)]


def phases(*events: Event) -> dict[str, ServingPhase]:
    trace = trace_of(*events)
    return {phase.phase: phase for phase in serving_phases(trace, link(trace))}


def test_phases_with_requests_and_tokens() -> None:
    found = phases(
        *iteration("step[EXTEND bs=2 toks=900]", 0, 80, 1),
        *iteration("step[DECODE bs=4]", 100, 20, 2),
        *iteration("step[DECODE bs=8]", 200, 24, 3),
        *iteration("step[DECODE bs=8]", 300, 22, 4),
    )
    assert found["prefill"] == ServingPhase(
        phase="prefill",
        steps=1,
        total_ns=80_000,
        median_ns=80_000,
        requests_min=2,
        requests_median=2.0,
        requests_max=2,
        prompts=2,
        prefill_tokens=900,
        reached_tokens=None,
        decoding_max=0,
        decode_tokens=0,
    )
    decode = found["decode"]
    assert (decode.steps, decode.total_ns, decode.median_ns) == (3, 66_000, 22_000)
    assert (decode.requests_min, decode.requests_median, decode.requests_max) == (4, 8.0, 8)
    assert (decode.decode_tokens, decode.decoding_max, decode.prefill_tokens) == (20, 8, 0)


def test_a_replayed_graph_belongs_to_the_iteration_that_launched_it() -> None:
    """Hundreds of kernels on one correlation, without an operator of their own, long after the mark on the host."""
    graph = [kernel("nvjet", 50 + place, 1, correlation=1) for place in range(100)]
    found = phases(annotation("step[DECODE bs=4]", 0, 10), call("cudaGraphLaunch", 1, 2, 5), *graph)
    assert (found["decode"].steps, found["decode"].total_ns) == (1, 100_000)


def test_an_unknown_count_leaves_the_sum_unknown() -> None:
    found = phases(*iteration("step[DECODE bs=4]", 0, 20, 1), *iteration("step[TARGET_VERIFY bs=4]", 100, 20, 2))
    assert (found["decode"].steps, found["decode"].decode_tokens) == (2, None)


def test_without_marks_nothing_is_guessed() -> None:
    assert phases(op("vllm::unified_attention", 0, 5), kernel("paged_attention_v1", 5, 5)) == {}
    assert summarise([trace_of(kernel("paged_attention_v1", 5, 5))]).serving_phases == ()


def test_ranks_of_one_engine_count_their_common_iterations_each() -> None:
    def rank(number: int) -> Any:
        events = (
            *iteration("step[DECODE bs=4]", 0, 20 + number, 1),
            *iteration("step[DECODE bs=8]", 100, 30, 2),
            *iteration("step[DECODE bs=8]", 200, 40, 3),
        )
        return trace_of(*events, distributedInfo={"rank": number, "world_size": 2})

    (decode,) = summarise([rank(0), rank(1)]).serving_phases
    assert (decode.steps, decode.total_ns, decode.median_ns) == (6, 90_000 + 91_000, 30_000)
    assert (decode.requests_min, decode.requests_median, decode.requests_max) == (4, 8.0, 8)
    assert decode.decode_tokens == 40


def test_medians_of_ranks_weigh_by_their_steps() -> None:
    windows = [StepWindow("step[DECODE bs=2]", 0, 10)] * 3
    (few,) = phases_of([StepWindow("step[DECODE bs=9]", 0, 90)])
    (merged,) = merged_phases([phases_of(windows), (few,)])
    assert (merged.median_ns, merged.requests_median, merged.requests_max) == (10, 2.0, 9)
