"""`shardwise simulate` for people."""

from app import wording
from app.schemas_simulation import SimulationAnswer
from app.tables_parts import LEFT, RIGHT, bullets, console, heading, paragraph, section, table
from app.wording import ms, number, percent, plain
from projector.simulation.statistics import Quantiles


def show_simulation(answer: SimulationAnswer) -> None:
    """Latencies with their percentiles, rates, what the engines were doing, budgets missed."""
    out, found = console(), answer.result
    heading(
        out,
        f"{plain(answer.workload.model or wording.UNKNOWN)} on {answer.cluster.chips} x {answer.cluster.chip}: "
        f"{found.requests:,} requests simulated, seed {found.seed}",
    )
    paragraph(out, wording.plan_text(answer.plan))
    paragraph(out, f"{found.warmup_requests:,} requests of warm-up are in no figure; routing: {found.routing}")
    if found.saturated:
        paragraph(
            out,
            "SATURATED: more requests arrive than the engines finish. Queues grow without bound, and latencies depend "
            "on how many requests were simulated",
        )
    if found.refused_requests:
        paragraph(out, f"{found.refused_requests:,} requests fit no engine's KV pool and were refused")
    section(out, "Latencies [ms]")
    rows = [
        ("time to first token", found.ttft),
        ("time per output token", found.tpot),
        ("gap between tokens", found.itl),
        ("end to end", found.request_latency),
        ("queue", found.queue),
    ]
    out.print(
        table(
            ("", "mean", "p50", "p90", "p99"),
            [(name, *_figures(one)) for name, one in rows],
            (LEFT, RIGHT, RIGHT, RIGHT, RIGHT),
        )
    )
    section(out, "Rates")
    paragraph(
        out,
        f"{number(found.requests_per_s)} requests/s of {number(found.offered_requests_per_s)} offered, "
        f"{number(found.output_tokens_per_s)} generated tokens/s "
        f"({number(found.output_tokens_per_s_per_chip)} a chip)",
    )
    if found.goodput_requests_per_s is not None:
        paragraph(
            out,
            f"goodput {number(found.goodput_requests_per_s)} requests/s: {percent(found.slo_met_frac)} of the requests "
            "meet every budget",
        )
    section(out, "Engines")
    paragraph(
        out,
        f"{number(found.batch_size_mean)} requests decode on an attention rank in the mean step; "
        f"{percent(found.mixed_step_frac)} of the steps carry prefill; KV pool at most {percent(found.kv_peak_frac)} "
        f"full; {found.preemptions:,} preemptions; {percent(found.prefix_hit_frac)} of the prompt tokens were cached",
    )
    bullets(out, "Budgets missed", [miss.text for miss in found.slo_misses])
    bullets(out, "Taken for granted", found.assumptions)


def _figures(one: Quantiles | None) -> tuple[str, ...]:
    if one is None:
        return (wording.UNKNOWN,) * 4
    return ms(one.mean_s), ms(one.p50_s), ms(one.p90_s), ms(one.p99_s)
