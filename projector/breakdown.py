"""One breakdown, two producers: traces measure it, the projector models it."""

from typing import Literal, Self

from pydantic import Field, computed_field, model_validator

from projector.specs.objective import Rejection
from projector.specs.plan import ParallelismPlan
from projector.specs.record import Record
from projector.specs.serving_figures import ServingFigures

OperatorKind = Literal[
    "gemm", "attention", "norm", "elementwise", "moe", "quantise", "embedding", "sampling", "optimizer", "other"
]
Axis = Literal["tp", "dp", "fsdp", "pp", "cp", "ep", "unknown"]
LinkTier = Literal["nvlink", "xgmi", "pcie", "ici", "neuronlink", "nic", "dcn"]
Source = Literal["measured", "modelled", "relative", "anchored"]
Fit = Literal["fits", "too_large", "unknown"]
# What keeps an engine from running more requests at once: the traffic, its own limit, its KV pool, its token budget.
ConcurrencyLimit = Literal["load", "max_num_seqs", "kv_pool", "max_batched_tokens"]
MemoryDirection = Literal["less", "same", "more", "unknown"]


class KindTime(Record):
    """Seconds a kind of operator takes a step on one device (sum of its operators)."""

    kind: OperatorKind
    time_s: float = Field(ge=0)


class AxisTime(Record):
    """Seconds of communication along one parallelism axis a step: all of it, and the part nothing hides.

    Projected, the second is what the step gets longer by: hidden communication slows the compute beside it.
    """

    axis: Axis
    total_s: float = Field(ge=0)
    exposed_s: float = Field(ge=0)


class AxisLink(Record):
    """One tier of links that an axis' traffic crosses. A group larger than a fast domain crosses two, an entry each."""

    axis: Axis
    tier: LinkTier = Field(
        description="ici, nvlink, xgmi, neuronlink, pcie: inside a domain; nic, dcn: between domains"
    )
    group_size: int = Field(ge=2, description="ranks of one group of the axis")
    ranks_per_domain: int = Field(ge=1, description="of them, ranks inside one domain of fast links")
    one_way_bytes_per_s: float = Field(gt=0, description="rate a device gets there, after efficiency and sharing")


class TimeBreakdown(Record):
    """Where one step goes on one device, in seconds.

    compute_s + exposed_communication_s + exposed_copy_s + idle_s == total_s
    bubble_s is a part of idle_s. A term that nobody can know is None, never 0.
    """

    source: Source
    total_s: float = Field(ge=0)
    compute_s: float = Field(ge=0)
    exposed_communication_s: float = Field(ge=0)
    overlapped_communication_s: float = Field(ge=0)
    exposed_copy_s: float = Field(0.0, ge=0)
    idle_s: float = Field(ge=0)
    bubble_s: float | None = Field(None, ge=0)
    by_kind: tuple[KindTime, ...] = ()
    by_axis: tuple[AxisTime, ...] = ()

    @model_validator(mode="after")
    def _sums(self) -> Self:
        parts = self.compute_s + self.exposed_communication_s + self.exposed_copy_s + self.idle_s
        if abs(parts - self.total_s) > 1e-6 * max(self.total_s, 1e-9):
            raise ValueError(f"breakdown parts sum to {parts} s, not to {self.total_s} s")
        return self

    @property
    def communication_s(self) -> float:
        """All communication, hidden or not."""
        return self.exposed_communication_s + self.overlapped_communication_s


