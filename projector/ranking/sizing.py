"""Sizing: the cheapest chip and count that meet a target, each with its fastest plan that fits."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from projector.breakdown import Interval
from projector.errors import InvalidDescription
from projector.project_input import sizes
from projector.ranking.pareto import pareto_rows
from projector.ranking.rank import rank_space
from projector.ranking.records import SpaceRanking
from projector.ranking.sizing_records import (
    ChipCounts,
    CostPoint,
    Met,
    Sizing,
    SizingOption,
    SizingRefusal,
    SizingTarget,
)
from projector.ranking.task import Stack, Task, within
from projector.ranking.ties import shared_ranks
from projector.search.menu import require_usable
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.constraints import Constraints
from projector.specs.hardware import Figure, HardwareProfile
from projector.specs.objective import Rejection
from projector.specs.workload import WorkloadSpec
from projector.units import S_PER_DAY, S_PER_HOUR

# A machine is compared by its best plan alone, so its space may be narrowed long before a ranking's would be.
MOST_PLANS_A_MACHINE = 20_000
MOST_MACHINES = 500
OBJECTIVE = "tokens_per_s_per_chip"


@dataclass(frozen=True)
class Machine:
    """Some chips, and what one costs."""

    hardware: HardwareProfile
    chips: int

    @property
    def hourly_usd(self) -> float | None:
        """Price of an hour of all of them; None where it is unknown."""
        price = self.hardware.price_usd_per_chip_hour
        return None if price is None else price.value * self.chips


def powers_of_two(most: int) -> tuple[int, ...]:
    """1, 2, 4 ... up to `most`: parts of a node, then nodes, or slices of a torus."""
    return tuple(2**power for power in range(most.bit_length()))


def machines(
    counts: Sequence[ChipCounts], prices_usd: Mapping[str, float], chip: Callable[[str], HardwareProfile]
) -> tuple[Machine, ...]:
    """The machines to compare, each once, with stated prices (by any name of a chip) in place of those of the files.

    UnknownName for a chip nobody knows; InvalidDescription for too many machines, a price that is none, or one of a
    chip that is no candidate.
    """
    stated = {chip(name).id: _price(name, value) for name, value in prices_usd.items()}
    found: dict[tuple[str, int], Machine] = {}
    for entry in counts:
        hardware = chip(entry.chip)
        if hardware.id in stated:
            hardware = hardware.model_copy(update={"price_usd_per_chip_hour": stated[hardware.id]})
        for count in entry.chips:
            found.setdefault((hardware.id, count), Machine(hardware, count))
    if idle := set(stated) - {name for name, _ in found}:
        raise InvalidDescription(f"a price of {', '.join(sorted(idle))}, which is no candidate")
    if len(found) > MOST_MACHINES:
        raise InvalidDescription(
            f"{len(found)} machines to compare, at most {MOST_MACHINES}", hint="name fewer chips or counts"
        )
    return tuple(found.values())


def size(
    workload: WorkloadSpec,
    architecture: ModelArchitecture,
    target: SizingTarget,
    candidates: Sequence[Machine],
    *,
    constraints: Constraints | None = None,
    stack: Stack | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Sizing:
    """Every machine with its fastest plan that fits, by cost: USD of training budget_tokens, else USD an hour.

        tokens a second = tokens of a step / step time
        days = budget_tokens / tokens a second / 86400, cost = days 24 chips price

    The same tokens a step on every machine, so that what is trained is the same. A machine whose price is unknown is
    ranked by chip-hours apart. say: told of each chip as it is done.
    InvalidDescription for a workload that is not training or lacks a size, and constraints that contradict themselves.
    """
    if workload.phase != "training":
        raise InvalidDescription("a sizing for training of a serving workload")
    if target.of_serving:
        raise InvalidDescription(
            f"{', '.join(target.of_serving)} of a training workload",
            hint="give input_len and output_len to size serving",
        )
    sizes(workload, "seq_len", "global_batch")
    limits = constraints or Constraints()
    if limits.max_chips is not None:
        raise InvalidDescription("constraints.max_chips has no meaning in a sizing", hint="name the counts to compare")
    require_usable(limits if stack is None else within(limits, stack), workload)
    options: list[SizingOption] = []
    refused: list[SizingRefusal] = []
    notes: dict[str, None] = {}
    for machine in candidates:
        cluster = ClusterSpec(chip=machine.hardware.id, chips=machine.chips)
        found = ranked(Task(workload, architecture, cluster, machine.hardware, limits, stack=stack))
        if isinstance(found, str):
            refused.append(SizingRefusal(chip=machine.hardware.id, chips=machine.chips, reason=found))
            continue
        notes |= dict.fromkeys(found.notes)
        options.append(_option(machine, found, target))
        say(f"{machine.chips} x {machine.hardware.id}: {options[-1].met}")
    run = target.budget_tokens is not None
    return sizing(
        target,
        candidates,
        options,
        refused,
        notes,
        cost_unit="USD of the run" if run else "USD an hour",
        unpriced_unit="chip-hours of the run" if run else "chips",
    )


def sizing(
    target: SizingTarget,
    candidates: Sequence[Machine],
    options: Sequence[SizingOption],
    refused: Sequence[SizingRefusal],
    notes: Iterable[str],
    *,
    cost_unit: str,
    unpriced_unit: str,
) -> Sizing:
    """Options by cost, those with a price and those without apart, with the Pareto set of the priced ones."""
    priced = [option for option in options if option.hourly_usd is not None]
    unpriced = [option for option in options if option.hourly_usd is None]
    return Sizing(
        target=target,
        cost_unit=cost_unit,
        options=_by_cost(priced),
        unpriced=_by_cost(unpriced),
        unpriced_unit=unpriced_unit,
        pareto=_pareto(priced or unpriced),
        refused=tuple(refused),
        notes=(*notes, *_price_notes(candidates, unpriced)),
    )


def _price(name: str, value: float) -> Figure:
    if not 0 < value < np.inf:
        raise InvalidDescription(f"a price of {value} USD an hour for {name}")
    return Figure(value=value, source="stated in the request", retrieved="")


def ranked(task: Task, objective: str = OBJECTIVE) -> SpaceRanking | str:
    """The ranking of a machine's space; why it has no plan."""
    try:
        found = rank_space(task, objective=objective, top=1, most=MOST_PLANS_A_MACHINE)
    except InvalidDescription as error:
        return error.message
    if found.ranked:
        return found
    miss = found.nearest_miss
    over = "" if miss is None else "; the nearest fails on " + "; ".join(one.text for one in miss.rejections)
    return found.why_none + over


