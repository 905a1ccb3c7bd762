"""Tables for people, on stdout: units in the headers, untrusted text made plain and never read as markup."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from agents.findings import Assumption, Diagnosis, PlanResult, Proposal
from agents.kernel_tables.tables import SecondOpinion, Untabled
from app import wording
from app.history_tables import show_history
from app.schemas import DiagnoseAnswer, ProjectAnswer, TraceHeadline
from app.tables_advisor import show_advice
from app.tables_diagnosis import show_categories, show_collective_shares, show_headroom, show_hypothesis
from app.tables_job import show_copies, show_idle, show_links, show_ranks, show_serving, show_work
from app.tables_parts import LEFT, RIGHT, bullet, bullets, console, heading, paragraph, section, table
from app.tables_patterns import show_patterns, show_unknown_patterns
from app.tables_proposal import trail_table
from app.tables_remedies import show_asks, show_remedies
from app.wording import change, ms, ns_as_ms, number, percent, plain, words
from projector.breakdown import AxisLink, Projection, TimeBreakdown
from projector.units import bytes_to_gb
from traces.summary_types import TimeShares

MAX_FIGURES = 4  # as many as fit the width; the document has them all
KERNEL_CHARACTERS = 60

ALONE = "the cost model alone: idle time that only the trace shows is not in it"
CORRECTED = "on the own chip corrected by the trace, on others the cost model alone"


def show_diagnosis(answer: DiagnoseAnswer) -> None:
    """`shardwise diagnose`."""
    out = console()
    heading(out, wording.headline(answer.bottleneck, answer.cause))
    paragraph(out, answer.summary)
    paragraph(out, _certainty(answer.margin, answer.ambiguous))
    show_hypothesis(out, answer.hypothesis_basis, answer.overturned_by)
    section(out, f"Window: {plain(answer.window.name)}, {plain(answer.format)}, ranks {len(answer.ranks)}")
    out.print(_window_table(answer))
    if len(answer.ranks) > 1:
        show_ranks(out, answer.ranks, answer.job)
    show_idle(out, answer.idle, answer.idle_ns)
    show_categories(out, answer.categories, answer.categories_cover_frac)
    show_headroom(out, answer.headroom, answer.capacity)
    section(out, "Evidence")
    rows = [(e.id, plain(e.claim), wording.figure(e.value, e.unit), e.source) for e in answer.evidence]
    out.print(table(("id", "claim", "value", "source"), rows, (LEFT, LEFT, RIGHT, LEFT)))
    if answer.collectives:
        section(out, "Collectives")
        collective_rows = [
            (
                plain(c.collective),
                plain(c.group),
                _count(c.group_size),
                c.axis,
                _count(c.count),
                ns_as_ms(c.total_ns),
                ns_as_ms(c.exposed_ns),
            )
            for c in answer.collectives
        ]
        headers = ("collective", "group", "size", "axis", "count", "sum [ms]", "exposed [ms]")
        out.print(table(headers, collective_rows, (LEFT, LEFT, RIGHT, LEFT, RIGHT, RIGHT, RIGHT)))
    show_collective_shares(out, answer.collective_shares)
    show_patterns(out, answer.patterns)
    show_links(out, answer.links, answer.lateness, answer.job)
    show_copies(out, answer.copies)
    show_serving(out, answer.serving_phases)
    show_work(out, answer.work)
    section(out, "Costliest kernels")
    kernel_rows = [(_short(k.name), k.kind, _count(k.count), ns_as_ms(k.total_ns)) for k in answer.top_kernels[:10]]
    out.print(table(("name", "kind", "count", "sum [ms]"), kernel_rows, (LEFT, LEFT, RIGHT, RIGHT)))
    bullets(out, "What this cannot say", answer.limits)
    show_unknown_patterns(out, answer.patterns_unknown)
    bullets(out, "Warnings", answer.warnings)


def show_plan(result: PlanResult, trace: TraceHeadline | None) -> None:
    """`shardwise plan` and `shardwise demo`."""
    out = console()
    _show_verdict(out, result.diagnosis)
    if trace is not None:
        section(out, f"Window: {plain(trace.window.name)}, device {plain(trace.chip or wording.UNKNOWN)}")
        out.print(_window_table(trace))
        show_patterns(out, trace.patterns)
    if result.current is not None:
        paragraph(out, f"Current plan: {wording.plan_text(result.current.plan)}")
    corrected = [item for item in result.evidence if item.id.startswith("ev-anchor-")]
    bullets(out, "What corrects the projections", [f"{item.claim} [{item.source}, {item.id}]" for item in corrected])
    show_remedies(out, result.remedies, first=True)
    considered = f"{result.candidates_considered:,} plans considered, {result.candidates_feasible:,} feasible"
    section(out, f"{len(result.proposals)} proposals ({considered})")
    for reason in (result.not_plannable, result.fewer_because):
        if reason is not None:
            paragraph(out, reason)
    if result.proposals:
        out.print(_proposal_table(result.proposals))
        for proposal in result.proposals:
            _show_proposal(out, proposal)
        section(out, f"Projected performance ({CORRECTED if corrected else ALONE})")
        out.print(_projection_table(result))
    show_advice(out, result.provenance, result.proposals)
    show_remedies(out, result.remedies, first=False)
    show_asks(out, result.asks)
    show_history(out, result.history)
    bullets(out, "What the diagnosis cannot say", result.diagnosis.limits)
    bullets(out, "Assumptions", [_assumption(item) for item in result.assumptions])
    misses = (
        f"{wording.plan_text(miss.plan)}: {'; '.join(rejection.text for rejection in miss.rejections)}"
        for miss in result.near_misses
    )
    bullets(out, "Nearest misses", tuple(misses))
    bullets(out, "Warnings", tuple(dict.fromkeys(result.warnings + (trace.warnings if trace else ()))))


def show_projection(answer: ProjectAnswer) -> None:
    """`shardwise project`."""
    out = console()
    cluster = answer.cluster
    heading(out, f"{plain(answer.workload.model or wording.UNKNOWN)} on {cluster.chips} x {cluster.chip}")
    paragraph(out, f"Plan: {wording.plan_text(answer.plan)}")
    if answer.projection is None:
        bullets(out, "The plan is not legal", [rejection.text for rejection in answer.illegal])
        return
    projection = answer.projection
    interval = projection.step_time_interval_s
    section(out, "Projection")
    rows = [
        ("step time [ms]", ms(projection.step_time_s)),
        ("range [ms]", f"{ms(interval.low)} to {ms(interval.high)}"),
        *wording.figures(projection),
        ("memory of the fullest device [GB]", wording.memory_text(projection)),
        ("verdict", plain(wording.verdict(projection))),
    ]
    out.print(table(("figure", "value"), rows, (LEFT, RIGHT)))
    paragraph(out, f"range: {plain(interval.basis)}")
    section(out, "Where a step goes")
    out.print(breakdown_table(projection.breakdown))
    if projection.links:
        section(out, "Which links each axis crosses")
        out.print(_links_table(projection.links))
    if answer.second_opinion is not None:
        _show_second_opinion(out, answer.second_opinion)
    bullets(out, "Assumptions", projection.assumptions)


def _show_second_opinion(out: Console, opinion: SecondOpinion | Untabled) -> None:
    section(out, "By measured kernels")
    if isinstance(opinion, Untabled):
        paragraph(out, f"None: {plain(opinion.reason)}")
        return
    paragraph(out, f"{plain(opinion.tables)}: {plain(opinion.basis)}.")
    rows = [
        ("decode step [ms]", f"{opinion.decode_step_ms:.2f} ({opinion.decode_ratio:.2f} times the projected)"),
        ("step with a prompt's chunk [ms]", f"{opinion.mixed_step_ms:.2f} ({opinion.mixed_ratio:.2f} times)"),
        ("TPOT [ms]", f"{opinion.tpot_ms:.2f}"),
        ("TTFT [ms]", f"{opinion.ttft_ms:.1f}"),
    ]
    out.print(table(("figure", "value"), rows, (LEFT, RIGHT)))


def _show_verdict(out: Console, diagnosis: Diagnosis) -> None:
    heading(out, wording.headline(diagnosis.bottleneck, diagnosis.cause))
    paragraph(out, diagnosis.summary)
    of_what = "the weight of all signs" if diagnosis.source == "stated" else "the window"
    paragraph(out, _certainty(diagnosis.margin, diagnosis.ambiguous, of_what))
    show_hypothesis(out, diagnosis.hypothesis_basis, diagnosis.overturned_by)
    for item in diagnosis.evidence:
        bullet(out, f"{item.claim} [{item.source}, {item.id}]")
    show_categories(out, diagnosis.categories, diagnosis.categories_cover_frac)
    show_collective_shares(out, diagnosis.collectives)
    show_headroom(out, diagnosis.headroom, diagnosis.capacity)


def _show_proposal(out: Console, proposal: Proposal) -> None:
    section(out, f"#{proposal.rank} {plain(proposal.title)}")
    paragraph(out, wording.plan_text(proposal.plan))
    if proposal.changes:
        paragraph(out, f"It {wording.aim_text(proposal)}.")
    paragraph(out, proposal.rationale)
    for changes, why in wording.grouped_changes(proposal.changes):
        bullet(out, f"{', '.join(f'{c.field} {c.before} -> {c.after}' for c in changes)}: {why}")
    if proposal.trail:
        out.print(trail_table(proposal.trail))
    for text in (proposal.trail_note, *(place.text for place in proposal.links)):
        if text:
            bullet(out, text)
    for loss in proposal.worse:
        bullet(out, f"worse: {loss.text}")
    if proposal.experiment is not None:
        paragraph(out, f"Test: {proposal.experiment.text}")
        paragraph(out, proposal.stop_condition)
    if proposal.adoption:
        paragraph(out, f"Adoption by {proposal.adoption_effort}: {proposal.adoption}")
    paragraph(out, f"Confidence {percent(proposal.confidence)}: {proposal.confidence_basis}")
    for risk in proposal.risks:
        bullet(out, f"risk: {risk}")
    for citation in proposal.citations:
        bullet(out, f"see: {citation.title} [{'; '.join((citation.chunk_id, *citation.caveats))}]")
        for source in citation.sources:
            paragraph(out, source, indent="      ")


def _window_table(shares: TimeShares) -> Table:
    def row(label: str, time_ns: int) -> tuple[str, str, str]:
        share = percent(time_ns / shares.window_ns) if shares.window_ns else wording.UNKNOWN
        return label, ns_as_ms(time_ns), share

    rows = [
        row("compute", shares.compute_ns),
        row("exposed communication", shares.exposed_communication_ns),
        row("exposed copies", shares.exposed_copy_ns),
        row("idle", shares.idle_ns),
        row("= window", shares.window_ns),
        row("communication, all of it", shares.communication_ns),
        row("copies, all of them", shares.copy_ns),
        row("unclassified, part of compute", shares.unclassified_ns),
    ]
    return table(("part", "time [ms]", "of the window"), rows, (LEFT, RIGHT, RIGHT))


def breakdown_table(breakdown: TimeBreakdown) -> Table:
    """The parts of a step, then what they are made of."""

    def row(label: str, time_s: float | None) -> tuple[str, str, str]:
        share = None if time_s is None or breakdown.total_s == 0 else time_s / breakdown.total_s
        return label, ms(time_s), percent(share)

    rows = [
        row("compute", breakdown.compute_s),
        row("exposed communication", breakdown.exposed_communication_s),
        row("exposed copies", breakdown.exposed_copy_s),
        row("idle", breakdown.idle_s),
        row("= step", breakdown.total_s),
        row("hidden communication", breakdown.overlapped_communication_s),
        row("pipeline bubble, part of idle", breakdown.bubble_s),
        *(row(f"{words(part.kind)}, part of compute", part.time_s) for part in breakdown.by_kind),
        *(row(f"{part.axis} communication, all of it", part.total_s) for part in breakdown.by_axis),
    ]
    return table(("part", "time [ms]", "of the step"), rows, (LEFT, RIGHT, RIGHT))


def _links_table(links: Sequence[AxisLink]) -> Table:
    rows = [
        (
            link.axis,
            str(link.group_size),
            link.tier,
            str(link.ranks_per_domain),
            number(bytes_to_gb(link.one_way_bytes_per_s)),
        )
        for link in links
    ]
    headers = ("axis", "ranks", "links", "ranks a domain", "one way [GB/s]")
    return table(headers, rows, (LEFT, RIGHT, LEFT, RIGHT, RIGHT))


def _proposal_table(proposals: Sequence[Proposal]) -> Table:
    headers = ("rank", "plan", "objective", "step time", "memory", "exposed comm.", "idle", "confidence", "effort")
    rows = [
        (
            str(p.rank),
            wording.plan_text(p.plan),
            change(p.expected.objective_frac),
            _change_or(p.expected.step_time_frac, p.expected.step_time_direction),
            _change_or(p.expected.memory_frac, p.expected.memory_direction),
            change(p.expected.exposed_communication_frac),
            change(p.expected.idle_frac),
            percent(p.confidence),
            p.adoption_effort,
        )
        for p in proposals
    ]
    return table(headers, rows, (RIGHT, LEFT, RIGHT, RIGHT, RIGHT, RIGHT, RIGHT, RIGHT, LEFT))


def _projection_table(result: PlanResult) -> Table:
    labels = [label for label, _ in wording.figures(result.proposals[0].projections[0])][:MAX_FIGURES]
    rows = [] if result.current is None else [_projection_row("current", result.current, labels)]
    for proposal in result.proposals:
        rows += [_projection_row(f"#{proposal.rank}", projection, labels) for projection in proposal.projections]
    headers = ("plan", "chips", "step [ms]", "exposed comm. [ms]", "idle [ms]", "memory [GB]", *labels, "verdict")
    return table(headers, rows, (LEFT, LEFT, *(RIGHT,) * (4 + len(labels)), LEFT))


def _projection_row(name: str, projection: Projection, labels: Sequence[str]) -> tuple[str, ...]:
    figures = dict(wording.figures(projection))
    return (
        name,
        f"{projection.chips} x {projection.chip}",
        ms(projection.step_time_s),
        ms(projection.breakdown.exposed_communication_s),
        ms(projection.breakdown.idle_s),
        wording.memory_text(projection),
        *(figures.get(label, wording.UNKNOWN) for label in labels),
        plain(wording.verdict(projection)),
    )


def _certainty(margin: float, ambiguous: bool, of_what: str = "the window") -> str:
    doubt = ", too small to be sure" if ambiguous else ""
    return f"Margin over the runner-up: {percent(margin)} of {of_what}{doubt}."


def _change_or(frac: float | None, direction: str) -> str:
    return direction if frac is None else change(frac)


def _assumption(item: Assumption) -> str:
    return f"{item.field} = {item.value}: {item.reason} ({item.matters})"


def _count(value: int | None) -> str:
    return wording.UNKNOWN if value is None else f"{value:,}"


def _short(name: str) -> str:
    text = plain(name)
    return text if len(text) <= KERNEL_CHARACTERS else text[: KERNEL_CHARACTERS - 3] + "..."
