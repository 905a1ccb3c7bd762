"""A measured serving point as a plan under a load; what cannot be expressed is refused with its reason.

What a row leaves open is taken as the engine does it unasked, and named in `assumed`: precision of the KV cache, seats,
tokens a step. A disaggregated row becomes a plan through `agents.evaluation.serving_pools`.
"""

from dataclasses import dataclass
from typing import Literal

from pydantic import ValidationError

from agents.evaluation.architecture import architecture_of
from agents.evaluation.machines import chip_of
from agents.evaluation.refusal import Refused, first_problem
from agents.evaluation.serving_pools import plan_of_pools
from agents.evaluation.serving_rows import ServingRow, Statistic
from projector.catalog import architecture
from projector.errors import ShardwiseError
from projector.graph.columns import DTYPE_BYTES
from projector.serving_stacks import serving_stack
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import Dtype, ParallelismPlan
from projector.specs.serving_stack import ServingStack
from projector.specs.workload import WorkloadSpec

Metric = Literal["tpot_s", "ttft_s", "decode_tokens_per_s_per_chip"]
METRICS: tuple[Metric, ...] = ("tpot_s", "ttft_s", "decode_tokens_per_s_per_chip")
# precisions as files print them
DTYPES: dict[str, Dtype] = {
    "bfloat16": "bf16",
    "bf16": "bf16",
    "fp16": "bf16",
    "matmult-bf16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8",
    "nvfp4": "fp4",
    "fp4": "fp4",
    "int4_wo": "fp4",
    "w4a16_mxfp4": "fp4",
    "w4a8_mxfp4_mxfp8": "fp4",
    "int8": "int8",
    "int8_wo": "int8",
}
IN_PROCESS_S = 0.0
# requests of a run of the InferenceX harness for each in flight (num_prompts over max_concurrency)
ROUNDS = 10.0
# drafted tokens a step where the file's rows imply prediction layers: what the harness sets, one with attention dp
DRAFTED, DRAFTED_WITH_ATTENTION_DP = 3, 1


@dataclass(frozen=True)
class ServingTarget:
    """A measured figure, and which statistic of the requests it is."""

    metric: Metric
    value: float
    statistic: Statistic


@dataclass(frozen=True)
class ServingCase:
    """A row with all a projection needs."""

    row: ServingRow
    plan: ParallelismPlan
    workload: WorkloadSpec
    architecture: ModelArchitecture
    cluster: ClusterSpec
    hardware: HardwareProfile
    stack: ServingStack
    targets: tuple[ServingTarget, ...]
    assumed: tuple[str, ...]

    @property
    def kind(self) -> str:
        """Dense or a mixture of experts."""
        return "mixture of experts" if self.architecture.is_moe else "dense"