def _option(machine: Machine, found: SpaceRanking, target: SizingTarget) -> SizingOption:
    projection = found.ranked[0].projection
    assert projection.tokens_per_s_per_chip is not None, "a training projection has a rate"
    rate = projection.tokens_per_s_per_chip * machine.chips
    interval = projection.step_time_interval_s
    slow, fast = rate * projection.step_time_s / interval.high, rate * projection.step_time_s / interval.low
    hourly_usd, budget = machine.hourly_usd, target.budget_tokens
    run_s = None if budget is None else budget / rate
    run_usd = None if run_s is None or hourly_usd is None else hourly_usd * run_s / S_PER_HOUR
    misses = _misses(target, projection.step_time_s, rate, hourly_usd)
    late = _misses(target, interval.high, slow, hourly_usd)
    unchecked = target.cost_usd is not None and hourly_usd is None
    met: Met = "no" if misses else "unknown" if unchecked else "as_projected" if late else "with_margin"
    return SizingOption(
        rank=None,
        chip=machine.hardware.id,
        chips=machine.chips,
        met=met,
        misses=misses,
        tokens_per_s=rate,
        tokens_per_s_interval=Interval(low=slow, high=fast, basis=interval.basis),
        hourly_usd=hourly_usd,
        run_days=None if run_s is None else run_s / S_PER_DAY,
        run_usd=run_usd,
        run_chip_hours=None if run_s is None else run_s / S_PER_HOUR * machine.chips,
        candidates_considered=found.candidates_considered,
        projection=projection,
    )


