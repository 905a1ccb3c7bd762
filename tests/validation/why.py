"""Two sentences of why a diagnosis is what it is, each with its number: what leads, and what comes next."""

from agents.causes import CAUSE_PHRASE
from agents.findings import Diagnosis, Evidence
from agents.wording import listed, percent, quoted

_WAITING = ("launch_bound", "host_idle", "pipeline_bubble", "imbalance", "unknown")
_LEADS = {
    "compute": ("Kernels that arithmetic limits", "arithmetic"),
    "memory": ("Kernels that HBM limits and exposed copies", "hbm"),
}
_SHOWN = 2
_LEAST = 0.01
_ROUNDING = 1e-6


def why(diagnosis: Diagnosis) -> tuple[str, str]:
    """(what leads, what comes next among the classes). Both hold a number."""
    if diagnosis.shares is None or not diagnosis.categories:
        return _no_device(diagnosis)
    return _leads(diagnosis), _next(diagnosis)


def _no_device(diagnosis: Diagnosis) -> tuple[str, str]:
    shares = diagnosis.shares
    seen = "nothing" if shares is None else f"host operators run {percent(1 - shares.idle)} of the window"
    return f"0 device events: {seen}, which says nothing of an accelerator.", "Of 3 classes 0 can be scored."


def _leads(diagnosis: Diagnosis) -> str:
    shares = diagnosis.shares
    assert shares is not None
    if diagnosis.capacity is not None and diagnosis.cause == "hbm_capacity":
        return f"Device memory is {percent(diagnosis.capacity.used_frac or 0.0)} full."
    waits = diagnosis.scores[diagnosis.bottleneck] if diagnosis.cause in _WAITING else 0.0
    if diagnosis.cause in _WAITING and shares.idle >= waits - _LEAST:
        causes = _largest(diagnosis, "idle: ")
        return f"The device waits {percent(shares.idle)} of the window ({causes})."
    if diagnosis.bottleneck == "communication":
        parts = sorted(diagnosis.collectives, key=lambda one: -one.exposed_frac)[:_SHOWN]
        told = listed([f"{quoted(one.collective)} of {one.axis} {percent(one.exposed_frac)}" for one in parts])
        return f"Communication that no kernel hides takes {percent(shares.exposed_communication)} ({told})."
    if diagnosis.cause == "copies":
        return f"Copies that nothing hides take {percent(shares.exposed_copy)} ({_largest(diagnosis, 'copies ')})."
    unresolved = sum(one.share_frac for one in diagnosis.categories if one.limiter == "unknown")
    if diagnosis.abstained:
        return f"Kernels of unknown limit take {percent(unresolved)} of the window ({_limited(diagnosis, 'unknown')})."
    words, limiter = _LEADS[diagnosis.bottleneck]
    score = percent(diagnosis.scores[diagnosis.bottleneck])
    return f"{words} take {score} of the window ({_limited(diagnosis, limiter)})."


def _next(diagnosis: Diagnosis) -> str:
    shares = diagnosis.shares
    assert shares is not None
    if diagnosis.abstained and diagnosis.cause not in _WAITING:
        known = [one for one in diagnosis.categories if one.limiter in ("arithmetic", "hbm")]
        shares_of = [
            sum(one.share_frac for one in known if one.limiter == limiter) for limiter in ("arithmetic", "hbm")
        ]
        told = f"Known to be limited are {percent(shares_of[0])} by arithmetic and {percent(shares_of[1])} by HBM"
        return f"{told}; the device is idle {percent(shares.idle)}."
    others = [name for name in sorted(diagnosis.scores) if name != diagnosis.bottleneck]
    runner = max(others, key=lambda name: diagnosis.scores[name])
    score = diagnosis.scores[runner]
    # idle time counts as compute by convention
    waits = runner == "compute" and abs(score - shares.idle) < _ROUNDING
    name = "idle time" if waits else runner
    told = f"Next comes {name} with {percent(score)}: the margin is {percent(diagnosis.margin)}"
    if diagnosis.cause not in _WAITING and not waits and shares.idle >= _LEAST:
        told += f"; the device is idle {percent(shares.idle)}"
    if diagnosis.overturned:
        told += f", and the headline alone would say {diagnosis.hypothesis} (kernels run {percent(shares.compute)})"
    hidden = shares.hidden_communication
    if hidden >= _LEAST:
        told += f"; {percent(hidden)} of communication is hidden and costs nothing"
    return f"{told}."


def _limited(diagnosis: Diagnosis, limiter: str) -> str:
    """The largest categories of one limiter; where it holds none, the largest of all."""
    found = [one for one in diagnosis.categories if one.limiter == limiter]
    chosen = sorted(found or diagnosis.categories, key=lambda one: -one.share_frac)[:_SHOWN]
    return listed([f"{quoted(one.name)} {percent(one.share_frac)}" for one in chosen])


def _largest(diagnosis: Diagnosis, prefix: str) -> str:
    found = [one for one in diagnosis.categories if one.name.startswith(prefix)]
    chosen = sorted(found, key=lambda one: -one.share_frac)[:_SHOWN]
    return listed([f"{one.name.removeprefix(prefix)} {percent(one.share_frac)}" for one in chosen])


def sequences(evidence: tuple[Evidence, ...]) -> str:
    """Sequences that cost time, each with the most it can gain."""
    found = [one for one in evidence if one.id.startswith("ev-pattern-")]
    return "; ".join(
        f"{one.id.removeprefix('ev-pattern-').replace('-', ' ')} <= {percent(one.value or 0.0)}" for one in found
    )


def cause_of(diagnosis: Diagnosis) -> str:
    """Class and cause; what is only a convention is said to be one."""
    if diagnosis.abstained:
        return f"no class shown ({diagnosis.bottleneck} by convention)"
    return f"{diagnosis.bottleneck}: {CAUSE_PHRASE[diagnosis.cause]}"
