"""Sizes of a model from the shapes of its operators, with recompute, tensor parallelism, packing and experts."""

from itertools import count

from trace_examples import Event, annotation, kernel, op, trace_of

from traces.summary import summarise
from traces.summary_types import ModelShapes

BF16 = "c10::BFloat16"


def shapes(*events: Event) -> ModelShapes:
    return summarise([trace_of(*events)]).implied.shapes


def sizes(found: ModelShapes, *names: str) -> list[int | None]:
    return [getattr(found, name) for name in names]


class Clock:
    """Operators one after another; `inside` nests them in one that lasts as long as they do."""

    def __init__(self) -> None:
        self.ticks = count(0, 10)

    def op(self, name: str, *dims: list[int], values: list[str] | None = None, thread: int = 1) -> Event:
        args: dict[str, object] = {"Input Dims": list(dims), "Input type": [BF16] * len(dims)}
        if values is not None:
            args["Concrete Inputs"] = values
        return op(name, next(self.ticks), 1, thread=thread, **args)

    def inside(self, name: str, events: list[Event], *dims: list[int]) -> list[Event]:
        start = events[0]["ts"] - 1
        around = op(
            name,
            start,
            events[-1]["ts"] + 2 - start,
            thread=events[0]["tid"],
            **{"Input Dims": list(dims), "Input type": [BF16] * len(dims)},
        )
        return [around, *events]


def block(clock: Clock, thread: int = 1) -> list[Event]:
    """One layer of a grouped-query model: hidden 512, 8 heads of 64, 2 key-value heads repeated, MLP 1536."""

    def linear(width_in: int, width_out: int) -> Event:
        return clock.op("aten::linear", [2, 128, width_in], [width_out, width_in], thread=thread)

    heads = [2, 8, 128, 64]
    return [
        linear(512, 512),
        linear(512, 128),
        linear(512, 128),
        clock.op("aten::scaled_dot_product_attention", heads, heads, heads, thread=thread),
        linear(512, 512),
        linear(512, 1536),
        linear(512, 1536),
        linear(1536, 512),
        clock.op("aten::rms_norm", [2, 128, 512], [512], thread=thread),
    ]


def step(clock: Clock, layers: int = 3, *, recompute: bool = True) -> list[Event]:
    """Forward, loss, and a backward pass on its own thread, which runs the blocks again first where told."""
    events = [clock.op("aten::embedding", [32000, 512], [2, 128])]
    for _ in range(layers):
        events += block(clock)
    events += [
        clock.op("aten::linear", [2, 128, 512], [32000, 512]),
        clock.op("aten::cross_entropy_loss", [256, 32000]),
    ]
    for _ in range(layers):
        again = block(clock, thread=2) if recompute else [clock.op("aten::mm", [256, 512], [512, 512], thread=2)]
        events += clock.inside("autograd::engine::evaluate_function: CheckpointFunctionBackward", again)
    return events


def test_recompute_does_not_count_twice() -> None:
    for recompute in (True, False):
        clock = Clock()
        found = shapes(*step(clock, recompute=recompute), *step(clock, recompute=recompute))
        assert sizes(found, "layers", "hidden_size", "vocab_shard", "intermediate_shard") == [3, 512, 32000, 1536]
        assert sizes(found, "tokens", "sequence_length", "micro_batch") == [256, 128, 2]


def test_projections_tell_key_value_heads_where_attention_is_given_repeated_keys() -> None:
    found = shapes(*step(Clock()))
    assert sizes(found, "heads_per_rank", "kv_heads_per_rank", "head_dim") == [8, 2, 64]
    assert dict(found.basis)["kv_heads_per_rank"] == "projections of keys and values apart beside 8 heads of 64"


def test_a_split_of_a_fused_projection_tells_them_too() -> None:
    clock = Clock()
    layer = [
        clock.op("aten::linear", [64, 512], [768, 512]),
        clock.op("aten::split_with_sizes", [64, 768], [], values=["", "[512, 128, 128]"]),
        clock.op("aten::scaled_dot_product_attention", [1, 8, 64, 64], [1, 8, 64, 64]),
        clock.op("aten::linear", [64, 512], [512, 512]),
        clock.op("aten::linear", [64, 512], [512, 512]),
        clock.op("aten::rms_norm", [64, 512]),
    ]
    found = shapes(clock.op("aten::embedding", [1000, 512], [64]), *layer)
    assert sizes(found, "kv_heads_per_rank") == [2]
    assert dict(found.basis)["kv_heads_per_rank"].endswith("into [512, 128, 128]")