def _misses(
    target: SizingTarget, step_time_s: float, tokens_per_s: float, hourly_usd: float | None
) -> tuple[Rejection, ...]:
    """Limits of the target that these figures do not keep; one on cost is not looked at where the price is unknown."""
    found = []
    if target.tokens_per_s is not None and tokens_per_s < target.tokens_per_s:
        found.append(
            Rejection(
                rule="tokens_per_s",
                quantity="trained tokens",
                value=tokens_per_s,
                limit=target.tokens_per_s,
                unit="tokens/s",
                comparison="<",
            )
        )
    limits = [("step_time_s", "step time", step_time_s, target.step_time_s, "s")]
    if target.budget_tokens is not None:
        run_s = target.budget_tokens / tokens_per_s
        limits.append(("days", "training", run_s / S_PER_DAY, target.days, "days"))
        if hourly_usd is not None:
            limits.append(("cost_usd", "cost of the run", hourly_usd * run_s / S_PER_HOUR, target.cost_usd, "USD"))
    found += [
        Rejection(rule=rule, quantity=quantity, value=value, limit=limit, unit=unit)
        for rule, quantity, value, limit, unit in limits
        if limit is not None and value > limit
    ]
    return tuple(found)


def _cost(option: SizingOption) -> float:
    """What an option is ranked by: USD of the run or an hour; without a price chip-hours of the run, or chips."""
    if option.hourly_usd is not None:
        return option.hourly_usd if option.run_usd is None else option.run_usd
    return float(option.chips) if option.run_chip_hours is None else option.run_chip_hours


def _by_cost(options: Sequence[SizingOption]) -> tuple[SizingOption, ...]:
    meeting = [option for option in options if option.met != "no"]
    ranks = shared_ranks(1 / np.array([_cost(option) for option in meeting])).tolist()
    ranked = [option.model_copy(update={"rank": rank}) for option, rank in zip(meeting, ranks, strict=True)]
    ranked.sort(key=lambda one: (one.rank, one.chips, one.projection.step_time_s, one.chip))
    missing = [option for option in options if option.met == "no"]
    missing.sort(key=lambda one: (_overshoot(one), one.chips, one.chip))
    return (*ranked, *missing)


def _overshoot(option: SizingOption) -> float:
    return max(max(miss.value / miss.limit, miss.limit / miss.value) for miss in option.misses)


def _pareto(options: Sequence[SizingOption]) -> tuple[CostPoint, ...]:
    if not options:
        return ()
    losses = np.array([(option.projection.step_time_s, _cost(option)) for option in options])
    return tuple(
        CostPoint(
            chip=options[row].chip,
            chips=options[row].chips,
            step_time_s=options[row].projection.step_time_s,
            cost=_cost(options[row]),
            met=options[row].met,
        )
        for row in pareto_rows(losses).tolist()
    )


def _price_notes(candidates: Sequence[Machine], unpriced: Sequence[SizingOption]) -> tuple[str, ...]:
    """Where prices come from, and whose is unknown."""
    found: dict[str, None] = {}
    for machine in candidates:
        price = machine.hardware.price_usd_per_chip_hour
        if price is not None:
            found[f"{machine.hardware.id}: {price.value:g} USD a chip and hour, {price.source}"] = None
    names = sorted({option.chip for option in unpriced})
    if names:
        text = f"the price of {', '.join(names)} is unknown: ranked by chip-hours, which do not compare between chips"
        found[text] = None
    return tuple(found)
