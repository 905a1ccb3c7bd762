"""Synthetic profiles that encode what the PROMPTS paper publishes of its cases C1 to C4 and A5.

No trace of the paper is public. Published figures (tests/data/prompts_cases.json: step time, duty cycle, communication
share, operators with category, time, count, bound and efficiency) are taken over; everything else is chosen here:
- Devices and steps. C2's operator times are 96, C3's 33 times their share of one step, so those profiles have 16 x 6
  and 3 x 11 device steps; C3's "percentages" are then fractions cut to three places (4.192 s of 33 x 7.354 s: 1.7 %).
- Peaks: datasheet figures of the chip, and made-up VMEM bandwidths.
- Shares of A5's operators, which are not published, and two occurrences a step where counts are not.
- All-reduces too small to be listed, where the published all-reduce share is more than the listed ones explain; for
  C2, whose share is taken to count all collectives, one small all-gather.
- The rest of the busy time: one operator without a category in each step. It is the part nobody published.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from xplane_builder import HBM, READ, VMEM, WRITE, PlaneBuilder, Value, memory_breakdown, space, tpu_plane

FACTS = Path(__file__).parents[2] / "data" / "prompts_cases.json"
PS_PER_MS = 10**9
REST = "rest of the step"


def published(case: str) -> dict[str, Any]:
    """The published facts of one case."""
    cases: list[dict[str, Any]] = json.loads(FACTS.read_text())["cases"]
    return next(one for one in cases if one["id"] == case)


@dataclass(frozen=True)
class Chip:
    device_type: str
    peak_tflop_per_s: float
    hbm_gb_per_s: float
    vmem_gb_per_s: float

    def stats(self) -> dict[str, Value]:
        return {
            "peak_teraflops_per_second": self.peak_tflop_per_s,
            "peak_hbm_bw_gigabytes_per_second": self.hbm_gb_per_s,
            "peak_vmem_rd_bw_gigabytes_per_second": self.vmem_gb_per_s,
            "peak_vmem_wr_bw_gigabytes_per_second": self.vmem_gb_per_s,
            "has_merged_vmem": 1,
        }


@dataclass(frozen=True)
class Setup:
    """What a case needs beside its published figures."""

    chip: Chip
    devices: int
    steps: int
    in_fractions: bool = False
    shares_pct: tuple[float, ...] = ()
    busy_pct: float | None = None

    @property
    def device_steps(self) -> int:
        return self.devices * self.steps


SETUPS = {
    "C1": Setup(Chip("TPU v5", 459.0, 2765.0, 20_000.0), devices=8, steps=2),
    "C2": Setup(Chip("TPU v6 lite", 918.0, 1640.0, 20_000.0), devices=16, steps=6),
    "C3": Setup(Chip("TPU v5 lite", 197.0, 819.0, 10_000.0), devices=3, steps=11, in_fractions=True),
    "C4": Setup(Chip("TPU v6 lite", 918.0, 1640.0, 20_000.0), devices=8, steps=3),
    "A5": Setup(
        Chip("TPU7x", 1153.5, 3690.0, 30_000.0), devices=2, steps=10, shares_pct=(0.5, 0.4, 0.3, 0.2), busy_pct=99.5
    ),
}
OFF_DUTY = ("async-done",)


@dataclass
class Op:
    """One operator of the profile: a duration for each occurrence, in order of the device steps."""

    name: str
    category: str
    durations_ps: list[int]
    cost: dict[str, Value] = field(default_factory=dict)


def profile(case: str) -> bytes:
    """The XSpace of one case."""
    facts, setup = published(case), SETUPS[case]
    step_ps = round(facts["kpis"]["step_time_ms"] * PS_PER_MS)
    ops = [listed(index, op, facts, setup, step_ps) for index, op in enumerate(facts["top_ops"])]
    ops += unlisted_communication(facts, setup, step_ps, ops)
    planes = [tpu_plane(index, setup.chip.device_type, **setup.chip.stats()) for index in range(setup.devices)]
    rest = rest_of_the_step(facts, setup, step_ps, ops)
    for index, plane in enumerate(planes):
        write_plane(plane, range(index * setup.steps, (index + 1) * setup.steps), setup, step_ps, ops, rest)
    return space(*planes)


def listed(index: int, op: dict[str, Any], facts: dict[str, Any], setup: Setup, step_ps: int) -> Op:
    """A published operator; its total and count are published, or follow from its share with two occurrences a step."""
    unit = 1.0 if setup.in_fractions else 0.01
    share = op["time_pct"] * unit if "time_pct" in op else setup.shares_pct[index] * 0.01
    total_ps = op.get("total_ps") or round(share * step_ps * setup.device_steps)
    durations = spread(total_ps, op.get("count") or 2 * setup.device_steps)
    efficiency = op["roofline_pct"] * unit
    compute = op.get("compute_pct", 0.0) * unit
    hbm = op["hbm_bw_pct"] * unit if "hbm_bw_pct" in op else None
    return Op(op["name"], op["category"], durations, cost(op["bound"], efficiency, compute, hbm, setup.chip, durations))


def cost(
    bound: str, efficiency: float, compute: float, hbm: float | None, chip: Chip, durations: list[int]
) -> dict[str, Value]:
    """FLOP and bytes of one occurrence that make the operator what was published of it."""
    seconds = sum(durations) / len(durations) / 1e12

    def size(fraction: float, gb_per_s: float) -> int:
        return round(fraction * gb_per_s * 1e9 * seconds)

    if bound == "unknown":
        return {"flops": 0, "bytes_accessed": 0}
    flop = round((efficiency if bound == "compute" else compute) * chip.peak_tflop_per_s * 1e12 * seconds)
    hbm_bytes = size(efficiency if bound == "hbm" else hbm or 0.0, chip.hbm_gb_per_s)
    reads = size(efficiency, chip.vmem_gb_per_s) if bound == "vmem_read" else 0
    writes = size(efficiency, chip.vmem_gb_per_s) if bound == "vmem_write" else 0
    accesses = memory_breakdown(
        (READ, HBM, hbm_bytes // 2),
        (WRITE, HBM, hbm_bytes - hbm_bytes // 2),
        (READ, VMEM, reads),
        (WRITE, VMEM, writes),
    )
    return {"flops": flop, "bytes_accessed": hbm_bytes + reads + writes, "memory_access_breakdown": accesses}


def unlisted_communication(facts: dict[str, Any], setup: Setup, step_ps: int, ops: list[Op]) -> list[Op]:
    """Communication the published share counts and the list does not show, each operator below the least listed one."""
    kpis = facts["kpis"]
    if "mean_all_reduce_us" in kpis:
        wanted = round(kpis["mean_all_reduce_us"] * 10**6) * setup.device_steps
        counted = ("all-reduce",)
    elif "all_reduce_only_comm_pct" in kpis:
        wanted = round(kpis["all_reduce_only_comm_pct"] / 100 * step_ps * setup.device_steps)
        counted = ("all-reduce",)
    elif "comm_pct" in kpis:
        wanted = round(kpis["comm_pct"] / 100 * step_ps * setup.device_steps)
        counted = ("all-reduce", "custom fusion")
    else:
        return []
    missing = wanted - sum(sum(op.durations_ps) for op in ops if op.category in counted)
    least = min(sum(op.durations_ps) for op in ops)
    category = "all-gather" if "comm_pct" in kpis else "all-reduce"
    names = [f"{category}.{900 + index}" for index in range(-(-missing * 10 // (least * 9)))]
    return [
        Op(
            name,
            category,
            spread(total, setup.device_steps),
            cost("hbm", 0.01, 0.0, None, setup.chip, [total // setup.device_steps]),
        )
        for name, total in zip(names, spread(missing, len(names)), strict=True)
    ]


def rest_of_the_step(facts: dict[str, Any], setup: Setup, step_ps: int, ops: list[Op]) -> Op:
    """The busy time no published operator explains. A5's carries the work that makes the published goodput."""
    kpis = facts["kpis"]
    duty_pct = kpis.get("duty_cycle_pct", setup.busy_pct)
    busy_ps = (
        round(kpis["tc_busy_time_ms"] * PS_PER_MS) if "tc_busy_time_ms" in kpis else round(duty_pct / 100 * step_ps)
    )
    durations = [busy_ps] * setup.device_steps
    for op in ops:
        if op.category not in OFF_DUTY:
            for device_step, occurrences in enumerate(shares_of(op.durations_ps, setup.device_steps)):
                durations[device_step] -= sum(occurrences)
    if "program_goodput_pct" not in kpis:
        return Op(REST, "", durations)
    ideal = sum(op["roofline_pct"] / 100 * sum(one.durations_ps) for op, one in zip(facts["top_ops"], ops, strict=True))
    wanted = kpis["program_goodput_pct"] / 100 * step_ps * setup.device_steps
    return Op(REST, "", durations, cost("hbm", (wanted - ideal) / sum(durations), 0.0, None, setup.chip, durations))