def test_projections_that_fit_several_numbers_tell_none() -> None:
    clock = Clock()
    layer = [
        clock.op("aten::linear", [64, 512], [768, 512]),
        clock.op("aten::linear", [64, 512], [1024, 512]),
        clock.op("aten::scaled_dot_product_attention", [1, 8, 64, 64], [1, 8, 64, 64]),
        clock.op("aten::rms_norm", [64, 512]),
    ]
    assert sizes(shapes(clock.op("aten::embedding", [1000, 512], [64]), *layer), "kv_heads_per_rank") == [None]


def test_a_dtensor_shows_whole_layers_and_runs_its_part() -> None:
    """Linear layers of a DTensor state the sizes of the whole; the products inside them are those of this rank."""
    clock = Clock()
    first = clock.inside("aten::linear", [clock.op("aten::mm", [64, 128], [128, 256])], [1, 64, 128], [512, 128])
    second = clock.inside("aten::linear", [clock.op("aten::mm", [64, 256], [256, 128])], [1, 64, 512], [128, 512])
    events = [
        clock.op("aten::embedding", [1000, 128], [1, 64]),
        clock.op("aten::scaled_dot_product_attention", [1, 2, 64, 32], [1, 2, 64, 32]),
        clock.op("aten::layer_norm", [1, 64, 128]),
        *first,
        *second,
        *clock.inside("aten::linear", [clock.op("aten::mm", [64, 256], [256, 128])], [1, 64, 512], [128, 512]),
    ]
    implied = summarise([trace_of(*events, distributedInfo={"rank": 0, "world_size": 4})]).implied
    assert implied.shapes.intermediate_shard == 256
    assert implied.tp is not None
    assert (implied.tp.value, implied.tp.confidence) == (2, 0.9)
    assert implied.tp.basis == "aten::linear 128 to 512 runs as 128 to 256 on this rank, 3 products so"


def test_megatron_and_transformer_engine_products() -> None:
    clock = Clock()
    layer = [
        clock.op("LinearWithGradAccumulationAndAsyncCommunication", [128, 2, 512], [384, 512]),
        clock.op("FusedAttnFunc", [128, 2, 4, 64]),
        clock.op("_Linear", [512, 256], [128, 2, 256]),
        clock.op("aten::layer_norm", [128, 2, 512]),
    ]
    again = [event | {"ts": event["ts"] + 1000} for event in layer]
    found = shapes(clock.op("VocabParallelCrossEntropy", [128, 2, 32000]), *layer, *again)
    assert sizes(found, "hidden_size", "layers", "tokens") == [512, 2, 256]


def test_stages_without_a_token_table_count_their_losses_or_nothing() -> None:
    clock = Clock()
    layer = [clock.op("aten::scaled_dot_product_attention", [2, 8, 128, 64], [2, 8, 128, 64]) for _ in range(4)]
    norm = clock.op("aten::rms_norm", [2, 128, 512])
    losses = [clock.op("aten::cross_entropy_loss", [256, 1000]) for _ in range(2)]
    assert sizes(shapes(*layer, norm), "layers") == [None]
    assert sizes(shapes(*layer, norm, *losses), "layers") == [2]


def test_marks_of_fsdp_number_the_layers_where_passes_cannot_be_counted() -> None:
    clock = Clock()
    attention = clock.op("aten::scaled_dot_product_attention", [2, 8, 128, 64], [2, 8, 128, 64])
    marks = [annotation(f"FSDP::pre_forward (model.layers.{layer})", 100 + layer, 1) for layer in range(8, 16)]
    found = shapes(attention, clock.op("aten::rms_norm", [2, 128, 512]), *marks)
    assert sizes(found, "layers") == [8]
    assert dict(found.basis)["layers"] == "FSDP marks layers 8 to 15"


def test_eager_attention_shows_its_scores() -> None:
    clock = Clock()
    events = [clock.op("aten::embedding", [1000, 512], [2, 64])]
    for _ in range(6):
        events += [clock.op("aten::softmax", [2, 8, 64, 64]), clock.op("aten::rms_norm", [2, 64, 512])]
    events.append(clock.op("aten::_flash_attention_backward", [1]))
    found = shapes(*events, op("x::self_attention/", 900, 1))
    assert sizes(found, "layers", "heads_per_rank", "head_dim") == [6, 8, None]


