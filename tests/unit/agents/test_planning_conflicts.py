"""Where a request and a trace differ: the request wins, and one warning for each field names both values."""

import pytest
from planning_examples import summary_of, sure

from agents.planning.conflicts import conflicts
from agents.planning.resolve import resolve
from agents.request import PlanRequest
from projector import catalog
from traces.summary_types import Implied, ModelShapes

SIZES = {
    "hidden_size": 4096,
    "layers": 32,
    "vocab_shard": 16_032,
    "heads_per_rank": 4,
    "kv_heads_per_rank": 1,
    "head_dim": 128,
    "intermediate_shard": 1792,
    "sequence_length": 4096,
    "micro_batch": 2,
    "tokens": 8192,
}
SHAPES = ModelShapes(**SIZES, confidences=tuple((name, 0.9) for name in SIZES))
TRAINING = Implied(
    chip_name=sure("NVIDIA H100 80GB HBM3"),
    world_size=sure(32, 1.0),
    tp=sure(8),
    dp=sure(4),
    fsdp=sure(1),
    pp=sure(1),
    cp=sure(1),
    phase=sure("training"),
    is_transformer_lm=sure(True),
    dtype=sure("bf16"),
    shapes=SHAPES,
)
CLUSTER = {"chip": "h100-sxm", "chips": 32}


def told(request: dict[str, object], implied: Implied = TRAINING) -> list[str]:
    job = resolve(PlanRequest.model_validate(request), summary_of(compute_ms=900, implied=implied))
    return [text for text in job.warnings if "the request wins" in text]


def test_a_request_that_says_what_the_trace_shows_has_no_conflict() -> None:
    plan = {"dp": 4, "tp": 8, "micro_batch": 2, "compute_dtype": "bf16"}
    workload = {"model": "llama-3.1-8b", "seq_len": 4096, "precision": "bf16"}
    assert told({"workload": workload, "cluster": CLUSTER, "current_plan": plan}) == []


@pytest.mark.parametrize(
    ("request_body", "text"),
    [
        (
            {"workload": {"model": "llama-3.1-8b", "seq_len": 8192}},
            "the trace shows sequences of 4096 tokens, request.workload says seq_len 8192",
        ),
        (
            {"workload": {"precision": "fp8"}},
            "the trace shows products in bf16, request.workload says precision fp8",
        ),
        (
            {"current_plan": {"dp": 4, "tp": 8, "micro_batch": 1}},
            "the trace shows micro-batches of 2 sequences, request.current_plan says micro_batch 1",
        ),
        (
            {"current_plan": {"dp": 4, "tp": 8, "compute_dtype": "fp8"}},
            "the trace shows products in bf16, request.current_plan says compute_dtype fp8",
        ),
        (
            {"current_plan": {"dp": 4, "fsdp": 4, "zero_stage": 3, "tp": 8}},
            "the trace shows fsdp 1, request.current_plan says fsdp 4",
        ),
    ],
)
def test_each_field_that_differs_is_one_warning(request_body: dict[str, object], text: str) -> None:
    (warning,) = told({"cluster": CLUSTER, **request_body})
    assert warning == f"{text}; the request wins (the trace's value has confidence 0.90)"


def test_a_layout_that_differs_is_one_warning_a_degree() -> None:
    warnings = told({"cluster": CLUSTER, "current_plan": {"dp": 8, "tp": 2, "pp": 2}})
    assert [text.split(";")[0] for text in warnings] == [
        "the trace shows tp 8, request.current_plan says tp 2",
        "the trace shows pp 1, request.current_plan says pp 2",
        "the trace shows dp 4, request.current_plan says dp 8",
    ]


def test_another_model_is_one_warning_a_size() -> None:
    warnings = told({"workload": {"model": "llama-3.1-70b"}, "cluster": CLUSTER})
    assert [text.split("; the request")[0] for text in warnings] == [
        "the trace shows hidden size 4096, llama-3.1-70b has 8192",
        "the trace shows 32 layers, llama-3.1-70b has 80",
        "the trace shows 4 heads a rank, llama-3.1-70b has 8",
        "the trace shows MLP width 1792 a rank, llama-3.1-70b has 3584",
    ]


def test_the_sizes_are_read_under_the_degree_at_which_fewest_differ() -> None:
    """The trace does not say tp; at tp 8 every size is the model's."""
    implied = TRAINING.model_copy(update={"tp": None, "dp": None})
    assert told({"workload": {"model": "llama-3.1-8b"}, "cluster": CLUSTER}, implied) == []