def write_plane(plane: PlaneBuilder, device_steps: range, setup: Setup, step_ps: int, ops: list[Op], rest: Op) -> None:
    """Steps one after the other; in each the listed operators, the rest, then idle time."""
    steps, modules, line = plane.line("Steps"), plane.line("XLA Modules"), plane.line("XLA Ops")
    module = plane.kind("jit_train_step(7)", program_id=7)
    kinds = [
        plane.kind(
            f"%op.{index} = synthetic()",
            op.name,
            program_id=7,
            **({"hlo_category": op.category} if op.category else {}),
            **op.cost,
        )
        for index, op in enumerate((*ops, rest))
    ]
    for number, device_step in enumerate(device_steps):
        at = number * step_ps
        steps.event(plane.kind(str(number)), at, step_ps, group_id=number)
        begin = at
        for kind, op in zip(kinds, (*ops, rest), strict=True):
            for duration in shares_of(op.durations_ps, setup.device_steps)[device_step]:
                line.event(kind, at, duration)
                at += duration
        modules.event(module, begin, at - begin)


def spread(total: int, parts: int) -> list[int]:
    """`parts` whole numbers that differ by at most one and add up to `total`."""
    return [total // parts + (index < total % parts) for index in range(parts)]


def shares_of(durations: list[int], device_steps: int) -> list[list[int]]:
    """The occurrences of each device step."""
    out, at = [], 0
    for count in spread(len(durations), device_steps):
        out.append(durations[at : at + count])
        at += count
    return out
