"""Frameworks: which degrees a training stack offers, how it shards, and what it overlaps, in one table.

A row or a workload names its framework in its own spelling; the first entry that has a spelling inside that name wins.
A name that fits no entry, or that offers a choice ("A or B"), is unknown: everything the projector knows is allowed.
Written from the public documentation of each stack; what is not documented is left at the projector's own default. The
entries say what exists and overlaps; figures of their kernels are `projector.specs.software`'s, with what they rest on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from projector.errors import UnknownName
from projector.ranking.task import Stack
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
    PYTORCH_COMPILED,
    TORCHTITAN,
    XLA,
    Software,
)

MemoryCounter = Literal["allocated", "reserved", "device"]
Sharding = Literal["optimizer", "weights", "either"]
EVERY = frozenset({"tp", "pp", "cp", "ep"})


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


MAXTEXT_SOFTWARE = XLA.model_copy(update={"offloads_inputs": True})
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
    # XLA splits matrix products so that tensor-parallel collectives hide behind them; layer inputs wait in host memory
    # wherever recipes recompute in full (remat policies with decoder_layer_input: offload)
    Framework(
        "MaxText",
        ("maxtext",),
        sharding="weights",
        overlaps_tp=True,
        accumulates=False,
        cp_kind="all_gather",
        software=MAXTEXT_SOFTWARE,
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
    own = next((one for one in FRAMEWORKS if one.name.lower() == spelled), None)
    return own or next((one for one in FRAMEWORKS if any(word in spelled for word in one.spellings)), UNKNOWN)


def frameworks_of(names: Sequence[str]) -> tuple[Framework, ...]:
    """The distinct frameworks of a workload, of no release in particular; empty where one of them is unknown, for then
    nothing is excluded."""
    found = tuple(dict.fromkeys(framework_of(name) for name in names))
    return () if not found or UNKNOWN in found else found


def framework_named(name: str) -> Framework:
    """The framework of that name. UnknownName with the nearest spellings."""
    found = frameworks_of((name,))
    if not found:
        raise UnknownName("framework", name, [spelling for one in FRAMEWORKS for spelling in one.spellings])
    return found[0]


def framework_called(name: str) -> Framework:
    """The entry whose own name this is; an assert elsewhere, for only resolved names come here."""
    return next(one for one in FRAMEWORKS if one.name == name)


def stack_of(framework: Framework) -> Stack:
    """What a framework bounds, as a search takes it."""
    return Stack(
        name=framework.name,
        limits=framework.limits(),
        runs=lambda plans: framework.runs(plans.take(framework.allows(plans))),
        software=framework.software,
    )
