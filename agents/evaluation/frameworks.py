"""Frameworks: which degrees a training stack offers, how it shards, and what it overlaps, in one table.

A row or a workload names its framework in its own spelling; the first entry that has a spelling inside that name wins.
A name that fits no entry, or that offers a choice ("A or B"), is unknown: everything the projector knows is allowed.
Written from the public documentation of each stack; what is not documented is left at the projector's own default. The
entries say what exists and overlaps; figures of their kernels are `projector.specs.software`'s, with what they rest on.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from agents.evaluation.rows import DEGREES, MeasuredRow
from projector.specs.constraints import Constraints
from projector.specs.plan import ContextKind, Schedule
from projector.specs.plan_batch import PlanBatch
from projector.specs.software import (
    CURRENT,
    DEEPSPEED_ZERO3,
    INTERNEVO,
    LLM_FOUNDRY,
    MEGATRON_2022,
    MEGATRON_2023,
    MEGATRON_DEEPSPEED,
    MEGATRON_RECIPES,
    NATURAL_IMBALANCE,
    PYTORCH_COMPILED,
    TORCHTITAN,
    TORCHTITAN_2024,
    TORCHTITAN_2024_EAGER,
    XLA,
    Software,
    megatron_recipes,
)

MemoryCounter = Literal["allocated", "reserved", "device"]
Sharding = Literal["optimizer", "weights", "either"]
LAST_OLD_YEAR, FLASH_YEAR = 2022, 2024
ARXIV = re.compile(r"arxiv:(\d\d)\d\d\.\d{4,5}", re.IGNORECASE)
EVERY = frozenset(DEGREES)
# a benchmark file with its month in its name
DATED = re.compile(r"[_/](20\d\d)-?(?:0[1-9]|1[0-2])(?=[_.])")
RELEASE = re.compile(r"\b(\d\d)\.(\d\d)\b")
BLOCK_SCALED = ("mxfp8", "nvfp4")


@dataclass(frozen=True)
class Framework:
    """What a stack offers.

    degrees           which of tp, pp, cp, ep may exceed 1
    sharding          what its recipes use. optimizer: weights stay whole on a data rank (ZeRO 0 to 2); weights: FSDP or
                      ZeRO 3; either
    virtual_stages    whether a pipeline interleaves
    schedules         orders of a pipeline's passes it has, of those the projector knows: no released stack here has
                      ZB-H1 or DualPipe (torchtitan's zero-bubble and DualPipe forms are V-shaped, which are others)
    sequence_parallel whether activations are sharded along the sequence wherever tp > 1
    overlaps_data     whether gradient reduction and weight gathering run beside compute
    overlaps_tp       whether tensor-parallel collectives can hide in the products beside them; None: not documented
    cp_kind           how context ranks share attention unless told otherwise
    recompute         what its configurations do unless told otherwise; None: left open
    recomputes_layers whether "selective" repeats whole layers, every so-many-th of them: between none and full, so open
    recomputes_blocks whether full recompute may hold for some layers of a stage only (Megatron's method "block")
    memory_counter    what its published memory counts: "allocated" bytes, bytes the allocator has "reserved", or all
                      that is in use on the "device" (nvidia-smi)
    accumulates       whether rows mean accumulation; False: a data rank pushes all its sequences through at once
    micro_batch_a_stage   whether a pipeline cuts its sequences into as many micro-batches as it has stages, virtual
                      ones counted, unless told otherwise
    """

    name: str
    spellings: tuple[str, ...]
    degrees: frozenset[str] = EVERY
    sharding: Sharding = "either"
    virtual_stages: bool = True
    schedules: frozenset[Schedule] = frozenset({"1f1b", "interleaved"})
    sequence_parallel: bool = True
    overlaps_data: bool = True
    overlaps_tp: bool | None = None
    accumulates: bool = True
    micro_batch_a_stage: bool = False
    cp_kind: ContextKind = "ring"
    recompute: str | None = None
    recomputes_layers: bool = False
    recomputes_blocks: bool = False
    memory_counter: MemoryCounter = "allocated"
    software: Software = CURRENT

    def limits(self) -> Constraints:
        """What the stack fixes, so that a search does not spend itself on what it lacks."""
        fixed: dict[str, int | bool | str] = dict.fromkeys(EVERY - self.degrees, 1)
        if not self.virtual_stages:
            fixed["vp"] = 1
        if not self.sequence_parallel:
            fixed["sp"] = False
        if self.overlaps_tp is False:
            fixed["overlap_tp"] = False
        if not self.accumulates:
            fixed["grad_accum"] = 1
        return Constraints(fixed=fixed)

    def allows(self, plans: PlanBatch) -> NDArray[np.bool_]:
        """Which plans of the batch the stack can run, shape [n]."""
        allowed = np.ones(len(plans), dtype=np.bool_)
        for degree in EVERY - self.degrees:
            allowed &= plans.columns[degree] == 1
        if not self.virtual_stages:
            allowed &= plans.vp == 1
        allowed &= np.isin(plans.schedule, sorted(self.schedules))
        if not self.sequence_parallel:
            allowed &= ~plans.sp
        if self.sharding == "optimizer":
            # a distributed optimizer wherever there is a rank to share it with
            shared = (plans.zero_stage > 0) | (plans.dp * plans.cp == 1) | (not self.shards_optimizer)
            allowed &= (plans.fsdp == 1) & shared
        if self.sharding == "weights":
            allowed &= (plans.fsdp > 1) | (plans.dp == 1)
        if self.overlaps_tp is False:
            allowed &= ~plans.overlap_tp
        return allowed

    def runs(self, plans: PlanBatch) -> PlanBatch:
        """The plans with the overlap of data-parallel traffic that the stack has, or has not, whatever they say."""
        overlap = np.full(len(plans), self.overlaps_data)
        return PlanBatch({**plans.columns, "overlap_grad_reduce": overlap, "overlap_param_gather": overlap})

    @property
    def shards_optimizer(self) -> bool:
        """Whether a distributed optimizer is on unless a row says otherwise: not before 2023."""
        return self.software not in (MEGATRON_2022, MEGATRON_DEEPSPEED)


UNKNOWN = Framework("unknown", (), schedules=frozenset(get_args(Schedule)))
OLD_MEGATRON = Framework(
    "Megatron-LM of 2021 and 2022",
    ("megatron-lm ptd-p", "megatron-lm of 2022"),
    degrees=frozenset({"tp", "pp"}),
    sharding="optimizer",
    sequence_parallel=False,
    overlaps_data=False,
    overlaps_tp=False,
    software=MEGATRON_2022,
)
MEGATRON_BEFORE_FLASH = Framework(
    "Megatron-LM of 2023",
    ("megatron-lm of 2023",),
    degrees=frozenset({"tp", "pp"}),
    sharding="optimizer",
    overlaps_tp=False,
    software=MEGATRON_2023,
)
# its FSDP is an option that its recipes rarely switch on
MEGATRON = Framework("Megatron-Core", ("megatron", "megascale"), sharding="optimizer", recomputes_blocks=True)
FRAMEWORKS: tuple[Framework, ...] = (
    OLD_MEGATRON,
    MEGATRON_BEFORE_FLASH,
    Framework(
        "Megatron-DeepSpeed",
        ("megatron-deepspeed",),
        degrees=frozenset({"tp", "pp"}),
        sharding="optimizer",
        virtual_stages=False,
        sequence_parallel=False,
        overlaps_data=False,
        overlaps_tp=False,
        # of its one publication with memory, BLOOM's chronicles
        memory_counter="device",
        software=MEGATRON_DEEPSPEED,
    ),
    Framework(
        "DeepSpeed ZeRO-3",
        ("deepspeed zero",),
        degrees=frozenset(),
        sharding="weights",
        overlaps_tp=False,
        software=DEEPSPEED_ZERO3,
    ),
    Framework(
        "fms-fsdp",
        ("fms-fsdp",),
        degrees=frozenset(),
        sharding="weights",
        overlaps_tp=False,
        recomputes_layers=True,
        software=PYTORCH_COMPILED,
    ),
    Framework(
        "PyTorch FSDP alone",
        ("litgpt", "torchtune"),
        degrees=frozenset(),
        sharding="weights",
        overlaps_tp=False,
        software=PYTORCH_COMPILED,
    ),
    Framework(
        "llm-foundry",
        ("composer", "llm-foundry"),
        degrees=frozenset(),
        sharding="weights",
        overlaps_tp=False,
        software=LLM_FOUNDRY,
    ),
    Framework(
        "torchtitan",
        ("torchtitan",),
        sharding="weights",
        recompute="selective",
        micro_batch_a_stage=True,
        cp_kind="all_gather",
        memory_counter="reserved",
        software=TORCHTITAN,
    ),
    # XLA splits matrix products so that tensor-parallel collectives hide behind them
    Framework(
        "MaxText",
        ("maxtext",),
        sharding="weights",
        overlaps_tp=True,
        accumulates=False,
        cp_kind="all_gather",
        software=XLA,
    ),
    Framework("InternEvo", ("internevo",), sharding="optimizer", software=INTERNEVO),
    # the performance recipes of both switch it on for tp > 1
    Framework(
        "Megatron-Bridge and NeMo",
        ("megatron-bridge", "nemo"),
        sharding="optimizer",
        recomputes_blocks=True,
        overlaps_tp=True,
        software=MEGATRON_RECIPES,
    ),
    MEGATRON,
    # arXiv:2407.21783, section 3.3.2
    Framework("Llama 3 stack of Meta", ("meta internal",), cp_kind="all_gather"),
)


def framework_of(name: str) -> Framework:
    """The framework a row's own spelling means."""
    spelled = name.lower()
    if " or " in spelled:
        return UNKNOWN
    return next((one for one in FRAMEWORKS if any(word in spelled for word in one.spellings)), UNKNOWN)


def framework_of_row(name: str, source: str) -> Framework:
    """As `framework_of`, with the age of the publication: a Megatron of 2022 or before is another stack."""
    found = framework_of(name)
    published = ARXIV.search(source)
    if published is None or found != MEGATRON or "megascale" in name.lower():
        return found
    year = 2000 + int(published[1])
    if year <= LAST_OLD_YEAR:
        return OLD_MEGATRON
    return MEGATRON_BEFORE_FLASH if year <= FLASH_YEAR else found


def software_of(framework: Framework, row: MeasuredRow) -> Software:
    """The stack's kernels in the release a row names, with what the row says of its memory and its experts."""
    plan, software = row.plan, framework.software
    changed: dict[str, object] = {}
    if software == MEGATRON_RECIPES:
        found = RELEASE.search(row.release or "")
        release = None if found is None else (int(found[1]), int(found[2]))
        software = megatron_recipes(release, block_scaled=row.precision in BLOCK_SCALED)
    if plan.capacity_factor is not None and plan.capacity_factor > 0:
        # experts of a fixed capacity take their tokens by dense products: no permutation by index kernels around them
        changed |= {"expert_load": max(plan.capacity_factor, 1.0), "expert_passes": 1.0}
    if plan.router is not None and "dropless" in plan.router.lower():
        changed["expert_imbalance"] = NATURAL_IMBALANCE
    dated = DATED.search(row.document)
    if software == TORCHTITAN and dated is not None and int(dated[1]) < 2025:
        # that year's report names the compiler wherever it was used
        compiled = "compile" in (row.precision_printed or "").lower()
        software = TORCHTITAN_2024 if compiled else TORCHTITAN_2024_EAGER
    if "bf16 optimizer" in (row.release or "").lower():
        changed["gradient_bytes"] = 6
    if software == XLA and plan.offloads_inputs is not False:
        changed["offloads_inputs"] = True
    return software.model_copy(update=changed)


def frameworks_of(names: Sequence[str]) -> tuple[Framework, ...]:
    """The distinct frameworks of a workload, of no release in particular; empty where one of them is unknown, for then
    nothing is excluded."""
    found = tuple(dict.fromkeys(framework_of(name) for name in names))
    return () if not found or UNKNOWN in found else found
