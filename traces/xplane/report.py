"""Op table and KPIs of a profile from the sums of its devices."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from traces.xplane.cost import Cost
from traces.xplane.hlo import CONTROL
from traces.xplane.op_table import BOUNDS, PS_PER_S, Bound, Kpis, OpRow
from traces.xplane.planes import Peaks
from traces.xplane.profile import DeviceProfile, Op, OpSum

_MOSTLY_COSTED: Final = 0.95


@dataclass(slots=True)
class _Sum:
    """Occurrences of one operator on all devices; cost is None as soon as one device states none."""

    op: Op
    count: int
    own_ps: int
    total_ps: int
    cost: Cost | None

    def add(self, more: OpSum) -> None:
        self.count += more.count
        self.own_ps += more.own_ps
        self.total_ps += more.total_ps
        self.cost = None if self.cost is None or more.cost is None else self.cost.plus(more.cost)


@dataclass(frozen=True, slots=True)
class WorkSums:
    """Operators of one device other than control flow, as sums.

    costed_ps     the part of own_ps in operators with a stated cost
    roofline_ps   time the stated work would take at the peaks; None where these are not stated
    """

    own_ps: int
    costed_ps: int
    roofline_ps: float | None


def work_sums(profile: DeviceProfile) -> WorkSums:
    """Sums over the operators of a device."""
    sums = [one for one in profile.ops if one.op.category not in CONTROL]
    known = [(one, one.cost) for one in sums if one.cost is not None and one.total_ps]
    full_peaks = bool(profile.peaks.flop_per_s and profile.peaks.hbm_bytes_per_s)
    roofline = (max(utilisations(cost, profile.peaks, one.total_ps).values()) * one.total_ps for one, cost in known)
    return WorkSums(
        own_ps=sum(one.own_ps for one in sums),
        costed_ps=sum(one.own_ps for one, _ in known),
        roofline_ps=sum(roofline) if full_peaks else None,
    )


def op_table(profiles: Sequence[DeviceProfile], all_ops: Iterable[Sequence[OpSum]] | None = None) -> tuple[OpRow, ...]:
    """One row an operator, the costliest first, unattributed ones after the others.

    all_ops: the operators of each device, looked at one by one, where they were taken off the profiles.
    """
    window_ps = sum(profile.window_ps for profile in profiles)
    peaks = common_peaks([profile.peaks for profile in profiles])
    rows = [
        _row(one, peaks, window_ps)
        for one in _merged(all_ops if all_ops is not None else [profile.ops for profile in profiles])
    ]
    return tuple(sorted(rows, key=lambda row: (not row.attributed, -row.total_ps, row.name, row.category)))


def kpis(profiles: Sequence[DeviceProfile], work: Sequence[WorkSums] | None = None) -> Kpis | None:
    """Means over the devices; None without a device. Devices with steps decide where some have none.

    work: sums over the operators of each device, where these were taken off the profiles.
    """
    work = [work_sums(profile) for profile in profiles] if work is None else work
    stepped = any(profile.steps for profile in profiles)
    pairs = [(profile, sums) for profile, sums in zip(profiles, work, strict=True) if profile.steps or not stepped]
    chosen = [profile for profile, _ in pairs]
    window_ps = sum(profile.window_ps for profile in chosen)
    if not window_ps:
        return None
    steps = sum(profile.steps for profile in chosen)
    means = steps or len(chosen)
    busy, talking, reducing, open_ps = (
        sum(figures)
        for figures in zip(
            *((one.busy_ps, one.communication_ps, one.all_reduce_ps, one.unattributed_ps) for one in chosen),
            strict=True,
        )
    )
    in_flight = [profile.in_flight_ps for profile in chosen if profile.in_flight_ps is not None]
    costed, goodput = _goodput([sums for _, sums in pairs], window_ps)
    return Kpis(
        devices=len(chosen),
        steps=steps,
        step_time_s=window_ps / steps / PS_PER_S if steps else None,
        window_s=window_ps / means / PS_PER_S,
        busy_s=busy / means / PS_PER_S,
        duty_cycle_frac=busy / window_ps,
        communication_s=talking / means / PS_PER_S,
        communication_frac=talking / window_ps,
        all_reduce_s=reducing / means / PS_PER_S,
        all_reduce_only_frac=reducing / window_ps,
        all_reduce_only_incomplete=talking > reducing,
        in_flight_frac=sum(in_flight) / window_ps if len(in_flight) == len(chosen) else None,
        unattributed_frac=open_ps / window_ps,
        costed_frac=costed,
        program_goodput_frac=goodput,
        basis=_basis(len(chosen), steps),
    )


def _basis(devices: int, steps: int) -> str:
    on = f"{devices} device{'s' if devices > 1 else ''}"
    if steps:
        return f"{steps} complete steps on {on}"
    return f"the whole window of {on}: the profile marks no steps"


def _goodput(work: Sequence[WorkSums], window_ps: int) -> tuple[float, float | None]:
    """(share of operator time with a stated cost, roofline time of all stated work over the window or None)."""
    own_ps = sum(sums.own_ps for sums in work)
    costed = sum(sums.costed_ps for sums in work) / own_ps if own_ps else 0.0
    roofline = [sums.roofline_ps for sums in work if sums.roofline_ps is not None]
    if costed < _MOSTLY_COSTED or len(roofline) < len(work):
        return costed, None
    return costed, sum(roofline) / window_ps


def _merged(all_ops: Iterable[Sequence[OpSum]]) -> list[_Sum]:
    found: dict[tuple[int, str, str, str], _Sum] = {}
    for ops in all_ops:
        for one in ops:
            key = (one.op.program, one.op.long_name, one.op.name, one.op.category)
            known = found.get(key)
            if known is None:
                found[key] = _Sum(one.op, one.count, one.own_ps, one.total_ps, one.cost)
            else:
                known.add(one)
    return list(found.values())


def _row(one: _Sum, peaks: Peaks, window_ps: int) -> OpRow:
    op = one.op
    attributed = op.op_class is not None
    judged = attributed and op.category not in CONTROL and one.cost is not None
    fractions = utilisations(one.cost, peaks, one.total_ps) if judged and one.cost is not None else {}
    memory = [fractions[name] for name in BOUNDS[1:] if name in fractions]
    return OpRow(
        name=op.name,
        category=op.category,
        event_class=op.op_class.event_class if op.op_class is not None else "compute",
        framework_op=op.framework_op,
        total_ps=one.own_ps,
        count=one.count,
        average_ps=one.own_ps / one.count,
        share_of_step_frac=one.own_ps / window_ps if window_ps else 0.0,
        bound=bound_of(fractions),
        roofline_efficiency_frac=max(fractions.values(), default=None),
        compute_efficiency_frac=fractions.get("compute"),
        hbm_utilisation_frac=fractions.get("hbm"),
        memory_utilisation_frac=max(memory, default=None),
        attributed=attributed,
    )


def utilisations(cost: Cost, peaks: Peaks, time_ps: int) -> dict[Bound, float]:
    """Fraction of each resource's peak that `cost` in `time_ps` uses, for the resources with a stated peak."""
    seconds = time_ps / PS_PER_S
    return {
        name: figure / seconds / limit
        for name, figure, limit in zip(BOUNDS, cost.figures(), peaks.figures(), strict=True)
        if limit is not None and seconds > 0
    }


def bound_of(fractions: dict[Bound, float]) -> Bound:
    """The resource that is used most; unknown where none is used."""
    name = max(fractions, key=lambda one: fractions[one], default=None)
    return name if name is not None and fractions[name] > 0 else "unknown"


def common_peaks(all_peaks: Sequence[Peaks]) -> Peaks:
    """Peaks that all devices state alike; one on which they differ is unknown."""
    columns = zip(*(peaks.figures() for peaks in all_peaks), strict=True)
    return Peaks(*(values[0] if len(set(values)) == 1 else None for values in columns))
