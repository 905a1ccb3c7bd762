"""The summary of a diagnosis: the verdict, what it rests on, and whether the headline was overturned."""

from agents.causes import CAUSE_PHRASE
from agents.planning.hypothesis import overturned_by
from agents.planning.idle_causes import HALF, IdleCauses
from agents.planning.signals import Signals
from agents.planning.verdict import Verdict
from agents.wording import percent


def window_words(signals: Signals) -> str:
    """What the shares are fractions of."""
    if signals.source == "modelled":
        return "the projected step"
    return "the recorded window" if signals.step_cover is None else "the marked steps"


def summary_text(signals: Signals, verdict: Verdict) -> str:
    """Two or three sentences: the verdict, what it rests on, and whether the headline was overturned."""
    shares = signals.shares
    if not signals.device:
        return (
            "No device event was recorded, so no bottleneck of the accelerator can be named. "
            "Profile with device activity enabled."
        )
    hidden = f" ({percent(shares.hidden_communication)} more is hidden)" if shares.hidden_communication > 0.005 else ""
    by = "by convention in class" if verdict.cause == "imbalance" else "class"
    name = f"The bottleneck of {window_words(signals)} is {CAUSE_PHRASE[verdict.cause]} ({by} {verdict.bottleneck})."
    if verdict.leader == "waiting":
        name = (
            f"The device waits {percent(verdict.groups['waiting'])} of {window_words(signals)}: the bottleneck is "
            f"{CAUSE_PHRASE[verdict.cause]} (by convention in class {verdict.bottleneck})."
        )
    if verdict.cause == "unknown":
        idle = percent(verdict.groups["waiting"])
        name = (
            f"The device waits for {idle} of {window_words(signals)}, and what for cannot be told: no class is shown."
        )
    elif verdict.cause == "hbm_capacity":
        name = f"The bottleneck of {window_words(signals)} is {CAUSE_PHRASE[verdict.cause]} (class memory)."
    elif verdict.abstained:
        name = (
            f"{percent(verdict.unresolved)} of {window_words(signals)} is in kernels of unknown limit: no class is "
            f"shown, and {verdict.bottleneck} is only what is left."
        )
    sentences = [
        name,
        f"Kernels run {percent(shares.compute)} of the time, exposed communication takes "
        f"{percent(shares.exposed_communication)}{hidden}, exposed copies {percent(shares.exposed_copy)}, "
        f"and the device is idle {percent(shares.idle)}.",
    ]
    if verdict.cause in ("launch_bound", "host_idle") and signals.idle is not None:
        sentences.append(_idle_sentence(signals.idle))
    elif verdict.cause == "launch_bound" and signals.launch_bound_frac is not None:
        sentences.append(
            f"{percent(signals.launch_bound_frac)} of the idle time ends with a launch that came too late, "
            "so the host, not the accelerator, sets the pace."
        )
    if verdict.by_rows:
        sentences.append(_row_sentence(verdict))
    if verdict.hypothesis != verdict.bottleneck:
        sentences.append(f"The headline alone suggests {verdict.hypothesis}; the operators overturn it.")
        sentences.append(overturned_by(signals, verdict))
    if verdict.doubts:
        sentences.append("The verdict is ambiguous.")
    return " ".join(sentences)


def _idle_sentence(idle: IdleCauses) -> str:
    if idle.host_bound < HALF * idle.launching:
        return (
            f"{percent(idle.launch_gap)} of the idle time lies between a launch and its start or between queued "
            "kernels: many short kernels, not a late host."
        )
    late = f"For {percent(idle.host_bound)} of the idle time the host had not issued the next work"
    if idle.apart < HALF * idle.launching:
        return f"{late}, one launch after another, so the host, not the accelerator, sets the pace."
    if idle.loading >= HALF * idle.launching:
        return f"{late}: it loaded input for {percent(idle.loading)} of the idle time."
    return f"{late}, and for {percent(idle.pausing)} of it no launch came for more than a millisecond."


def _row_sentence(verdict: Verdict) -> str:
    groups = verdict.groups
    return (
        f"Of the operators that the profile identifies and gives a limit of, those bound by the core take "
        f"{percent(groups['compute'])} of the step, those that HBM limits {percent(groups['memory'])}, and collectives "
        f"that wait for links or peers {percent(groups['communication'])}."
    )
