"""The rules advisor: the ranking rule for the choice, sentences composed from projected numbers for the reasons.

Deterministic: the same question gives the same answer in every process.
"""

from typing import Literal

from agents.advisors.moves import Move, moves_of, sentences_of, standing_move
from agents.advisors.protocol import AdvisorChoice, AdvisorInput, Candidate, LeverView, Note, Pick
from agents.advisors.ranking import NOISE_FRAC, is_tight, rank
from agents.causes import CAUSE_PHRASE, PREFILL_ONLY
from agents.gains import objective_change
from agents.wording import duration, gigabytes, listed, percent, signed_percent
from projector.specs.bottleneck import Cause

CITATIONS_A_PICK = 2

# evidence of the diagnosis that speaks for each cause, besides the roofline
CAUSE_EVIDENCE: dict[Cause, tuple[str, ...]] = {
    "compute_throughput": ("ev-compute", "ev-kind-gemm", "ev-kind-attention", "ev-kind-moe", "ev-roofline"),
    "hbm_bandwidth": ("ev-compute", "ev-kind-elementwise", "ev-kind-moe", "ev-roofline", "ev-rows"),
    "hbm_capacity": ("ev-memory-modelled", "ev-memory-high-water"),
    "pipeline_bubble": ("ev-bubble", "ev-idle"),
    "launch_bound": ("ev-idle", "ev-idle-host", "ev-launch-bound"),
    "host_idle": ("ev-idle", "ev-idle-input", "ev-idle-host"),
    "copies": ("ev-exposed-copy",),
    "imbalance": ("ev-straggler-1", "ev-waiting", "ev-skew", "ev-exposed-communication"),
    "latency_bound_collectives": ("ev-small-messages", "ev-exposed-communication"),
    "exposed_tp": ("ev-axis-tp", "ev-exposed-communication"),
    "exposed_dp": ("ev-axis-dp", "ev-axis-fsdp", "ev-exposed-communication"),
    "exposed_ep": ("ev-axis-ep", "ev-exposed-communication"),
    "exposed_cp": ("ev-axis-cp", "ev-exposed-communication"),
    "exposed_pp": ("ev-axis-pp", "ev-exposed-communication"),
    "exposed_communication": ("ev-exposed-communication",),
}


class RulesAdvisor:
    """Stateless; needs no key and no network."""

    name: Literal["rules", "llm"] = "rules"

    def choose(self, question: AdvisorInput, problems: tuple[str, ...] = ()) -> AdvisorChoice:
        """The ranked picks. `problems` is ignored: the answer would be the same."""
        del problems
        ranked, moves = rank(question), moves_of(question)
        picks = [_pick(question, candidate, moves[candidate.id]) for candidate in ranked]
        if picks and (reason := _why_first(question, ranked)):
            picks[0] = picks[0].model_copy(update={"rationale": f"{picks[0].rationale} {reason}"})
        return AdvisorChoice(picks=tuple(picks))


def explained(question: AdvisorInput, candidate: Candidate) -> Pick:
    """The rules' words for any candidate, also where they would not have picked it."""
    return _pick(question, candidate, moves_of(question).get(candidate.id, standing_move(candidate)))


def _pick(question: AdvisorInput, candidate: Candidate, move: Move) -> Pick:
    about = tuple(note.citation.chunk_id for note in _notes_for(question, candidate))
    known = {entry.id for entry in question.diagnosis.evidence}
    deciding = [name for name in CAUSE_EVIDENCE.get(question.diagnosis.cause, ()) if name in known]
    own = [entry.id for entry in candidate.evidence]
    return Pick(
        candidate=candidate.id,
        rationale=" ".join([*_rationale(question, candidate), *sentences_of(move)]),
        risks=tuple(_risks(question, candidate)),
        evidence=(*deciding, *own),
        citations=tuple(dict.fromkeys((*move.cited, *about)))[: max(CITATIONS_A_PICK, len(move.cited))],
    )


def _why_first(question: AdvisorInput, ranked: tuple[Candidate, ...]) -> str:
    """Why a plan that gains less goes first, where the rule of the fewest changes decided it; '' elsewhere."""
    first = ranked[0]
    ahead = max(1 + candidate.gain_frac for candidate in ranked) / (1 + first.gain_frac) - 1
    if question.layout_relieves or not first.relieving or ahead <= NOISE_FRAC:
        return ""
    return "It goes first as it relieves the cause by the fewest changes; a plan below it gains more by more of them."


