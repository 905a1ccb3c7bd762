"""Evidence of an XLA profile: its headline figures, and its operators by what limits them and by category."""

from collections.abc import Iterator
from typing import Final

from agents.findings import Evidence
from agents.planning.op_level import Limit, OpGroup, OpLevel
from agents.wording import duration, percent, quoted
from projector.units import s_to_ms
from traces.xplane.op_table import Bound, Kpis

MOST_CATEGORIES: Final = 6
LEAST_SHOWN_FRAC: Final = 0.0005  # would read 0.0 %
LIMIT_WORDS: Final[dict[Limit, tuple[str, str]]] = {
    "arithmetic": ("compute", "Operators bound by the core, its arithmetic or its on-chip memory,"),
    "memory": ("memory", "Operators that HBM limits, copies and collectives that keep HBM busy among them,"),
    "communication": ("communication", "Collectives that wait for links or peers while HBM idles"),
    "host": ("host", "Operators that wait for input from the host, or for it to take output,"),
    "unresolved": ("unresolved", "Identified operators of which the profile gives no limit, so that decide nothing,"),
}
BOUND_WORDS: Final[dict[Bound, str]] = {
    "compute": "bound by arithmetic",
    "hbm": "labelled HBM-bound",
    "cmem_read": "bound by reading CMEM",
    "cmem_write": "bound by writing CMEM",
    "vmem_read": "bound by reading VMEM",
    "vmem_write": "bound by writing VMEM",
    "unknown": "of unknown limit",
}


def op_evidence(ops: OpLevel | None) -> tuple[Evidence, ...]:
    """Every figure a diagnosis from an operator table rests on; () without a table."""
    if ops is None:
        return ()
    kpis = () if ops.kpis is None else tuple(_kpi_evidence(ops.kpis))
    return (*kpis, *_limit_evidence(ops), *_category_evidence(ops))


def _kpi_evidence(kpis: Kpis) -> Iterator[Evidence]:
    if kpis.step_time_s is not None:
        claim = f"A step takes {duration(kpis.step_time_s)} ({kpis.basis})."
        yield _evidence("kpi-step-time", claim, s_to_ms(kpis.step_time_s), "step_time_s", unit="ms")
    claim = f"The core is busy {percent(kpis.duty_cycle_frac)} of the step (duty cycle)."
    yield _evidence("kpi-duty-cycle", claim, kpis.duty_cycle_frac, "duty_cycle_frac")
    claim = f"Communication of every kind occupies the core for {percent(kpis.communication_frac)} of the step."
    yield _evidence("kpi-communication", claim, kpis.communication_frac, "communication_frac")
    claim = f"Plain all-reduce alone takes {percent(kpis.all_reduce_only_frac)} of the step"
    if kpis.all_reduce_only_incomplete:
        rest = kpis.communication_frac - kpis.all_reduce_only_frac
        claim += f": an incomplete figure, other collectives take {percent(max(0.0, rest))} more"
    yield _evidence("kpi-all-reduce", f"{claim}.", kpis.all_reduce_only_frac, "all_reduce_only_frac")
    if kpis.program_goodput_frac is not None:
        claim = f"The stated work would take {percent(kpis.program_goodput_frac)} of the step at its roofline."
        yield _evidence("kpi-goodput", claim, kpis.program_goodput_frac, "program_goodput_frac")
    if kpis.unattributed_frac > 0:
        claim = f"Operators that the profile does not identify take {percent(kpis.unattributed_frac)} of the step."
        yield _evidence("kpi-unattributed", claim, kpis.unattributed_frac, "unattributed_frac")


def _limit_evidence(ops: OpLevel) -> Iterator[Evidence]:
    for limit, group in ops.limits.items():
        if limit not in LIMIT_WORDS or group.share < LEAST_SHOWN_FRAC:
            continue
        name, words = LIMIT_WORDS[limit]
        top = group.costliest
        claim = (
            f"{words} take {percent(group.share)} of the step{_at(group)}; the costliest is '{quoted(top.name)}' "
            f"(category '{quoted(top.category)}', {BOUND_WORDS[top.bound]}) with {percent(top.share_of_step_frac)}."
        )
        yield _rows(f"rows-{name}", claim, group.share)
    if ops.memory_collectives >= LEAST_SHOWN_FRAC:
        claim = f"Collectives that keep HBM busy take {percent(ops.memory_collectives)} of the step."
        yield _rows("rows-hbm-collectives", claim, ops.memory_collectives)


def _category_evidence(ops: OpLevel) -> Iterator[Evidence]:
    for place, group in enumerate(ops.categories[:MOST_CATEGORIES], start=1):
        name = quoted(group.name)
        claim = f"Category '{name}' takes {percent(group.share)} of the step, mostly {BOUND_WORDS[group.bound]}"
        yield _rows(f"category-{place}", f"{claim}{_at(group)}.", group.share)


def _at(group: OpGroup) -> str:
    return "" if group.efficiency is None else f", at {percent(group.efficiency)} of the roofline"


def _rows(name: str, claim: str, share: float) -> Evidence:
    return Evidence(
        id=f"ev-{name}", claim=claim, value=share, unit="fraction", source="measured", ref="summary.op_table"
    )


def _evidence(name: str, claim: str, value: float, field: str, unit: str = "fraction") -> Evidence:
    ref = f"summary.kpis.{field}"
    return Evidence(id=f"ev-{name}", claim=claim, value=value, unit=unit, source="measured", ref=ref)
