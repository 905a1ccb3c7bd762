"""A measured row as plans that can be projected: what it leaves open is a choice of several, what is odd is refused.

An open knob (recompute, micro-batch, global batch, virtual stages) is marked as assumed; the fastest value that fits
counts (`scored.score`). What a framework does unasked (sharded optimizer, sequence parallelism, overlap) comes from the
table of frameworks and is not marked.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

from pydantic import ValidationError

from agents.evaluation.adapters import adapters_of
from agents.evaluation.architecture import architecture_of
from agents.evaluation.machines import chip_of, cluster_of
from agents.evaluation.precisions import dtype_of
from agents.evaluation.recompute_modules import modules_of
from agents.evaluation.refusal import Refused, first_problem
from agents.evaluation.rollouts import RlOption
from agents.evaluation.row_frameworks import framework_of_row, software_of
from agents.evaluation.rows import MeasuredRow
from agents.evaluation.targets import Target, target_of
from agents.frameworks import Framework
from projector.cost.stages import ends_count_as_layers
from projector.errors import ShardwiseError
from projector.legality import legal_mask
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.fine_tuning import Adapter
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ComputeDtype, ParallelismPlan, Recompute, Schedule
from projector.specs.plan_batch import PlanBatch
from projector.specs.software import Software
from projector.specs.workload import WorkloadSpec

OPEN_MICRO_BATCHES = (1, 2, 4, 8, 16)
# what Megatron's recipes repeat when they name it, short forms included
MODULES = frozenset({"norm", "act", "layernorm", "mlp", "moe", "moe_act", "mla_up_proj", "core_attn", "shared_experts"})
OPEN_RECOMPUTE: tuple[Recompute, ...] = ("none", "selective", "full")
OPEN_SHARES = (0.25, 0.5, 0.75)
MOST_VIRTUAL_STAGES = 8
# an open global batch is tried up to what published pre-training runs use
MOST_OPEN_STEP_TOKENS = 2**24


@dataclass(frozen=True)
class Option:
    """One global batch a row may mean, with its plans."""

    workload: WorkloadSpec
    plans: tuple[ParallelismPlan, ...]


@dataclass(frozen=True)
class Case:
    """A row with all a projection needs. target None: the row prints no speed, only whether or how it fits.

    rl: what a step of reinforcement learning may mean, in place of options.
    """

    row: MeasuredRow
    stratum: str
    options: tuple[Option, ...]
    architecture: ModelArchitecture
    cluster: ClusterSpec
    hardware: HardwareProfile
    software: Software
    target: Target | None
    assumed: tuple[str, ...]
    rl: tuple[RlOption, ...] = ()


def case_of(row: MeasuredRow, stratum: str) -> Case:
    """The case of a row. Refused, with the reason, where it cannot be projected or says nothing to compare with."""
    if row.plan.offloads_optimizer:
        raise Refused("the optimizer is offloaded to the host: not modelled")
    architecture = architecture_of(row.arch, row.model, row.source)
    hardware = chip_of(row.chip)
    if row.seq_len is None:
        raise Refused("sequence length not stated")
    target = target_of(row, architecture, row.seq_len, hardware)
    if target is None and row.measured.memory_bytes is None and not row.measured.out_of_memory:
        raise Refused("neither speed nor memory printed")
    dtype, dtype_assumed = dtype_of(row.precision)
    adapters, adapter_assumed = adapters_of(row, dtype, gated=architecture.gated_mlp)
    framework = framework_of_row(row.framework, row.source)
    try:
        cluster = cluster_of(row, hardware)
        reading = _Reading(row, row.seq_len, architecture, cluster, hardware, framework, dtype, adapters)
        options = tuple(reading.options())
    except (ValidationError, ShardwiseError) as error:
        raise Refused(_first_line(error)) from error
    if not any(option.plans for option in options):
        raise Refused("no micro-batch divides the sequences of a data rank")
    return Case(
        row=row,
        stratum=stratum,
        options=options,
        architecture=architecture,
        cluster=cluster,
        hardware=hardware,
        software=software_of(framework, row),
        target=target,
        assumed=(*(("precision",) if dtype_assumed else ()), *adapter_assumed, *_open_knobs(row, framework, options)),
    )


def _first_line(error: ValidationError | ShardwiseError) -> str:
    return first_problem(error) if isinstance(error, ValidationError) else str(error)


def _open_knobs(row: MeasuredRow, framework: Framework, options: tuple[Option, ...]) -> tuple[str, ...]:
    """Which knobs take more than one value in the plans the row may mean; a batch a device makes a global one."""
    plans = [plan for option in options for plan in option.plans]
    open_batch = row.global_batch is None and (framework.accumulates or row.micro_batch is None)
    knobs = (*(() if open_batch else ("micro_batch",)), "recompute", "vp")
    varied = (knob for knob in knobs if len({getattr(plan, knob) for plan in plans}) > 1)
    return (*(("global_batch",) if open_batch else ()), *varied)


@dataclass(frozen=True)
class _Reading:
    """One row on its way to plans."""

    row: MeasuredRow
    seq_len: int
    architecture: ModelArchitecture
    cluster: ClusterSpec
    hardware: HardwareProfile
    framework: Framework
    dtype: ComputeDtype
    adapters: tuple[Adapter | None, ...]

    def options(self) -> Iterator[Option]:
        tp, pp, cp, _ = self.row.plan.degrees
        devices = self.row.chips * self.hardware.devices_per_chip
        if devices % (tp * pp * cp):
            raise Refused(f"tp * pp * cp = {tp * pp * cp} does not divide {devices} devices")
        dp = devices // (tp * pp * cp)
        for batch in self._global_batches(dp):
            plans = self._usual(tuple(self._plans(batch, dp)))
            for adapter in self.adapters:
                workload = WorkloadSpec(seq_len=self.seq_len, global_batch=batch, precision=self.dtype, adapter=adapter)
                yield Option(workload, self._legal(plans, workload))

    def _global_batches(self, dp: int) -> Iterator[int]:
        if self.row.global_batch is not None:
            yield self.row.global_batch
            return
        micro = self.row.micro_batch
        if micro is not None and not self.framework.accumulates:
            yield max(1, round(micro * self.row.chips * self.hardware.devices_per_chip))
            return
        smallest = dp * max(1, int(micro or 1))
        batch = smallest
        while batch == smallest or batch * self.seq_len <= MOST_OPEN_STEP_TOKENS:
            yield batch
            batch *= 2

    def _plans(self, batch: int, dp: int) -> Iterator[ParallelismPlan]:
        if batch % dp:
            raise Refused(f"global batch {batch} is not a multiple of the {dp} data ranks")
        for micro, accumulation in self._micro_batches(batch // dp):
            for recompute in _recompute(self.row.plan.recompute, self.framework):
                whole = self._plan(dp, micro, accumulation, recompute)
                for layers in self._recomputed_layers(whole):
                    plan = whole.model_copy(update={"recompute_layers": layers})
                    for chunks in self._virtual_stages(plan):
                        yield _with_schedule(plan, chunks, self.row.plan.schedule)

    def _recomputed_layers(self, plan: ParallelismPlan) -> tuple[int, ...]:
        """Where recompute is open, so is of how many layers of a stage: all, a quarter, half or three quarters."""
        if plan.recompute != "full" or self.row.plan.recompute is not None or not self.framework.recomputes_blocks:
            return (0,)
        layers = -(-self.architecture.layers // plan.pp)
        return (0, *sorted({max(1, round(layers * share)) for share in OPEN_SHARES} - {layers}))

    def _micro_batches(self, share: int) -> Iterator[tuple[int, int]]:
        """(micro_batch, grad_accum) of a data rank's sequences. A row may state sequences a device instead."""
        micro = self.row.micro_batch
        if not self.framework.accumulates:
            yield share, 1
        elif micro is None:
            yield from ((size, share // size) for size in OPEN_MICRO_BATCHES if share % size == 0)
        elif not micro.is_integer() or share % int(micro):
            raise Refused(f"micro-batch {micro:g} does not divide the {share} sequences of a data rank")
        else:
            yield int(micro), share // int(micro)

    def _plan(self, dp: int, micro: int, accumulation: int, recompute: Recompute) -> ParallelismPlan:
        stated, framework = self.row.plan, self.framework
        tp, pp, cp, ep = stated.degrees
        fsdp, zero = self._sharding(dp)
        overlap_tp = bool(framework.overlaps_tp) if stated.overlap_tp is None else stated.overlap_tp
        return ParallelismPlan.model_validate(
            {
                "dp": dp,
                "fsdp": fsdp,
                "zero_stage": zero,
                "optimizer_shard": (stated.optimizer_shard or 0) if zero in (1, 2) else 0,
                "tp": tp,
                "sp": tp > 1 and (framework.sequence_parallel if stated.sp is None else stated.sp),
                "pp": pp,
                "cp": cp,
                "cp_kind": framework.cp_kind if cp > 1 else "ring",
                "ep": ep,
                "etp": stated.etp or (tp if ep == 1 and self.architecture.is_moe else 1),
                "expert_dispatch": _dispatch(stated.dispatcher) if ep > 1 else "auto",
                "overlap_ep": ep > 1 and accumulation > 1 and "1f1b overlap" in stated.notes.lower(),
                "micro_batch": micro,
                "grad_accum": accumulation,
                "recompute": recompute,
                "recompute_modules": modules_of(stated.recompute) if recompute == "selective" else "",
                "compute_dtype": self.dtype,
                "overlap_grad_reduce": framework.overlaps_data,
                "overlap_param_gather": framework.overlaps_data,
                "overlap_tp": overlap_tp and tp > 1,
            }
        )

    def _sharding(self, dp: int) -> tuple[int, int]:
        """(fsdp, zero_stage). Stages 1 and 2 keep weights whole; stage 3 without a group shards over all of dp."""
        zero, fsdp = self.row.plan.zero_stage, self.row.plan.fsdp
        if zero in (1, 2):
            return 1, zero
        if fsdp is not None and fsdp > 1:
            if dp % fsdp:
                raise Refused(f"fsdp {fsdp} does not divide dp {dp}")
            return fsdp, 3
        if zero == 3 or (zero is None and fsdp is None and self.framework.sharding == "weights"):
            return dp, 3 if dp > 1 or (self.row.plan.cp or 1) > 1 else 0
        if zero is None:
            return 1, 1 if self.framework.shards_optimizer else 0
        return 1, zero

    def _virtual_stages(self, plan: ParallelismPlan) -> Sequence[int]:
        """The number the row states; where it states none, all a pipeline may have, legal or not."""
        stated, schedule = self.row.plan.vp, (self.row.plan.schedule or "").lower()
        if stated is not None or plan.pp == 1 or not self.framework.virtual_stages or schedule == "1f1b":
            return (stated or 1,)
        return range(2 if "interleaved" in schedule else 1, MOST_VIRTUAL_STAGES + 1)

    def _usual(self, plans: tuple[ParallelismPlan, ...]) -> tuple[ParallelismPlan, ...]:
        """Of plans whose micro-batch is open those the framework chooses by itself, where there are any."""
        if self.row.micro_batch is not None or not self.framework.micro_batch_a_stage:
            return plans
        usual = tuple(plan for plan in plans if plan.pp > 1 and plan.grad_accum == plan.pp * plan.vp)
        return usual or plans

    def _legal(self, plans: tuple[ParallelismPlan, ...], workload: WorkloadSpec) -> tuple[ParallelismPlan, ...]:
        """The plans without those whose open number of virtual stages is not legal or cuts uneven chunks; what a row
        states stays."""
        if self.row.plan.vp is not None or all(plan.vp == 1 for plan in plans):
            return plans
        batch = PlanBatch.from_plans(plans)
        layers, chunks = self.architecture.layers, batch.pp * batch.vp
        even = (layers % chunks == 0) | ends_count_as_layers(layers, chunks)
        legal = even & legal_mask(batch, workload, self.architecture, self.cluster, self.hardware)
        return tuple(plan for plan, keeps in zip(plans, legal, strict=True) if keeps or plan.vp == 1)


def _dispatch(printed: str | None) -> str:
    """How tokens reach experts; dispatchers of other names send one copy a domain (DeepEP, HybridEP)."""
    if printed is None:
        return "auto"
    kinds = {"a2a": "all_to_all", "alltoall": "all_to_all", "allgather": "all_gather"}
    return kinds.get(printed.lower(), "deepep")


def _with_schedule(plan: ParallelismPlan, chunks: int, printed: str | None) -> ParallelismPlan:
    schedule = _schedule(printed, chunks)
    # revalidated: model_copy would not look at the new values
    return ParallelismPlan.model_validate(plan.model_dump() | {"vp": chunks, "schedule": schedule})


def _schedule(printed: str | None, chunks: int) -> str:
    """The schedule a row prints, or the one its virtual stages imply. Refused for one the vocabulary lacks."""
    spelled = (printed or "").lower().replace("-", "_").replace(" ", "_")
    implied = "interleaved" if chunks > 1 else "1f1b"
    if spelled == "" or spelled in ("1f1b", "interleaved", "interleaved_1f1b", "1f1b_interleaved"):
        return implied
    known = get_args(Schedule)
    names = {"zbv_formatted": "zero_bubble_v", "zbv": "zero_bubble_v", "zb_h1": "zero_bubble"}
    name = names.get(spelled, spelled)
    if name not in known:
        raise Refused(f"schedule {printed!r} is not modelled")
    return name


def _recompute(printed: str | None, framework: Framework) -> tuple[Recompute, ...]:
    """Modes the row may mean. Policies that name modules or offload stand between two of ours: open, none left out."""
    spelled = (framework.recompute if printed is None else printed) or ""
    spelled = spelled.lower()
    if modules_of(printed):
        return ("selective",)
    if spelled in ("none", "full"):
        return (spelled,)  # type: ignore[return-value]
    if spelled.startswith("selective") and framework.recomputes_layers:
        return OPEN_RECOMPUTE
    if spelled and all(word.strip() in MODULES for word in spelled.split(",")):
        return ("selective",)
    # MaxText's "minimal" keeps the outputs of all products and repeats what stands between them
    return ("selective",) if spelled.startswith(("selective", "minimal")) else OPEN_RECOMPUTE
