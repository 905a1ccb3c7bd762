"""StepTables, the interface of a source of measured kernels, and what its steps make of a projection."""

from typing import Protocol

from pydantic import Field

from projector.breakdown import Projection
from projector.errors import InvalidDescription
from projector.specs.architecture import ModelArchitecture
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ParallelismPlan
from projector.specs.record import Record
from projector.specs.workload import WorkloadSpec


class StepQuestion(Record):
    """The steps of one attention rank of an engine in steady state.

    decoding: requests that get a token; prompt_tokens: tokens of the chunk a mixed step carries beside them; input_len,
    output_len: tokens of a mean request.
    """

    decoding: int = Field(ge=1)
    prompt_tokens: int = Field(ge=1)
    input_len: int = Field(ge=1)
    output_len: int = Field(ge=1)


class TabledSteps(Record):
    """Milliseconds of one engine step: decoding alone, and with a prompt's chunk. tables: which ones, with release."""

    tables: str
    decode_ms: float = Field(gt=0)
    mixed_ms: float = Field(gt=0)


class Untabled(Record):
    """Why the tables have no answer."""

    reason: str


class StepTables(Protocol):
    """A source of measured kernels."""

    name: str

    def steps(
        self,
        question: StepQuestion,
        plan: ParallelismPlan,
        model: ModelArchitecture,
        hardware: HardwareProfile,
        engine: str | None,
    ) -> TabledSteps | Untabled:
        """The two steps of a plan's engine, or why there are none."""
        ...


class SecondOpinion(Record):
    """A projection whose steps are those of the tables; times in milliseconds, ratios over the projector's own."""

    tables: str
    decode_step_ms: float
    mixed_step_ms: float
    tpot_ms: float
    ttft_ms: float
    decode_ratio: float = Field(description="decode step of the tables over the projected one")
    mixed_ratio: float = Field(description="mixed step of the tables over the projected one")
    basis: str = (
        "TPOT is that of the projected mix of decode and mixed steps, TTFT the projected one times the mixed step's "
        "ratio; queueing, memory and everything outside the steps are the projector's"
    )


def second_opinion(
    projection: Projection,
    workload: WorkloadSpec,
    model: ModelArchitecture,
    hardware: HardwareProfile,
    tables: StepTables,
    engine: str | None = None,
) -> SecondOpinion | Untabled:
    """What the tables make of a serving projection.

    With f the share of mixed steps a decoding request sees, d and m the projected decode and mixed step, d', m' the
    tables': TPOT' = TPOT ((1 - f) d' + f m') / ((1 - f) d + f m). InvalidDescription for a training projection.
    """
    plan, figures = projection.plan, projection.serving
    if plan.phase != "serving" or workload.input_len is None or workload.output_len is None:
        raise InvalidDescription("kernel tables hold steps of serving engines")
    if plan.prefill_replicas:
        return Untabled(reason="a plan with a prefill pool: the tables are asked for one engine")
    if figures is None or projection.tpot_s is None or projection.ttft_s is None:
        return Untabled(reason="the plan is projected to serve nothing")
    decode_ms, mixed_ms = figures.decode_step_ms_pure, figures.decode_step_ms_mixed
    if decode_ms is None or mixed_ms is None or figures.mixed_step_fraction_pct is None:
        return Untabled(reason="the projection has no pure or no mixed steps to compare with")
    found = tables.steps(_question(plan, workload), plan, model, hardware, engine)
    if isinstance(found, Untabled):
        return found
    f = figures.mixed_step_fraction_pct / 100.0
    mean = ((1 - f) * found.decode_ms + f * found.mixed_ms) / ((1 - f) * decode_ms + f * mixed_ms)
    return SecondOpinion(
        tables=found.tables,
        decode_step_ms=found.decode_ms,
        mixed_step_ms=found.mixed_ms,
        tpot_ms=1e3 * projection.tpot_s * mean,
        ttft_ms=1e3 * projection.ttft_s * found.mixed_ms / mixed_ms,
        decode_ratio=found.decode_ms / decode_ms,
        mixed_ratio=found.mixed_ms / mixed_ms,
    )


def _question(plan: ParallelismPlan, workload: WorkloadSpec) -> StepQuestion:
    assert workload.input_len is not None
    assert workload.output_len is not None
    ranks = plan.replicas * plan.attention_dp
    offered = plan.max_num_seqs * plan.replicas if workload.concurrency is None else workload.concurrency
    running = min(offered / ranks, plan.max_num_seqs / plan.attention_dp)
    chunk = plan.chunked_prefill_tokens or workload.input_len
    return StepQuestion(
        decoding=max(round(running), 1),
        prompt_tokens=min(chunk, workload.input_len),
        input_len=workload.input_len,
        output_len=workload.output_len,
    )
