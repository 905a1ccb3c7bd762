"""How full device memory is: another question than how fast it is read, with other remedies.

    out_of_memory   the job was stated to run out of it, or the plan is projected to need more than there is
    near_full       0.95 of it is in use at the peak: allocators retry, fragments and late buffers do not fit
    room            less is in use
    unknown         nobody recorded it

A run that nearly fills the device can be several times slower than one that recomputes more: memory is a cliff, and
the step's shares do not show why. Engines that serve fill memory on purpose, so only training is judged near_full.
"""

from typing import Final

from agents.diagnosis_parts import Capacity, CapacityState, Headroom
from agents.findings import Diagnosis, Evidence
from agents.planning.signals import Signals
from agents.planning.verdict import CLIFF_FRAC
from agents.wording import percent
from projector.specs.plan import Phase

NEAR_FULL_FRAC: Final = 0.95
NO_BOUND: Final = Headroom(
    scope="cause",
    name="hbm_capacity",
    gain_frac=None,
    inequality="no bound is known",
    basis="capacity takes no time of its own: what more room allows (batch, less recompute) decides",
)


def capacity_of(signals: Signals) -> Capacity:
    """From the high water of a trace, or the memory model of a projected step."""
    used = signals.memory_used_frac
    if used is None:
        return Capacity(state="unknown", basis="no memory in use was recorded")
    if signals.source == "modelled":
        return Capacity(state=_state(used, signals.phase), used_frac=used, source="modelled", basis="the memory model")
    return Capacity(
        state=_state(used, signals.phase, measured=True),
        used_frac=used,
        source="measured",
        basis="high water of the fullest rank over the memory of its device",
    )


def with_stated_memory(
    diagnosis: Diagnosis,
    *,
    out_of_memory: bool | None,
    peak_bytes: float | None,
    capacity_bytes: float | None,
    phase: Phase,
) -> Diagnosis:
    """The diagnosis with memory as the user states it: stated figures come before projected ones.

    Running out of memory decides the class. A training run that fills CLIFF_FRAC of the device does where no device
    time is measured, or where the device waits and nothing says for what: then retries of the allocator are what is
    left. Otherwise it is told and decides nothing.
    """
    if out_of_memory:
        basis = "stated: the job ran out of memory"
        capacity = Capacity(state="out_of_memory", used_frac=None, source="stated", basis=basis)
        return _limited_by_capacity(diagnosis, capacity, "The job is stated to run out of device memory.", None)
    if peak_bytes is None or not capacity_bytes:
        return diagnosis
    used = peak_bytes / capacity_bytes
    capacity = Capacity(
        state=_state(used, phase, measured=True),
        used_frac=used,
        source="stated",
        basis="stated peak over the chip's memory",
    )
    unexplained = diagnosis.source == "modelled" or diagnosis.cause == "unknown"
    if phase == "training" and used >= CLIFF_FRAC and unexplained:
        claim = f"The job is stated to fill {percent(used)} of device memory: at such a peak the allocator retries."
        return _limited_by_capacity(diagnosis, capacity, claim, used)
    claim = f"The job is stated to fill {percent(used)} of device memory at its peak."
    entry = _evidence(claim, used)
    return diagnosis.model_copy(update={"capacity": capacity, "evidence": (*diagnosis.evidence, entry)})


def with_fewer_devices(diagnosis: Diagnosis, *, ran_on: int, wanted: int) -> Diagnosis:
    """The diagnosis where the job is to run on fewer devices than the trace has and its core waits without a reason.

    What is sharded grows by ran_on / wanted on each device: room is then the first thing a layout has to find.
    """
    if wanted >= ran_on or diagnosis.cause != "unknown" or diagnosis.source != "measured":
        return diagnosis
    grown = ran_on / wanted
    claim = (
        f"The trace ran on {ran_on} devices, the job is to run on {wanted}: what is sharded takes up to {grown:.3g} "
        "times the memory a device, and nothing in the trace says what else it waits for."
    )
    capacity = Capacity(state="unknown", basis="fewer devices than the trace ran on; no memory in use was recorded")
    return _limited_by_capacity(diagnosis, capacity, claim, None, ref="summary.implied.world_size")


def _state(used_frac: float, phase: Phase | None, *, measured: bool = False) -> CapacityState:
    if used_frac > 1.0 and not measured:
        return "out_of_memory"
    return "near_full" if used_frac >= NEAR_FULL_FRAC and phase != "serving" else "room"


def _limited_by_capacity(
    diagnosis: Diagnosis, capacity: Capacity, claim: str, used: float | None, ref: str = "request.observed"
) -> Diagnosis:
    shares = "The shares do not show it: they say where time goes, not what fits."
    summary = f"The bottleneck is HBM capacity (class memory). {claim} {shares} {diagnosis.summary}"
    limits = ("what capacity costs is not in the shares: no headroom of it is known", *diagnosis.limits)
    scores = {**diagnosis.scores, "memory": 1.0}
    kept = tuple(one for one in diagnosis.headroom if one.scope != "cause")
    return diagnosis.model_copy(
        update={
            "bottleneck": "memory",
            "cause": "hbm_capacity",
            "scores": scores,
            "margin": 1.0 - max(scores["compute"], scores["communication"]),
            # what a job is stated to have done is certain, what its peak or its devices suggest is not
            "ambiguous": capacity.state != "out_of_memory",
            "headroom": (*kept, NO_BOUND) if diagnosis.headroom else (),
            "overturned": diagnosis.hypothesis != "memory",
            "overturned_by": "" if diagnosis.hypothesis == "memory" else claim,
            "abstained": False,
            "capacity": capacity,
            "summary": summary,
            "evidence": (*diagnosis.evidence, _evidence(claim, used, ref)),
            "limits": limits,
        }
    )


def _evidence(claim: str, used: float | None, ref: str = "request.observed") -> Evidence:
    unit = "" if used is None else "fraction"
    name = "ev-memory-stated" if ref == "request.observed" else "ev-memory-devices"
    return Evidence(id=name, claim=claim, value=used, unit=unit, source="stated", ref=ref)