def serving_case_of(row: ServingRow) -> ServingCase:
    """The case of a row. Refused, with the reason, where it cannot be projected or says nothing to compare with."""
    if row.load == "offered":
        raise Refused("requests arrive at a rate the row does not vary: its throughput is that rate")
    targets = _targets(row)
    if not targets:
        raise Refused("prints neither TTFT, TPOT nor output tokens/s")
    if row.input_len is None or row.output_len is None:
        raise Refused("prompt or response length not stated")
    model, hardware = _architecture(row), chip_of(row.chip)
    assumed = list(row.assumed)
    stack = _stack(row, assumed)
    try:
        plan = _plan(row, model, hardware, stack, assumed)
        return ServingCase(
            row=row,
            plan=plan,
            workload=_workload(row, plan, assumed),
            architecture=model,
            cluster=ClusterSpec(chip=hardware.id, chips=plan.devices // hardware.devices_per_chip),
            hardware=hardware,
            stack=stack,
            targets=targets,
            assumed=tuple(assumed),
        )
    except ValidationError as error:
        raise Refused(first_problem(error)) from error


def _targets(row: ServingRow) -> tuple[ServingTarget, ...]:
    printed = row.measured
    found: list[ServingTarget] = []
    if printed.tpot_s is not None:
        found.append(ServingTarget("tpot_s", printed.tpot_s, printed.tpot_is))
    if printed.ttft_s is not None and row.load != "queued":
        found.append(ServingTarget("ttft_s", printed.ttft_s, printed.ttft_is))
    if printed.output_tokens_per_s_per_chip is not None:
        found.append(ServingTarget("decode_tokens_per_s_per_chip", printed.output_tokens_per_s_per_chip, "mean"))
    return tuple(found)


def _architecture(row: ServingRow) -> ModelArchitecture:
    if row.arch is not None:
        return architecture_of(row.arch, row.model, row.source)
    try:
        return architecture(row.model)
    except ShardwiseError as error:
        raise Refused(f"model {row.model!r} is not in the catalogue") from error


def _dtype(printed: str) -> Dtype:
    words = printed.lower().removeprefix("weights ").split(" ")
    found = DTYPES.get(words[0])
    if found is None:
        raise Refused(f"weights {printed!r} are no dtype the projector knows")
    return found


def _plan(
    row: ServingRow, model: ModelArchitecture, hardware: HardwareProfile, stack: ServingStack, assumed: list[str]
) -> ParallelismPlan:
    weights = _dtype(row.weights)
    experts = _dtype(row.experts) if model.is_moe and row.experts is not None else weights
    if row.pools is not None:
        return plan_of_pools(
            row,
            model,
            weight_dtype=weights,
            expert_dtype="same" if experts == weights else experts,
            kv_cache_dtype=_kv_dtype(row, experts, stack, assumed),
            prefill_tokens=_step_tokens(row, stack, assumed),
            assumed=assumed,
        )
    layout, devices = row.layout, row.chips * hardware.devices_per_chip
    each = layout.attention_dp * layout.tp * layout.pp
    if model.heads % layout.tp:
        raise Refused("tp does not divide the heads: several engines counted as one")
    if devices % each:
        raise Refused(f"engines of {each} devices do not make up {devices}")
    replicas = devices // each
    if row.replicas not in (1, replicas):
        raise Refused(f"{row.replicas} engines of {each} devices do not make up {devices}")
    if replicas > 1 and row.replicas == 1:
        assumed.append("as many engines as the chips hold")
    return ParallelismPlan(
        phase="serving",
        dp=layout.attention_dp * replicas,
        attention_dp=layout.attention_dp,
        tp=layout.tp,
        pp=layout.pp,
        ep=layout.ep if model.is_moe else 1,
        etp=layout.etp if model.is_moe else 1,
        weight_dtype=weights,
        expert_dtype="same" if experts == weights else experts,
        kv_cache_dtype=_kv_dtype(row, experts, stack, assumed),
        max_num_seqs=_seats(row, replicas, stack, assumed),
        chunked_prefill_tokens=_step_tokens(row, stack, assumed),
        speculation="none" if row.speculation is None else "mtp",
        speculative_tokens=_drafted(row),
        hbm_frac=_hbm_frac(row, model, hardware, experts, each),
    )


def _kv_dtype(row: ServingRow, weights: Dtype, stack: ServingStack, assumed: list[str]) -> Dtype:
    if row.kv is not None:
        return _dtype(row.kv)
    assumed.append("KV cache in the engine's usual precision")
    return stack.narrow_kv_dtype if weights in ("fp8", "fp4") else "bf16"


def _hbm_frac(row: ServingRow, model: ModelArchitecture, hardware: HardwareProfile, stored: Dtype, each: int) -> float:
    """Share of HBM of an engine of so many devices; a share of what weights leave is turned into one of all."""
    if row.hbm_frac is not None:
        return row.hbm_frac
    if row.free_frac is None:
        return float(ParallelismPlan.model_fields["hbm_frac"].default)
    weights_bytes = model.parameters * DTYPE_BYTES[stored] / each
    taken = min(weights_bytes / (hardware.hbm_bytes.value / hardware.devices_per_chip), 1.0)
    return taken + row.free_frac * (1 - taken)


def _seats(row: ServingRow, replicas: int, stack: ServingStack, assumed: list[str]) -> int:
    if row.max_num_seqs is not None:
        return row.max_num_seqs
    if row.concurrency is not None:
        assumed.append("seats for all requests in flight")
        return max(-(-row.concurrency // replicas), 1)
    assumed.append(f"{stack.seats} seats an engine")
    return stack.seats


def _step_tokens(row: ServingRow, stack: ServingStack, assumed: list[str]) -> int:
    if row.load == "static":
        return 0
    if row.max_batched_tokens is not None:
        return row.max_batched_tokens
    assumed.append(f"{stack.step_tokens} prompt tokens a step")
    return stack.step_tokens


def _drafted(row: ServingRow) -> int:
    if row.speculation is None:
        return 0
    return DRAFTED if row.layout.attention_dp == 1 else DRAFTED_WITH_ATTENTION_DP


def _workload(row: ServingRow, plan: ParallelismPlan, assumed: list[str]) -> WorkloadSpec:
    """The traffic. Queued: every seat of every engine is taken; static: as the closed loop of a full batch."""
    engines = plan.dp // plan.attention_dp
    if row.load == "static":
        assumed.append("a static batch as the closed loop of as many requests")
    if row.load == "queued":
        assumed.append("all requests queued: every seat is taken, start and end left out")
    concurrency = plan.max_num_seqs * engines if row.load == "queued" else row.concurrency
    if concurrency is None:
        raise Refused("requests in flight not stated")
    assert row.input_len is not None
    assert row.output_len is not None
    mean, spread, rounds = 1.0, None, None
    if row.random_range is not None:
        assumed.append(f"means over {ROUNDS:g} requests for each in flight, all seats taken at once")
        rounds = ROUNDS
        # drawn evenly from [r L, L]
        mean = (1 + row.random_range) / 2
        spread = (1 - row.random_range) / (1 + row.random_range)
    return WorkloadSpec(
        phase="serving",
        input_len=max(round(mean * row.input_len), 1),
        output_len=max(round(mean * row.output_len), 1),
        concurrency=concurrency,
        length_spread_frac=spread,
        requests_per_slot=rounds,
    )


def _stack(row: ServingRow, assumed: list[str]) -> ServingStack:
    try:
        found = serving_stack(f"{row.engine} {row.release}")
    except ShardwiseError as error:
        raise Refused(f"engine {row.engine!r} is not known") from error
    if found.remark:
        assumed.append("release of the engine not among those seen")
    if row.wait_steps is not None:
        return found.stack.model_copy(update={"admission_steps": found.stack.admission_steps + row.wait_steps})
    if not row.in_process:
        return found.stack
    assumed.append("measured in the engine's process: nothing outside its steps")
    return found.stack.model_copy(update={"request_s": IN_PROCESS_S})