def _notes_for(question: AdvisorInput, candidate: Candidate) -> list[Note]:
    """For each lever, those that matter most first, one note about it: naming the cause, mainly about it, nearest."""
    cause = question.diagnosis.cause
    chosen: list[Note] = []
    for lever in _by_weight(candidate):
        named = {note.citation.note_id for note in chosen}
        about = [note for note in question.notes if lever in note.levers and note.citation.note_id not in named]
        if about:
            chosen.append(min(about, key=lambda note: _distance(note, lever, cause)))
    return chosen[:CITATIONS_A_PICK]


def _distance(note: Note, lever: str, cause: Cause) -> tuple[bool, bool, float, str]:
    return cause not in note.causes, note.levers[0] != lever, -note.citation.similarity, note.citation.chunk_id


def _by_weight(candidate: Candidate) -> list[str]:
    """The candidate's levers: those that relieve the cause first, then by the gain of their step."""
    steps = sorted(candidate.steps, key=lambda step: -(step.gain_frac or 0.0))
    ordered = [name for step in steps for name in step.levers]
    return sorted(ordered, key=lambda name: name not in candidate.relieving)


def _rationale(question: AdvisorInput, candidate: Candidate) -> list[str]:
    if candidate.keeps:
        return [_keep_reason(question), *_projected(question, candidate)]
    sentences = [_relief(question, candidate)]
    if candidate.is_reference:
        sentences.append("This is the plan the others are compared with.")
        return [*sentences, *_projected(question, candidate)]
    lever = _main_lever(question, candidate)
    if lever is not None:
        sentences.append(lever.mechanism)
    return [*sentences, *_steps(question, candidate), *_projected(question, candidate), *_verdict(question, candidate)]


def _keep_reason(question: AdvisorInput) -> str:
    others = [entry for entry in question.candidates if not entry.keeps]
    meaning = question.objective.meaning
    if not others:
        return "No other plan passes the gates."
    best = max(others, key=lambda entry: entry.gain_frac)
    if question.goal == "fits":
        return "The current plan fits, so nothing has to change."
    if best.gain_frac <= NOISE_FRAC:
        change = objective_change(best.gain_frac, question.objective.direction)
        side = "ahead, which is within the noise" if change > 0 else "behind"
        return (
            f"No other feasible plan is projected to improve {meaning} beyond the noise of a projection: the best of "
            f"them ({best.title[:1].lower()}{best.title[1:]}) is {percent(abs(change))} {side}."
        )
    return "The current plan stays possible; the plans above it are projected to be better."


def _relief(question: AdvisorInput, candidate: Candidate) -> str:
    source = question.diagnosis.source
    cause = CAUSE_PHRASE[question.diagnosis.cause]
    limit = f"The {'measured' if source == 'measured' else 'projected'} step is limited by {cause}"
    if source == "stated":
        limit = f"By what is stated the run is limited by {cause}"
    if not question.reference_is_current and source == "stated":
        return f"No current plan is known; {limit[:1].lower()}{limit[1:]}."
    if not question.reference_is_current:
        return f"No current plan is known; the step of {question.reference_label} would be limited by {cause}."
    if candidate.is_reference:
        return f"{limit}."
    if candidate.relieving:
        words = [name.replace("_", " ") for name in candidate.relieving]
        return f"{limit}, which a change of {listed(words)} relieves here."
    if not question.layout_relieves:
        return f"{limit}, which no change of layout removes; this plan changes something else."
    return f"{limit}, which this plan does not relieve; it changes something else."


def _main_lever(question: AdvisorInput, candidate: Candidate) -> LeverView | None:
    """The lever to explain."""
    views = {lever.name: lever for lever in question.levers}
    return next((views[name] for name in _by_weight(candidate) if name in views), None)


def _steps(question: AdvisorInput, candidate: Candidate) -> list[str]:
    """What the plan would lose without each of its steps, where there is more than one or memory depends on it."""
    sentences = []
    for step in candidate.steps:
        words = "the change of layout" if len(step.levers) > 1 else f"the change of {step.levers[0].replace('_', ' ')}"
        if step.too_large_without_bytes is not None and candidate.projection.memory is not None:
            capacity = candidate.projection.memory.capacity_bytes
            need = f"{gigabytes(step.too_large_without_bytes)} of {gigabytes(capacity)}"
            sentences.append(f"Without {words} the plan would need {need}.")
        elif (
            question.reference_is_current
            and len(candidate.steps) > 1
            and step.gain_frac is not None
            and abs(step.gain_frac) > NOISE_FRAC
        ):
            side = "better" if step.gain_frac > 0 else "worse"
            change = abs(objective_change(step.gain_frac, question.objective.direction))
            sentences.append(f"With {words} {question.objective.meaning} is {percent(change)} {side} than without it.")
    return sentences


