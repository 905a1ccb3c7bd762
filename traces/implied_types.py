"""What a trace implies about hardware, job and model: values with a confidence and the events they came from."""

from typing import Final, Generic, Literal, TypeVar

from pydantic import Field

from projector.breakdown import Axis
from projector.specs.plan import Dtype, Phase
from projector.specs.record import Record

T = TypeVar("T")


class Inferred(Record, Generic[T]):
    """A value the trace implies, how sure that is (0 to 1), and what it rests on."""

    value: T
    confidence: float = Field(ge=0, le=1)
    basis: str


# Pydantic makes a class for each type of value. Made here, they are found by name in this module, and may be pickled.
_KINDS_OF_VALUES: Final = (Inferred[str], Inferred[int], Inferred[bool], Inferred[Phase], Inferred[Dtype])

GroupUse = Literal["pair", "expert", "shard", "reduce", "many", "unused"]


class ProcessGroup(Record):
    """One communicator the trace declares or uses."""

    name: str
    size: int
    ranks: tuple[int, ...] = ()
    description: str = ""
    axis: Axis = Field("unknown", description="parallelism axis it serves, where that is told")
    use: GroupUse = Field(
        "unused",
        description="what runs in it: sends and receives, all-to-alls, gathers and reduce-scatters, all-reduces alone, "
        "all sorts, or nothing that was recorded",
    )


class ModelShapes(Record):
    """Sizes read off GEMM, embedding and attention shapes; None where the trace does not show them."""

    hidden_size: int | None = None
    layers: int | None = None
    vocab_shard: int | None = Field(None, description="vocabulary rows one rank holds")
    heads_per_rank: int | None = None
    kv_heads_per_rank: int | None = None
    head_dim: int | None = None
    intermediate_shard: int | None = None
    experts: int | None = None
    experts_per_token: int | None = None
    tokens: int | None = Field(None, description="tokens in one forward pass on this rank")
    sequence_length: int | None = Field(None, description="tokens of one sequence on this rank")
    micro_batch: int | None = Field(None, description="sequences in one forward pass on this rank")
    basis: tuple[tuple[str, str], ...] = Field((), description="(field, the operators and shapes it came from)")
    confidences: tuple[tuple[str, float], ...] = Field((), description="(field, how sure its value is, 0 to 1)")


class Implied(Record):
    """What the trace says about hardware, job and model. None: the trace does not say."""

    chip_name: Inferred[str] | None = Field(None, description="device name as the profiler wrote it")
    devices_per_host: Inferred[int] | None = None
    hbm_bytes: Inferred[int] | None = None
    world_size: Inferred[int] | None = None
    groups: tuple[ProcessGroup, ...] = ()
    tp: Inferred[int] | None = None
    dp: Inferred[int] | None = None
    fsdp: Inferred[int] | None = Field(None, description="ranks weights are sharded over; a part of dp")
    pp: Inferred[int] | None = None
    cp: Inferred[int] | None = None
    ep: Inferred[int] | None = None
    sp: Inferred[bool] | None = Field(
        None, description="Megatron's sequence parallelism inside the tensor-parallel group"
    )
    unresolved: tuple[tuple[str, str], ...] = Field(
        (), description="(field, why it is not known although the trace speaks of it: evidence that contradicts itself)"
    )
    phase: Inferred[Phase] | None = None
    is_transformer_lm: Inferred[bool] | None = None
    shapes: ModelShapes = ModelShapes()
    dtype: Inferred[Dtype] | None = Field(None, description="format the matrix products run in")
    weight_dtype: Inferred[Dtype] | None = Field(None, description="format of most weights, where narrower")
    framework: Inferred[str] | None = None