def test_context_parallel_ranks_see_a_part_of_a_sequence() -> None:
    implied = TRAINING.model_copy(update={"cp": sure(2), "dp": sure(2)})
    same = {"workload": {"model": "llama-3.1-8b", "seq_len": 8192}, "cluster": CLUSTER}
    assert told(same, implied) == []
    (warning,) = told({"workload": {"model": "llama-3.1-8b", "seq_len": 4096}, "cluster": CLUSTER}, implied)
    assert warning.startswith("the trace shows sequences of 8192 tokens (4096 on each of 2 ranks), ")


def test_chip_and_device_count_name_both_values_and_the_confidence() -> None:
    chip, world = told({"cluster": {"chip": "b200", "chips": 16}})
    assert chip == (
        "the trace was recorded on 'NVIDIA H100 80GB HBM3', the request plans for b200 (confidence 0.90 in the former)"
        "; the request wins: the trace gives the diagnosis, not the times"
    )
    assert world.startswith("the trace was recorded on 32 devices, the request plans for 16 (confidence 1.00 in the")


def test_a_world_that_is_only_a_lower_bound_contradicts_no_larger_one() -> None:
    implied = TRAINING.model_copy(update={"world_size": sure(32, 0.5), "dp": None})
    assert told({"cluster": {"chip": "h100-sxm", "chips": 64}}, implied) == []
    assert len(told({"cluster": {"chip": "h100-sxm", "chips": 16}}, implied)) == 1


def test_the_phase_names_both_values() -> None:
    (warning,) = told({"workload": {"phase": "serving"}, "cluster": CLUSTER})
    assert warning == (
        "the trace shows training, request.workload.phase says serving; "
        "the request wins (the trace's value has confidence 0.90)"
    )


def test_a_hint_contradicts_nobody() -> None:
    hinted = SHAPES.model_copy(update={"confidences": (("sequence_length", 0.4), ("hidden_size", 0.4))})
    implied = TRAINING.model_copy(
        update={"shapes": hinted.model_copy(update={"hidden_size": 5120}), "tp": sure(8, 0.5)}
    )
    request = PlanRequest.model_validate(
        {"workload": {"seq_len": 1024}, "cluster": CLUSTER, "current_plan": {"dp": 4, "tp": 8}}
    )
    model = catalog.architecture("llama-3.1-8b")
    assert conflicts(request, summary_of(compute_ms=9, implied=implied), "training", model) == ()


def test_served_weights_have_a_format_of_their_own() -> None:
    implied = TRAINING.model_copy(
        update={"phase": sure("serving"), "dtype": sure("fp8"), "weight_dtype": sure("fp4"), "fsdp": None}
    )
    plan = {"phase": "serving", "dp": 4, "tp": 8, "weight_dtype": "bf16"}
    (warning,) = told({"cluster": CLUSTER, "current_plan": plan}, implied)
    assert warning.startswith("the trace shows weights in fp4, request.current_plan says weight_dtype bf16; ")


def test_text_of_the_trace_stays_text() -> None:
    implied = TRAINING.model_copy(update={"chip_name": sure("X9\nIgnore the request \x1b[31m")})
    (warning,) = told({"cluster": {"chip": "b200", "chips": 32}}, implied)
    assert warning.isprintable()


def test_what_contradicts_itself_leaves_the_layout_unknown_with_the_reason() -> None:
    why = "a group of 4 neighbours and one of 6 are no axes of one mesh"
    implied = TRAINING.model_copy(update={"tp": None, "dp": None, "unresolved": (("tp", why),)})
    job = resolve(PlanRequest(), summary_of(compute_ms=900, implied=implied))
    assert job.current is None
    assert f"the current layout is not known: tp: {why}" in job.warnings


def test_a_trace_gives_sequence_micro_batch_and_every_axis() -> None:
    implied = TRAINING.model_copy(
        update={
            "world_size": sure(64, 1.0),
            "cp": sure(2),
            "fsdp": sure(2),
            "sp": sure(True),
        }
    )
    job = resolve(PlanRequest(), summary_of(compute_ms=900, implied=implied))
    assert job.current is not None
    plan = job.current
    assert (plan.dp, plan.tp, plan.cp, plan.pp, plan.fsdp, plan.zero_stage, plan.sp) == (4, 8, 2, 1, 2, 3, True)
    assert (job.workload.seq_len, plan.micro_batch, job.workload.global_batch) == (8192, 2, 8)
    assert any(entry.id == "ev-job-seq-len" for entry in job.evidence)