def _verdict(question: AdvisorInput, candidate: Candidate) -> list[str]:
    """Gains that are none, and plans that are listed although they are slower."""
    if candidate.gain_frac < -NOISE_FRAC and question.reference.fit == "too_large":
        return ["What it is compared with does not fit, so a slower plan that fits is a gain."]
    if candidate.gain_frac < -NOISE_FRAC:
        better = sum(one.gain_frac > candidate.gain_frac for one in question.candidates)
        if better >= question.wanted:
            return ["It is projected to be worse; it is listed for what else speaks for it, not for its speed."]
        return ["It is projected to be worse; it is listed because fewer than three better plans pass the gates."]
    if candidate.gain_frac <= NOISE_FRAC:
        change = signed_percent(candidate.gain_frac)
        return [f"A change of {change} is within what a projection cannot tell apart: treat it as no gain."]
    return []


def _projected(question: AdvisorInput, candidate: Candidate) -> list[str]:
    """The projector's numbers, against the reference where there is one."""
    after, meaning = candidate.projection, question.objective.meaning
    step, before = duration(candidate.step_time_s), duration(question.reference_step_time_s)
    if not candidate.changes:
        sentences = [f"The step {'takes' if question.anchored else 'is projected to take'} {step}."]
    else:
        frac = candidate.expected.step_time_frac
        change = f" ({signed_percent(frac)})" if frac is not None else ""
        gain = objective_change(candidate.gain_frac, question.objective.direction)
        side = "improves" if gain >= 0 else "worsens"
        subject = f"The measured step of {before} is" if question.anchored else "The step is"
        instead = "" if question.anchored else f" instead of {before}"
        sentences = [
            f"{subject} projected to take {step}{instead}{change}; "
            f"{meaning} {side} by {percent(abs(gain))} against {question.reference_label}."
        ]
    if after.memory is not None:
        memory = after.memory
        sentences.append(
            f"The fullest chip needs {gigabytes(memory.total_bytes)} of {gigabytes(memory.capacity_bytes)}."
        )
    else:
        words = {"less": "less memory than", "more": "more memory than", "same": "as much memory as"}
        direction = words.get(after.memory_direction)
        sentences.append(
            f"The model is unknown, so its memory is too; it needs {direction} the current plan."
            if direction
            else "The model is unknown, so its memory is too."
        )
    return sentences


def _risks(question: AdvisorInput, candidate: Candidate) -> list[str]:
    risks = []
    memory = candidate.projection.memory
    if memory is None:
        if candidate.expected.memory_direction in ("more", "unknown"):
            risks.append("Memory is not known: check that the plan fits before a long run.")
    elif is_tight(candidate):
        used = memory.total_bytes / memory.capacity_bytes
        risks.append(f"Memory is {percent(used)} full; a run this close to the limit can turn slow or fail.")
    if question.reference_is_current and not (question.layout_relieves or candidate.relieving or candidate.keeps):
        cause = CAUSE_PHRASE[question.diagnosis.cause]
        risks.append(f"The limit seen, {cause}, stays: no change of layout removes it.")
    views = {lever.name: lever for lever in question.levers}
    numeric = [name.replace("_", " ") for name in candidate.levers if name in views and views[name].numerics]
    if numeric:
        risks.append(f"Numerics change ({', '.join(numeric)}): check quality before adopting.")
    grows = candidate.expected.memory_frac or 0.0
    if memory is not None and grows > NOISE_FRAC and memory.total_bytes > memory.capacity_bytes / 2:
        risks.append(f"Memory grows by {percent(grows)}.")
    if PREFILL_ONLY in question.diagnosis.limits:
        risks.append(f"{PREFILL_ONLY[:1].upper()}{PREFILL_ONLY[1:]}.")
    if question.diagnosis.ambiguous:
        risks.append("The diagnosis is ambiguous: confirm it with another trace before a costly change.")
    return risks