def test_packed_sequences_hide_where_they_end() -> None:
    clock = Clock()
    events = [
        clock.op("aten::embedding", [1000, 512], [1, 300]),
        clock.op("flash_attn_varlen_func", [300, 8, 64], [300, 2, 64], [300, 2, 64]),
        clock.op("aten::rms_norm", [300, 512]),
    ]
    found = shapes(*events)
    assert sizes(found, "tokens", "sequence_length", "micro_batch") == [300, None, None]
    assert sizes(found, "heads_per_rank", "kv_heads_per_rank", "head_dim") == [8, 2, 64]


def test_sequences_of_many_lengths_have_no_one_length() -> None:
    clock = Clock()
    lookups = [clock.op("aten::embedding", [1000, 512], [2, length]) for length in (64, 96, 128)]
    attention = [clock.op("aten::scaled_dot_product_attention", [2, 8, 64, 64], [2, 2, 64, 64]) for _ in range(3)]
    found = shapes(*lookups, *attention, clock.op("aten::rms_norm", [2, 64, 512]))
    assert sizes(found, "tokens", "sequence_length", "micro_batch") == [256, None, None]


def test_rotary_positions_show_heads_where_attention_does_not() -> None:
    clock = Clock()
    rotary = clock.op("_C::rotary_embedding", [32], [32, 512], [32, 128], [], values=["", "", "", "64"])
    found = shapes(rotary, clock.op("aten::rms_norm", [32, 512]), kernel("kernel_unified_attention_2d", 900, 1))
    assert sizes(found, "heads_per_rank", "kv_heads_per_rank", "head_dim") == [8, 2, 64]


def test_latent_attention_has_no_heads_of_the_usual_kind() -> None:
    clock = Clock()
    attention = clock.op("vllm::unified_mla_attention", [32, 16, 192], [32, 1, 576], [32, 1, 512])
    found = shapes(attention, clock.op("aten::rms_norm", [32, 512]), op("aten::embedding", 900, 1))
    assert sizes(found, "heads_per_rank", "kv_heads_per_rank", "head_dim") == [None, None, None]


def test_experts_from_routers_gates_and_stacked_weights() -> None:
    def moe(*events: Event) -> list[int | None]:
        clock = Clock()
        attention = clock.op("vllm::unified_attention", [32, 8, 64], [32, 2, 64])
        found = shapes(attention, *events, op("aten::rms_norm", 990, 1))
        return sizes(found, "experts", "experts_per_token", "intermediate_shard")

    clock = Clock()
    logits = clock.op("vllm::moe_forward", [32, 512], [32, 128])
    gate = clock.op("_moe_C::topk_softmax", [32, 4], [32, 4], [32, 4], [32, 128])
    stacked = clock.op("sglang::inplace_fused_experts", [32, 512], [16, 768, 512], [16, 512, 384], [32, 4], [32, 4])
    top = clock.op("aten::topk", [32, 128], values=["", "8"])
    assert moe(logits) == [128, None, None]
    assert moe(gate) == [128, 4, None]
    assert moe(stacked) == [16, 4, 384]
    assert moe(logits, stacked) == [128, 4, 384]
    assert moe(logits, top) == [128, 8, None]
    assert moe(clock.op("_moe_C::topk_softmax", [32, 4], [31, 4], [32, 128])) == [None, None, None]


def test_experts_a_rank_holds_are_believed_less_than_those_a_router_knows() -> None:
    clock = Clock()
    stacked = clock.op("sglang::inplace_fused_experts", [32, 512], [16, 768, 512], [16, 512, 384], [32, 4], [32, 4])
    attention = clock.op("vllm::unified_attention", [32, 8, 64], [32, 2, 64])
    found = shapes(attention, stacked, op("aten::rms_norm", 990, 1))
    assert dict(found.confidences)["experts"] == 0.5
    assert dict(found.basis)["experts"].endswith(": experts this rank holds")


def test_the_name_of_a_trace_is_a_hint() -> None:
    events = [op("aten::scaled_dot_product_attention", 0, 1), op("aten::rms_norm", 2, 1)]
    found = summarise([trace_of(*events, traceName="traces/prof_ep64_hidden7168_seqlen4096.json")]).implied.shapes
    assert sizes(found, "hidden_size", "sequence_length", "layers") == [7168, 4096, None]
    assert dict(found.confidences) == {"hidden_size": 0.4, "sequence_length": 0.4}
