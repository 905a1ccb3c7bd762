"""Did a promised gain arrive."""

from typing import Final

from traces.compare.types import Basis, Prediction, Side, Verdict

_ALL_FROM_FRAC: Final = 0.8
_EXCEEDED_FROM_FRAC: Final = 1.25
_NOTHING_BELOW_FRAC: Final = 0.1


def prediction(
    predicted_change_frac: float, before: Side, after: Side, basis: Basis, significant: bool | None
) -> Prediction:
    """Measured over predicted change, and a verdict.

    arrived: at least 80 % of the promise; exceeded: 125 % and more; partly: 10 to 80 %; not_at_all: less; worse: the
    time went the other way. inconclusive: without steps, with a change within the noise, or with no change promised.
    """
    measured = (after.time_ns - before.time_ns) / before.time_ns
    arrived = measured / predicted_change_frac if predicted_change_frac else None
    verdict, why = _verdict(arrived, predicted_change_frac, measured, basis, significant)
    return Prediction(
        predicted_change_frac=predicted_change_frac,
        measured_change_frac=measured,
        arrived_frac=arrived,
        verdict=verdict,
        why=why,
    )


def _verdict(
    arrived: float | None, predicted: float, measured: float, basis: Basis, significant: bool | None
) -> tuple[Verdict, str]:
    told = f"{measured:+.1%} was measured, {predicted:+.1%} was predicted"
    if basis == "window":
        return "inconclusive", f"{told}; the runs mark no steps, so their windows need not hold the same work"
    if arrived is None:
        return "inconclusive", f"{told}; no change was promised"
    if significant is False:
        return "inconclusive", f"{told}; the change is within the spread of the steps"
    unsure = "" if significant else "; too few steps to know the spread"
    if arrived < 0:
        return "worse", f"{told}: the other way{unsure}"
    if arrived < _NOTHING_BELOW_FRAC:
        return "not_at_all", told + unsure
    if arrived < _ALL_FROM_FRAC:
        return "partly", f"{told}: {arrived:.0%} of it arrived{unsure}"
    if arrived < _EXCEEDED_FROM_FRAC:
        return "arrived", told + unsure
    return "exceeded", f"{told}: {arrived:.1f} times the promise{unsure}"
