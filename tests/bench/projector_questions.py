"""The questions every projector of the comparison is asked: each plan a measured row may mean, in plain numbers.

A row that leaves knobs open (recompute, micro-batch, virtual stages) is several questions, the same for every tool, and
each tool's fastest answer that fits counts. What a row holds beyond the plain fields below is named in `beyond`: a tool
that knows only these refuses it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from agents.evaluation.cases import Case, Option, case_of
from agents.evaluation.material import TextFile, read_material
from agents.evaluation.refusal import Refused, or_refused
from agents.evaluation.rows import MeasuredRow
from agents.evaluation.slices import NO_STRATUM
from projector.catalog import chip
from projector.search_space import explore
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.constraints import Constraints
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import FIELDS, PlanBatch
from projector.specs.record import Record
from projector.specs.workload import WorkloadSpec

FILES = ("training.jsonl", "vtrain_a100_multi_node.csv", "vtrain_a100_single_node.csv")
# chips of the families that both peers ship files for
CHIPS = ("a100-80-sxm", "a100-40-sxm", "h100-sxm", "h100-sxm-96gb-hbm2e(500w)", "h200")
# fields that each tool is told, or that change neither time nor memory by what these tools know
_MODEL = (
    "name hf_id layers hidden_size heads kv_heads head_dim intermediate_size vocab_size gated_mlp tied_embeddings "
    "attention_bias positions parallel_block post_norms max_positions checkpoint_dtype source retrieved "
    "published_parameters published_parameters_source unverified note"
)
_PLAN = (
    "phase dp fsdp zero_stage optimizer_shard tp sp pp vp cp ep etp micro_batch grad_accum recompute schedule "
    "compute_dtype overlap_grad_reduce overlap_param_gather overlap_tp attention_dp weight_dtype kv_cache_dtype "
    "max_num_seqs chunked_prefill_tokens cuda_graphs"
)
PLAIN_MODEL, PLAIN_PLAN = frozenset(_MODEL.split()), frozenset(_PLAN.split())
PLAIN_WORKLOAD = frozenset(("phase", "seq_len", "global_batch", "precision"))
# the search whose plans the speed of each tool is measured on: GPT-3, which all know, on the largest machine of SC'21
SPEED_CHIPS, SPEED_SEQ_LEN, SPEED_BATCH = 3072, 2048, 3072
SPEED_SETTING = f"GPT-3 175B on {SPEED_CHIPS:,} A100"
GPT3 = ModelArchitecture(
    name="gpt3-175b",
    layers=96,
    hidden_size=12288,
    heads=96,
    kv_heads=96,
    head_dim=128,
    intermediate_size=49152,
    vocab_size=51200,
    gated_mlp=False,
    tied_embeddings=True,
    positions="learned",
    max_positions=SPEED_SEQ_LEN,
    source="arXiv:2005.14165, table 2.1",
)


@dataclass(frozen=True)
class Question:
    """One plan of one row. Bytes and bytes/s are the chip's datasheet; tokens those of a step."""

    row: str
    chip: str
    hbm_bytes: float
    hbm_bytes_per_s: float
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    mlp_width: int
    vocabulary: int
    gated: bool
    seq_len: int
    global_batch: int
    tokens: int
    dtype: str
    dp: int
    fsdp: int
    zero_stage: int
    tp: int
    sp: bool
    pp: int
    vp: int
    cp: int
    ep: int
    micro_batch: int
    grad_accum: int
    recompute: str
    schedule: str
    overlap_data: bool
    overlap_tp: bool
    beyond: tuple[str, ...]


