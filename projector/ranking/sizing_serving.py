"""Sizing for serving: the cheapest chips that serve a rate of requests within latency budgets."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil

from projector.breakdown import Interval, Projection
from projector.errors import InvalidDescription
from projector.project_input import sizes
from projector.ranking.records import SpaceRanking
from projector.ranking.sizing import Machine, ranked, sizing
from projector.ranking.sizing_records import Met, Sizing, SizingOption, SizingRefusal, SizingTarget
from projector.ranking.task import Task
from projector.search.menu import require_usable
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.constraints import Constraints
from projector.specs.objective import Rejection, Slo
from projector.specs.plan_batch import PlanBatch
from projector.specs.record import MOST_DEVICES
from projector.specs.workload import WorkloadSpec
from projector.units import S_PER_HOUR, s_to_ms

OBJECTIVE = "decode_throughput_tps_per_gpu"
# Engines are searched on so many chips at most; larger fleets are more of them.
MOST_ENGINE_CHIPS = 64


def size_serving(
    workload: WorkloadSpec,
    architecture: ModelArchitecture,
    target: SizingTarget,
    candidates: Sequence[Machine],
    *,
    slo: Slo | None = None,
    constraints: Constraints | None = None,
    scale_to: int | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Sizing:
    """Every machine with the plan that serves most under the budgets, all seats taken, by what an hour of it costs.

        generated tokens a second = tokens a second and chip * chips, requests a second = that / output_len

    scale_to: of each machine's plan as many engines side by side as the target needs, on up to so many chips: engines
    share nothing, so rates add up and latencies stay; of a plan with a prefill pool, which its engines share, as many
    whole fleets. None, or where more were needed: the machines as they are.
    A machine whose price is unknown is ranked by its chips apart. say: told of each machine as it is done.
    InvalidDescription for a workload that is not serving, lacks a length or states its load, a target of training, and
    constraints that contradict themselves.
    """
    limits = _checked(workload, target, constraints)
    options: list[SizingOption] = []
    refused: list[SizingRefusal] = []
    notes: dict[str, None] = {}
    for machine in candidates:
        task = Task(
            workload,
            architecture,
            ClusterSpec(chip=machine.hardware.id, chips=machine.chips),
            machine.hardware,
            limits,
            slo=slo or Slo(),
        )
        found = ranked(task, OBJECTIVE)
        if isinstance(found, str):
            refused.append(SizingRefusal(chip=machine.hardware.id, chips=machine.chips, reason=found))
            continue
        notes |= dict.fromkeys(found.notes)
        options.append(_option(machine, task, found, target, scale_to))
        say(f"{options[-1].chips} x {machine.hardware.id}: {options[-1].met}")
    kept = _best_of_equal_counts(options)
    return sizing(target, candidates, kept, refused, notes, cost_unit="USD an hour", unpriced_unit="chips")


def _best_of_equal_counts(options: Sequence[SizingOption]) -> list[SizingOption]:
    """Fleets of several sizes may take equally many chips: of these the one that serves most."""
    best: dict[tuple[str, int], SizingOption] = {}
    for option in options:
        held = best.setdefault((option.chip, option.chips), option)
        if option.tokens_per_s > held.tokens_per_s * (1 + 1e-9):
            best[option.chip, option.chips] = option
    return list(best.values())


def _checked(workload: WorkloadSpec, target: SizingTarget, constraints: Constraints | None) -> Constraints:
    if workload.phase != "serving":
        raise InvalidDescription("a sizing for serving of a training workload")
    sizes(workload, "input_len", "output_len")
    if target.of_training:
        raise InvalidDescription(
            f"{', '.join(target.of_training)} of a serving workload",
            hint="state requests_per_s or output_tokens_per_s, and latency budgets in slo",
        )
    stated = [name for name in ("concurrency", "request_rate_per_s") if getattr(workload, name) is not None]
    if stated:
        raise InvalidDescription(
            f"{', '.join(stated)}: a sizing finds the load that each machine bears", hint="state the target instead"
        )
    limits = constraints or Constraints()
    if limits.max_chips is not None:
        raise InvalidDescription("constraints.max_chips has no meaning in a sizing", hint="name the counts to compare")
    require_usable(limits, workload)
    return limits


def _option(
    machine: Machine, task: Task, found: SpaceRanking, target: SizingTarget, scale_to: int | None
) -> SizingOption:
    projection = found.ranked[0].projection
    # engines of a fleet share nothing, but for a prefill pool, whose fleets stand beside each other as they are
    parts = projection.plan.replicas if projection.plan.prefill_replicas == 0 else 1
    needed = ceil(max(_short(target, _rate(projection), task.workload) * parts * (1 - 1e-9), 1.0))
    chips, rest = divmod(machine.chips * needed, parts)
    if scale_to is None or rest or chips > min(scale_to, MOST_DEVICES):
        return _told(machine, projection, found, target, task)
    machine = replace(machine, chips=chips)
    if projection.plan.prefill_replicas:
        return _told(machine, projection, found, target, task, fleets=needed)
    plan = projection.plan.model_copy(update={"dp": projection.plan.attention_dp * needed})
    try:
        whole = task.project(PlanBatch.from_plans([plan]), ClusterSpec(chip=machine.hardware.id, chips=chips))[0]
    except InvalidDescription:
        # no link between domains is stated, and engines apart need none
        one = PlanBatch.from_plans([plan.model_copy(update={"dp": plan.attention_dp})])
        engine = task.project(one, ClusterSpec(chip=machine.hardware.id, chips=chips // needed))[0]
        return _told(machine, engine, found, target, task, fleets=needed)
    return _told(machine, whole, found, target, task)


def _rate(projection: Projection) -> float:
    """Generated tokens a second of the whole fleet."""
    assert projection.decode_tokens_per_s_per_chip is not None, "a ranked serving plan has a rate"
    return projection.decode_tokens_per_s_per_chip * projection.chips


def _short(target: SizingTarget, tokens_per_s: float, workload: WorkloadSpec) -> float:
    """How many times this rate the target is."""
    (output_len,) = sizes(workload, "output_len")
    wanted = max(target.output_tokens_per_s or 0.0, (target.requests_per_s or 0.0) * output_len)
    return wanted / tokens_per_s


def _told(
    machine: Machine,
    projection: Projection,
    found: SpaceRanking,
    target: SizingTarget,
    task: Task,
    *,
    fleets: int = 1,
) -> SizingOption:
    rate, interval = fleets * _rate(projection), projection.step_time_interval_s
    slow, fast = rate * projection.step_time_s / interval.high, rate * projection.step_time_s / interval.low
    (output_len,) = sizes(task.workload, "output_len")
    hourly_usd, misses = machine.hourly_usd, _misses(target, rate, output_len)
    late = _misses(target, slow, output_len) or _slow_tokens(task.slo, interval)
    met: Met = "no" if misses else "as_projected" if late else "with_margin"
    return SizingOption(
        rank=None,
        chip=machine.hardware.id,
        chips=machine.chips,
        met=met,
        misses=misses,
        tokens_per_s=rate,
        tokens_per_s_interval=Interval(low=slow, high=fast, basis=interval.basis),
        hourly_usd=hourly_usd,
        run_days=None,
        run_usd=None,
        run_chip_hours=None,
        requests_per_s=rate / output_len,
        usd_per_million_tokens=None if hourly_usd is None else hourly_usd / S_PER_HOUR / rate * 1e6,
        fleets=fleets,
        candidates_considered=found.candidates_considered,
        projection=projection,
    )


def _slow_tokens(slo: Slo, interval: Interval) -> bool:
    """Whether the slow end of the interval, which is one of the mean decode step, passes the budget of it."""
    return slo.tpot_ms is not None and s_to_ms(interval.high) > slo.tpot_ms


def _misses(target: SizingTarget, tokens_per_s: float, output_len: int) -> tuple[Rejection, ...]:
    limits = (
        ("requests_per_s", "requests", tokens_per_s / output_len, target.requests_per_s, "requests/s"),
        ("output_tokens_per_s", "generated tokens", tokens_per_s, target.output_tokens_per_s, "tokens/s"),
    )
    return tuple(
        Rejection(rule=rule, quantity=quantity, value=value, limit=limit, unit=unit, comparison="<")
        for rule, quantity, value, limit, unit in limits
        if limit is not None and value < limit * (1 - 1e-9)
    )
