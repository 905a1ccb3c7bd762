"""`shardwise rank` and `shardwise size` for people."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from agents.causes import CAUSE_PHRASE
from agents.planning.plan_text import plan_text as layout_text
from app import wording
from app.schemas_ranking import RankRequest, SizeRequest
from app.tables_parts import LEFT, RIGHT, bullet, bullets, console, heading, paragraph, section, table
from app.wording import change, ms, number, percent, plain, words
from projector.breakdown import Projection
from projector.ranking.records import ObjectiveValue, ParetoSet, RankedPlan, ReliefRanking, SpaceRanking
from projector.ranking.sizing_records import Sizing, SizingOption
from projector.specs.objective import named_objective
from projector.specs.plan import ParallelismPlan

# headers that fit beside each other; other objectives go by their name and unit
LABELS = {
    "tokens_per_s_per_chip": "tokens/s/chip",
    "step_time_s": "step [s]",
    "mfu": "MFU",
    "memory_per_chip_gb": "memory [GB]",
    "cost_per_million_tokens": "USD/M tokens",
    "energy_per_token_j": "J/token",
    "decode_throughput_tps_per_gpu": "decode tokens/s/chip",
    "total_throughput_tps_per_gpu": "all tokens/s/chip",
    "ttft_ms": "TTFT [ms]",
    "itl_ms": "TPOT [ms]",
    "request_latency_ms": "request [ms]",
}


SHORT = {"decode_throughput_tps_per_gpu": "tokens/s/chip", "memory_per_chip_gb": "GB", "request_latency_ms": "E2E [ms]"}
# what is shown of serving plans beside the objective
SERVED = ("decode_throughput_tps_per_gpu", "ttft_ms", "itl_ms", "request_latency_ms", "memory_per_chip_gb")


def show_ranking(ranking: SpaceRanking, request: RankRequest) -> None:
    """The best layouts, the Pareto set, what relieves a cause, and what bounds it all."""
    out = console()
    model = request.workload.model or (request.architecture.name if request.architecture else wording.UNKNOWN)
    heading(out, f"{plain(model)} on {request.cluster.chips} x {request.cluster.chip}, by {ranking.objective.name}")
    paragraph(
        out,
        f"{ranking.candidates_considered:,} plans considered, {ranking.candidates_feasible:,} feasible, "
        f"{ranking.layouts_count:,} layouts; {ranking.leading_count:,} share the first rank, as they lie within "
        f"{percent(ranking.tie_frac)} of the best",
    )
    if ranking.why_none:
        paragraph(out, ranking.why_none)
    if ranking.current is not None:
        now, cannot = ranking.current, "; ".join(one.text for one in ranking.current.rejections)
        paragraph(out, f"Current plan: {wording.plan_text(now.plan)}, {ms(now.step_time_s)} ms")
        if cannot:
            paragraph(out, f"It would not be ranked itself: {cannot}")
    if ranking.ranked:
        section(out, f"Layouts, best first ({ranking.ranked[0].projection.step_time_interval_s.basis})")
        _show_ranked(out, ranking.ranked, ranking.objective.name)
    if ranking.relief is not None:
        _show_relief(out, ranking.relief)
    if ranking.pareto is not None:
        _show_pareto(out, ranking.pareto)
    if ranking.nearest_miss is not None:
        miss = ranking.nearest_miss
        section(out, "Nearest miss")
        paragraph(out, f"{wording.plan_text(miss.plan)}: {wording.verdict(miss)}")
    assumptions = ranking.ranked[0].projection.assumptions if ranking.ranked else ()
    bullets(out, "Assumptions", (*ranking.assumptions, *assumptions))
    bullets(out, "Unknown", [one.reason for one in ranking.unknown])
    bullets(out, "What bounds the search", ranking.notes)


def show_sizing(sizing: Sizing, request: SizeRequest) -> None:
    """Machines by cost, those without a price apart, cost against time, and what has no plan."""
    out = console()
    model = request.workload.model or (request.architecture.name if request.architecture else wording.UNKNOWN)
    heading(out, f"{plain(model)}: machines by {sizing.cost_unit}")
    if sizing.options:
        section(out, "Machines with a price")
        out.print(_options_table(sizing.options))
    if sizing.unpriced:
        section(out, f"Machines without a price, by {sizing.unpriced_unit}")
        out.print(_options_table(sizing.unpriced))
    if not any(one.rank == 1 for one in (*sizing.options, *sizing.unpriced)):
        paragraph(out, "No machine meets the target.")
    for one in (*sizing.options, *sizing.unpriced):
        if one.rank == 1:
            _show_machine(out, one)
    if sizing.pareto:
        unit = sizing.cost_unit if sizing.options else sizing.unpriced_unit
        section(out, "Nothing is both faster and cheaper than these")
        rows = [(f"{p.chips} x {p.chip}", ms(p.step_time_s), number(p.cost), words(p.met)) for p in sizing.pareto]
        out.print(table(("chips", "step [ms]", unit, "target met"), rows, (LEFT, RIGHT, RIGHT, LEFT)))
    bullets(out, "No plan", [f"{one.chips} x {one.chip}: {one.reason}" for one in sizing.refused])
    bullets(out, "Notes", sizing.notes)


def _show_ranked(out: Console, plans: Sequence[RankedPlan], by: str) -> None:
    if plans[0].projection.plan.phase == "serving":
        _show_served(out, plans, by)
        return
    shown = {*LABELS, by} - {"step_time_s"}
    names = [figure.objective for figure in plans[0].figures if figure.objective in shown]
    rows = [
        (
            str(entry.rank),
            layout_text(entry.projection.plan),
            ms(entry.projection.step_time_s),
            _range(entry.projection),
            *_values(entry.figures, names),
            change(-entry.behind_frac) if entry.behind_frac else "",
            "" if entry.gain_frac is None else change(entry.gain_frac),
        )
        for entry in plans
    ]
    headers = ("rank", "layout", "step [ms]", "range [ms]", *map(_label, names), "to best", "gain")
    out.print(table(headers, rows, (RIGHT, LEFT, RIGHT, RIGHT, *(RIGHT,) * len(names), RIGHT, RIGHT)))
    bullets(out, "The plans of these layouts, in this order", [wording.plan_text(one.projection.plan) for one in plans])


def _show_served(out: Console, plans: Sequence[RankedPlan], by: str) -> None:
    """Serving plans: what users feel, and what each keeps of its tightest limit."""
    known = {figure.objective for figure in plans[0].figures}
    names = [name for name in dict.fromkeys((by, *SERVED)) if name in known]
    rows = [
        (
            str(entry.rank),
            fleet_text(entry.projection.plan),
            *_values(entry.figures, names),
            _tightest(entry),
            change(-entry.behind_frac) if entry.behind_frac else "",
            "" if entry.gain_frac is None else change(entry.gain_frac),
        )
        for entry in plans
    ]
    headers = ("rank", "layout", *(SHORT.get(name, _label(name)) for name in names), "left of", "to best", "gain")
    out.print(table(headers, rows, (RIGHT, LEFT, *(RIGHT,) * len(names), LEFT, RIGHT, RIGHT)))
    bullets(out, "The plans of these layouts, in this order", [wording.plan_text(one.projection.plan) for one in plans])
    best = [f"{one.quantity}: {one.value:.4g} of {one.limit:.4g} {one.unit}" for one in plans[0].margins]
    bullets(out, "What the first keeps", best)


def _tightest(entry: RankedPlan) -> str:
    return f"{entry.margins[0].quantity.split(' ')[0]} {percent(entry.margins[0].margin_frac)}" if entry.margins else ""


def fleet_text(plan: ParallelismPlan) -> str:
    """Engines and their layout: "2 x tp4", "1 x adp8 ep8", "3 x tp8 + 1 x tp8 prefill"."""
    engines = f"{plan.replicas} x {_degrees(plan, '')}"
    pool = f" + {plan.prefill_replicas} x {_degrees(plan, 'prefill_')} prefill" if plan.prefill_replicas else ""
    return engines + pool


def _degrees(plan: ParallelismPlan, pool: str) -> str:
    named = (("tp", "tp"), ("pp", "pp"), ("attention_dp", "adp"), ("ep", "ep"))
    above = [f"{short}{degree}" for name, short in named if (degree := getattr(plan, pool + name)) > 1]
    return " ".join(above) or "1 device"


def _show_relief(out: Console, relief: ReliefRanking) -> None:
    of = "its bytes" if relief.cause == "hbm_capacity" else "the current step"
    section(out, f"What relieves {CAUSE_PHRASE[relief.cause]} ({percent(relief.share_frac)} of {of})")
    if not relief.plans:
        paragraph(out, "No layout that is no slower saves any of it.")
        return
    rows = [
        (
            str(entry.rank),
            layout_text(entry.projection.plan),
            percent(entry.saved_frac),
            ms(entry.projection.step_time_s),
            "" if entry.gain_frac is None else change(entry.gain_frac),
        )
        for entry in relief.plans
    ]
    headers = ("rank", "layout", f"saved, of {of}", "step [ms]", "gain")
    out.print(table(headers, rows, (RIGHT, LEFT, RIGHT, RIGHT, RIGHT)))


def _show_pareto(out: Console, pareto: ParetoSet) -> None:
    section(out, f"Pareto set: {len(pareto.plans)} of {pareto.members_count} members, which the others come close to")
    rows = [(wording.plan_text(entry.plan), *_values(entry.figures, pareto.objectives)) for entry in pareto.plans]
    out.print(table(("plan", *map(_label, pareto.objectives)), rows, (LEFT, *(RIGHT,) * len(pareto.objectives))))


def _options_table(options: Sequence[SizingOption]) -> Table:
    if any(one.requests_per_s is not None for one in options):
        return _fleets_table(options)
    rows = [
        (
            "" if one.rank is None else str(one.rank),
            f"{one.chips} x {one.chip}",
            layout_text(one.projection.plan),
            number(one.tokens_per_s),
            number(one.hourly_usd),
            number(one.run_days),
            number(one.run_usd),
            number(one.run_chip_hours),
            words(one.met) if not one.misses else "; ".join(miss.text for miss in one.misses),
        )
        for one in options
    ]
    headers = ("rank", "chips", "layout", "tokens/s", "USD/h", "days", "USD", "chip-hours", "target met")
    return table(headers, rows, (RIGHT, LEFT, LEFT, *(RIGHT,) * 5, LEFT))


def _fleets_table(options: Sequence[SizingOption]) -> Table:
    rows = [
        (
            "" if one.rank is None else str(one.rank),
            f"{one.chips} x {one.chip}",
            (f"{one.fleets} of " if one.fleets > 1 else "") + fleet_text(one.projection.plan),
            number(one.tokens_per_s),
            number(one.requests_per_s),
            _ms_or_unknown(one.projection.ttft_s),
            _ms_or_unknown(one.projection.tpot_s),
            number(one.hourly_usd),
            number(one.usd_per_million_tokens),
            words(one.met) if not one.misses else "; ".join(miss.text for miss in one.misses),
        )
        for one in options
    ]
    headers = ("rank", "chips", "layout", "tokens/s", "requests/s", "TTFT [ms]", "TPOT [ms]", "USD/h", "USD/M", "met")
    return table(headers, rows, (RIGHT, LEFT, LEFT, *(RIGHT,) * 6, LEFT))


def _ms_or_unknown(seconds: float | None) -> str:
    return wording.UNKNOWN if seconds is None else ms(seconds)


def _show_machine(out: Console, option: SizingOption) -> None:
    interval = option.tokens_per_s_interval
    section(out, f"{option.chips} x {option.chip}")
    paragraph(out, wording.plan_text(option.projection.plan))
    paragraph(out, f"{number(interval.low)} to {number(interval.high)} tokens/s: {interval.basis}")
    for text in option.projection.assumptions:
        bullet(out, text)


def _label(name: str) -> str:
    """A short header, or the name with its unit."""
    return LABELS.get(name) or f"{name} [{named_objective(name).unit}]"


def _range(projection: Projection) -> str:
    interval = projection.step_time_interval_s
    return f"{ms(interval.low)} to {ms(interval.high)}"


def _values(figures: Sequence[ObjectiveValue], names: Sequence[str]) -> list[str]:
    """The named figures in their units; "unknown" for one that a plan has not."""
    known = {figure.objective: figure.value for figure in figures}
    return [number(known.get(name)) for name in names]
