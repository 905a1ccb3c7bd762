"""Refit of the serving constants, all at once, with and without the rows of a group: what `--folds` prints of serving.

As in training (`agents.evaluation.refit`): around the present values the logarithm of a projected figure is linear in
the logarithms of the parameters, fitted with robust weights and a prior; a group is projected with what the others
gave. An observation is one figure of one row, rates as seconds a token. TPOT and output tokens/s decide; TTFT, most of
which is waiting, weighs little.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agents.evaluation.refit import DIFFERENCE, Linear, Values, held_out
from agents.evaluation.refusal import Refused
from agents.evaluation.serving_cases import Metric
from agents.evaluation.serving_parameters import SERVING_PARAMETERS, ServingParameter
from agents.evaluation.serving_scored import ServingScored, score_serving

WEIGHTS: dict[Metric, float] = {"tpot_s": 0.25, "decode_tokens_per_s_per_chip": 0.06, "ttft_s": 0.01}
# a slope below this moves nothing
SLIGHT = 1e-3


@dataclass(frozen=True)
class Observation:
    """One measured figure of a scored row, as seconds."""

    one: ServingScored
    metric: Metric

    @property
    def projected_s(self) -> float:
        """Projected seconds: a latency, or of a rate the seconds a token."""
        return _seconds(self.one, self.metric)

    @property
    def measured_s(self) -> float:
        """Measured seconds."""
        value = self.one.measured(self.metric)
        assert value is not None
        return 1 / value if self.metric == "decode_tokens_per_s_per_chip" else value

    @property
    def group(self) -> str:
        """(family, chip) of the row."""
        return self.one.case.row.group


def observations(scored: Sequence[ServingScored]) -> list[Observation]:
    """Every measured figure of every row."""
    return [Observation(one, metric) for one in scored for metric in one.projected]


def serving_linear(scored: Sequence[ServingScored], seen: Sequence[Observation]) -> Linear[ServingParameter]:
    """Projected figures around the present values; parameters that touch none of the rows are left out."""
    found, columns, present, rows, groups = [], [], [], [], []
    for parameter in SERVING_PARAMETERS:
        touched = [
            number
            for number, one in enumerate(scored)
            if parameter.touches(one.case) and parameter.present(one.case) > 0
        ]
        if not touched:
            continue
        slopes = _slopes([scored[number] for number in touched], parameter)
        column = np.array([slopes.get((one.one.case.row.id, one.metric), 0.0) for one in seen])
        bears = [number for number in range(len(seen)) if abs(column[number]) > SLIGHT]
        found.append(parameter)
        columns.append(column)
        present.append(max(parameter.present(scored[number].case) for number in touched))
        rows.append(len({seen[number].one.case.row.id for number in bears}))
        groups.append(len({seen[number].group for number in bears}))
    return Linear(
        parameters=tuple(found),
        present=np.array(present),
        rows=np.array(rows),
        groups=np.array(groups),
        projected_s=np.array([one.projected_s for one in seen]),
        measured_s=np.array([one.measured_s for one in seen]),
        jacobian=np.stack(columns, axis=1) if columns else np.zeros((len(seen), 0)),
    )


def observation_weights(seen: Sequence[Observation]) -> Values:
    """That of the figure, over the square root of how often the row's group prints it; nothing where drafting is only
    implied by the file: what is drafted and accepted is not printed."""
    size = Counter((one.group, one.metric) for one in seen)
    plain = [one.one.case.row.speculation is None for one in seen]
    return np.array(
        [
            WEIGHTS[one.metric] * size[one.group, one.metric] ** -0.5 * counts
            for one, counts in zip(seen, plain, strict=True)
        ]
    )


def groups_left_out(linear: Linear[ServingParameter], seen: Sequence[Observation], weights: Values) -> Values:
    """For every figure the factor on its projected seconds from a fit without the row's (family, chip) group."""
    return held_out(linear, [one.group for one in seen], weights)


def _slopes(scored: Sequence[ServingScored], parameter: ServingParameter) -> dict[tuple[str, Metric], float]:
    """d log seconds / d log parameter, by row and figure."""
    cases = [one.case for one in scored]
    up = max(parameter.present(case) for case in cases) * (1 + DIFFERENCE) <= parameter.high
    factor = 1 + DIFFERENCE if up else 1 / (1 + DIFFERENCE)
    changed = score_serving([parameter.scaled(case, factor) for case in cases])
    found: dict[tuple[str, Metric], float] = {}
    for before, after in zip(scored, changed, strict=True):
        if isinstance(after, Refused):
            continue
        for metric in before.projected:
            ratio = _seconds(after, metric) / _seconds(before, metric)
            found[before.case.row.id, metric] = float(np.log(ratio) / np.log(factor))
    return found


def _seconds(one: ServingScored, metric: Metric) -> float:
    value = one.projected[metric]
    return 1 / value if metric == "decode_tokens_per_s_per_chip" else value
