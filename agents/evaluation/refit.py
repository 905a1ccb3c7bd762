"""Refit: all parameters at once, on some rows, with a prior; and what that prints on the rows left out.

Around the present values the logarithm of projected time is taken as linear in the logarithms of the parameters:

    log t_i(d) = log t_i + sum_j J_ij d_j      J by finite differences, one projection of the rows a parameter touches

and d minimises robust squares of log(measured / t) in units of NOISE_FRAC plus the squares of the distance to the
priors in units of their spreads (Huber's weights, a few damped steps, bounds by projection). A row weighs one over the
square root of the rows of its (family, chip) group, so that near-duplicates do not outvote what was measured once.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from agents.evaluation.cases import Case
from agents.evaluation.parameters import Parameter
from agents.evaluation.rl_cases import score_every
from agents.evaluation.scored import Scored

Values = NDArray[np.float64]
Mask = NDArray[np.bool_]
DIFFERENCE = 0.03
NOISE_FRAC = 0.06
ROBUST = 2.0
STEPS = 12


class Bounded(Protocol):
    """What a fit has to know of a parameter."""

    @property
    def prior(self) -> float:
        """Its value without any fit."""

    @property
    def spread(self) -> float:
        """Standard deviation of its logarithm around the prior."""

    @property
    def low(self) -> float:
        """Lower bound."""

    @property
    def high(self) -> float:
        """Upper bound."""


P = TypeVar("P", bound=Bounded)


@dataclass(frozen=True)
class Linear(Generic[P]):
    """Projected times around the present values.

    projected_s, measured_s   shape [rows]; jacobian [rows, parameters]; present, of a row that has the parameter
    """

    parameters: tuple[P, ...]
    present: Values
    rows: NDArray[np.int64]
    groups: NDArray[np.int64]
    projected_s: Values
    measured_s: Values
    jacobian: Values

    def fitted(self, keep: Mask, weights: Values) -> Values:
        """The changes d of the logarithms of the parameters that fit the kept rows, shape [parameters]."""
        residual = np.log(self.measured_s / self.projected_s)
        prior = np.log([one.prior for one in self.parameters]) - np.log(self.present)
        spread = np.array([one.spread for one in self.parameters])
        low = np.log([one.low for one in self.parameters]) - np.log(self.present)
        high = np.log([one.high for one in self.parameters]) - np.log(self.present)
        slopes, base = self.jacobian[keep] / NOISE_FRAC, weights[keep]
        d = np.zeros(len(prior))
        for _ in range(STEPS):
            left = (residual[keep] - self.jacobian[keep] @ d) / NOISE_FRAC
            robust = base * np.minimum(1.0, ROBUST / np.maximum(np.abs(left), 1e-9))
            normal = slopes.T @ (robust[:, None] * slopes) + np.diag(spread**-2.0)
            step = np.linalg.solve(normal, slopes.T @ (robust * left) + (prior - d) / spread**2)
            d = np.clip(d + 0.7 * step, low, high)
        return d

    def projected(self, d: Values) -> Values:
        """Projected seconds after the changes, shape [rows]."""
        moved: Values = self.projected_s * np.exp(self.jacobian @ d)
        return moved


def training_linear(scored: Sequence[Scored], parameters: Sequence[Parameter]) -> Linear[Parameter]:
    """Projected times of rows that print a speed; parameters that touch none of them are left out."""
    cases = [one.case for one in scored]
    at = _log_s_per_token(scored)
    found, columns, present, rows, groups = [], [], [], [], []
    for parameter in parameters:
        touched = [index for index, case in enumerate(cases) if parameter.touches(case)]
        if not touched:
            continue
        column = np.zeros(len(cases))
        column[touched] = _slope([cases[index] for index in touched], parameter, at[touched])
        found.append(parameter)
        columns.append(column)
        present.append(parameter.present(cases[touched[0]]))
        rows.append(int((np.abs(column) > 1e-3).sum()))
        groups.append(len({cases[index].row.group for index in touched if abs(column[index]) > 1e-3}))
    measured = np.array([one.measured_s for one in scored], dtype=np.float64)
    return Linear(
        parameters=tuple(found),
        present=np.array(present),
        rows=np.array(rows),
        groups=np.array(groups),
        projected_s=np.array([one.projected_s for one in scored]),
        measured_s=measured,
        jacobian=np.stack(columns, axis=1) if columns else np.zeros((len(cases), 0)),
    )


def row_weights(scored: Sequence[Scored]) -> Values:
    """One over the square root of the rows of the same (family, chip) group; nothing where layers are recurrent, whose
    kernels no parameter stands for."""
    size = Counter(one.case.row.group for one in scored)
    plain = [one.case.architecture.recurrence is None for one in scored]
    return np.array([size[one.case.row.group] ** -0.5 * counts for one, counts in zip(scored, plain, strict=True)])


def held_out(linear: Linear[P], names: Sequence[str], weights: Values) -> Values:
    """For every row the factor on its projection from a fit without the rows that share its name, shape [rows]."""
    labels = np.array(names)
    factor = np.ones(len(labels))
    for name in sorted(set(names)):
        out = labels == name
        factor[out] = np.exp(linear.jacobian[out] @ linear.fitted(~out, weights))
    return factor


def moved(cases: Sequence[Case], linear: Linear[Parameter], d: Values) -> list[Case]:
    """The cases with the changed values themselves, for checking the linear form by projecting again."""
    found = list(cases)
    for parameter, change in zip(linear.parameters, d, strict=True):
        touched = [parameter.touches(case) for case in cases]
        found = [
            parameter.scaled(case, float(np.exp(change))) if on else case
            for on, case in zip(touched, found, strict=True)
        ]
    return found


def _slope(cases: Sequence[Case], parameter: Parameter, at: Values) -> Values:
    """d log t / d log parameter: one-sided, downwards where the bound is above."""
    up = parameter.present(cases[0]) * (1 + DIFFERENCE) <= parameter.high
    factor = 1 + DIFFERENCE if up else 1 / (1 + DIFFERENCE)
    changed = [
        one for one in score_every([parameter.scaled(case, factor) for case in cases]) if isinstance(one, Scored)
    ]
    assert len(changed) == len(cases)
    slope: Values = (_log_s_per_token(changed) - at) / np.log(factor)
    return slope


def _log_s_per_token(scored: Sequence[Scored]) -> Values:
    return np.log([one.projected_s_per_token for one in scored])