def cases(folder: Path) -> list[Case]:
    """Rows of the ground truth on these chips that print a speed, as the evaluation reads them."""
    files = [folder / name for name in FILES if (folder / name).is_file()]
    material = read_material(TextFile(file.name, file.read_text(encoding="utf-8")) for file in files)
    found: list[Case] = []
    for row in material.rows:
        if not isinstance(row, MeasuredRow) or row.suspect is not None or row.ineligible is not None:
            continue
        case = or_refused(partial(case_of, row, NO_STRATUM))
        if not isinstance(case, Refused) and case.target is not None and case.hardware.id in CHIPS:
            found.append(case)
    return found


def questions(cases: Iterable[Case]) -> Iterator[Question]:
    """Every plan of every case."""
    for case in cases:
        for option in case.options:
            yield from _of_option(case, option)


def speed_setting() -> tuple[PlanBatch, WorkloadSpec, ModelArchitecture, ClusterSpec, HardwareProfile]:
    """The legal plans of one search that every tool has fields for, and what they are projected in."""
    workload = WorkloadSpec(seq_len=SPEED_SEQ_LEN, global_batch=SPEED_BATCH, precision="bf16")
    hardware = chip("a100-80-sxm")
    cluster = ClusterSpec(chip=hardware.id, chips=SPEED_CHIPS)
    plans = explore(workload, GPT3, cluster, hardware, Constraints(), None).plans
    known = (plans.fsdp == 1) & (plans.cp == 1) & (plans.tp <= hardware.chips_per_node)
    known &= np.isin(plans.schedule, ("1f1b", "interleaved")) & np.isin(plans.recompute, ("none", "selective", "full"))
    for name in set(FIELDS) - PLAIN_PLAN:
        known &= plans.columns[name] == ParallelismPlan.model_fields[name].default
    return plans.take(known), workload, GPT3, cluster, hardware


def speed_questions(most: int) -> list[Question]:
    """Plans of the speed setting, `most` of them evenly spread over the whole."""
    plans, workload, model, _, hardware = speed_setting()
    step = max(1, len(plans) // most)
    return [_question("speed", plans[place], workload, model, hardware) for place in range(0, len(plans), step)]


def _of_option(case: Case, option: Option) -> Iterator[Question]:
    for plan in option.plans:
        yield _question(case.row.id, plan, option.workload, case.architecture, case.hardware)


def _question(
    row: str, plan: ParallelismPlan, workload: WorkloadSpec, model: ModelArchitecture, hardware: HardwareProfile
) -> Question:
    assert workload.seq_len is not None
    assert workload.global_batch is not None
    return Question(
        row=row,
        chip=hardware.id,
        hbm_bytes=hardware.hbm_bytes.value,
        hbm_bytes_per_s=hardware.hbm_bytes_per_s.value,
        layers=model.layers,
        hidden=model.hidden_size,
        heads=model.heads,
        kv_heads=model.kv_heads,
        head_dim=model.head_dim,
        mlp_width=model.intermediate_size,
        vocabulary=model.vocab_size,
        gated=model.gated_mlp,
        seq_len=workload.seq_len,
        global_batch=workload.global_batch,
        tokens=workload.seq_len * workload.global_batch,
        dtype=plan.compute_dtype,
        dp=plan.dp,
        fsdp=plan.fsdp,
        zero_stage=plan.zero_stage,
        tp=plan.tp,
        sp=plan.sp,
        pp=plan.pp,
        vp=plan.vp,
        cp=plan.cp,
        ep=plan.ep,
        micro_batch=plan.micro_batch,
        grad_accum=plan.grad_accum,
        recompute=plan.recompute,
        schedule=plan.schedule,
        overlap_data=plan.overlap_grad_reduce,
        overlap_tp=plan.overlap_tp,
        beyond=(*_set(model, PLAIN_MODEL), *_set(plan, PLAIN_PLAN), *_set(workload, PLAIN_WORKLOAD)),
    )


def _set(record: Record, known: Iterable[str]) -> Sequence[str]:
    """Fields besides the known ones that are not at their default."""
    fields = type(record).model_fields
    return [name for name in fields if name not in known and getattr(record, name) != fields[name].default]