class MemoryBreakdown(Record):
    """Peak bytes on the fullest device, itemised.

    kv_pool_bytes is what an engine has for keys and values in all, kv_cache_bytes and prefix_cache_bytes are what is in
    use of it: only these are items. Both are None in training, where `concurrency_limit` has no meaning either.
    """

    weights_bytes: float = Field(ge=0)
    draft_bytes: float = Field(0.0, ge=0, description="weights of what drafts tokens for speculation")
    gradients_bytes: float = Field(0.0, ge=0)
    optimizer_bytes: float = Field(0.0, ge=0)
    activations_bytes: float = Field(0.0, ge=0)
    kv_cache_bytes: float = Field(0.0, ge=0, description="keys and values of running requests, each one's own")
    prefix_cache_bytes: float = Field(0.0, ge=0, description="keys and values of prompt prefixes that requests share")
    graphs_bytes: float = Field(0.0, ge=0, description="memory of captured graphs")
    buffers_bytes: float = Field(0.0, ge=0, description="communication buffers, gathered shards, logits")
    reserve_bytes: float = Field(
        0.0, ge=0, description="runtime, fragmentation; serving: what lies outside the engine's share"
    )
    capacity_bytes: float = Field(gt=0)
    kv_pool_bytes: float | None = Field(None, ge=0, description="serving: room for keys and values, used or not")
    concurrency_limit: ConcurrencyLimit | None = Field(
        None, description="serving: what keeps the engine from running more requests at once"
    )

    @computed_field  # type: ignore[prop-decorator]
    @property
    def total_bytes(self) -> float:
        """Sum of the items."""
        return (
            self.weights_bytes
            + self.draft_bytes
            + self.gradients_bytes
            + self.optimizer_bytes
            + self.activations_bytes
            + self.kv_cache_bytes
            + self.prefix_cache_bytes
            + self.graphs_bytes
            + self.buffers_bytes
            + self.reserve_bytes
        )

    @computed_field  # type: ignore[prop-decorator]
    @property
    def fit(self) -> Fit:
        """Whether the sum is within the capacity."""
        return "fits" if self.total_bytes <= self.capacity_bytes else "too_large"


class Interval(Record):
    """A range the true value is expected in; `basis` says what the width rests on."""

    low: float
    high: float
    basis: str


class Provenance(Record):
    """What a projection rests on. Figures by their names in the chip's file.

    binding        the largest term of the step, and its share
    datasheet, unverified   figures of the datasheet, re-read or not
    measured       efficiencies that rest on the measurements the file names
    fitted, carried_over    efficiencies chosen on published steps of this chip, or only on such of its sister chips
    assumed        efficiencies nobody measured: what leans on them is extrapolated
    """

    binding: str
    binding_frac: float = Field(ge=0, le=1)
    datasheet: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()
    fitted: tuple[str, ...] = ()
    carried_over: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()


class Projection(Record):
    """What the projector says of one plan on one cluster.

    Training fills tokens_per_s_per_chip and mfu_frac; serving fills the latencies and throughputs.
    With source "relative" the model is unknown: step_time_s scales the measured step, `memory` is None and
    `memory_direction` says whether the plan needs more or less than the current one.
    With source "anchored" the modelled step is corrected by what a measured step of the current plan showed
    (`projector.anchor`); `assumptions` say by which ratios, memory is modelled as ever.
    """

    plan: ParallelismPlan
    chip: str
    chips: int = Field(ge=1)
    source: Source
    step_time_s: float = Field(ge=0, description="optimizer step (training); mean engine decode step (serving)")
    step_time_interval_s: Interval
    breakdown: TimeBreakdown
    memory: MemoryBreakdown | None
    memory_direction: MemoryDirection = "unknown"
    links: tuple[AxisLink, ...] = Field((), description="which axis crosses which links, of axes that communicate")
    tokens_per_s_per_chip: float | None = Field(None, ge=0, description="trained tokens (training only)")
    mfu_frac: float | None = Field(None, ge=0)
    ttft_s: float | None = Field(None, ge=0)
    tpot_s: float | None = Field(None, ge=0)
    request_latency_s: float | None = Field(None, ge=0)
    decode_tokens_per_s_per_chip: float | None = Field(None, ge=0)
    total_tokens_per_s_per_chip: float | None = Field(None, ge=0)
    max_concurrency: float | None = Field(None, ge=0, description="requests the KV pool of the fleet holds")
    serving: ServingFigures | None = Field(None, description="every figure of serving by its objective; None: training")
    rejections: tuple[Rejection, ...] = ()
    provenance: Provenance | None = Field(None, description="None where the model is unknown")
    assumptions: tuple[str, ...] = ()

    @property
    def fit(self) -> Fit:
        """fits, too_large, or unknown where memory could not be modelled."""
        return "unknown" if self.memory is None else self.memory.fit
