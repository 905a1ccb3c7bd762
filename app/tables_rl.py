"""Tables of `shardwise rl`."""

from app.schemas_rl import RlAnswer
from app.tables import breakdown_table
from app.tables_parts import LEFT, RIGHT, bullets, console, heading, paragraph, section, table
from app.wording import gb, ms, percent, plain, plan_text, words
from projector.rl_projection import Pool

WHOSE: dict[Pool, str] = {"both": "", "trainer": " of the trainer", "engines": " of the engines"}


def show_rl(answer: RlAnswer) -> None:
    """What a step takes, by phase and by what a device does."""
    out = console()
    request, found = answer.request, answer.projection
    heading(out, f"{plain(request.model)} on {request.cluster.chips} x {plain(request.cluster.chip)}")
    paragraph(out, f"Trainer: {plan_text(request.plan.training)}")
    paragraph(out, f"Engines: {plan_text(request.plan.rollout)}, {request.plan.placement}")
    if found is None:
        bullets(out, "The plans are not legal", [rejection.text for rejection in answer.illegal])
        return
    interval = found.step_time_interval_s
    section(out, "Projection")
    rows = [
        ("step time [ms]", ms(found.step_time_s)),
        ("range [ms]", f"{ms(interval.low)} to {ms(interval.high)}"),
        ("tokens/s/chip, prompts and responses", f"{found.tokens_per_s_per_chip:,.0f}"),
        ("memory of a trainer's device [GB]", gb(found.training_memory.total_bytes)),
        ("memory of an engine's device [GB]", gb(found.rollout_memory.total_bytes)),
        ("verdict", plain(found.fit)),
    ]
    out.print(table(("figure", "value"), rows, (LEFT, RIGHT)))
    paragraph(out, f"range: {plain(interval.basis)}")
    section(out, "Phases")
    phases = [
        (words(phase.name), phase.pool, ms(phase.time_s), percent(phase.time_s / found.step_time_s))
        for phase in found.phases
    ]
    out.print(table(("phase", "devices", "time [ms]", "over the step"), phases, (LEFT, LEFT, RIGHT, RIGHT)))
    section(out, f"Where a step goes on a device{WHOSE[found.breakdown_of]}")
    out.print(breakdown_table(found.breakdown))
    bullets(out, "Does not fit", [rejection.text for rejection in found.rejections])
    bullets(out, "Assumptions", found.assumptions)
