"""Past cases as columns, so that a question is compared with thousands of them at once."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from knowledge_base.past import PastCase, PastQuestion, PastRun
from projector.names import normalise
from projector.specs.hardware import HardwareProfile

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Weight of each figure in the distance. What decides a layout weighs most: how large the model is and over how many
# chips it is spread; then the sizes of a step and what the chip can do. A choice of ours, not fitted.
WEIGHTS = {
    "parameters": 2.0,
    "active_parameters": 1.0,
    "chips": 2.0,
    "sequence_tokens": 1.0,
    "batch_tokens": 1.0,
    "peak_flop_per_s": 1.0,
    "hbm_bytes": 1.0,
    "hbm_bytes_per_s": 1.0,
    "domain_chips": 1.0,
}
# a figure that the case does not state counts as if it were a factor of four away
UNKNOWN_OCTAVES = 2.0
# similarity is 1/e where figures differ by a factor of four in the weighted mean
OCTAVES_OF_E = 2.0


@dataclass(frozen=True)
class Columns:
    """cases with columns of equal length: figures in log2, NaN where not stated; codes of models, -1 unknown."""

    cases: tuple[PastCase, ...]

    @cached_property
    def families(self) -> dict[str, str]:
        """Name of a model, in any spelling -> its family, of the models that occur."""
        named = {normalise(case.model): normalise(case.family) for case in self.cases if case.model and case.family}
        return named | {family: family for family in named.values()}

    @cached_property
    def figures(self) -> Floats:
        """Shape [cases, len(WEIGHTS)]."""
        rows = [figures_of(case) for case in self.cases]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(WEIGHTS))

    @cached_property
    def shapes(self) -> list[tuple[int, ...] | None]:
        """The numbers that make two models one."""
        return [case.architecture.shape for case in self.cases]

    @cached_property
    def names(self) -> list[str | None]:
        """The family of each case's model."""
        return [self.family_of(case) for case in self.cases]

    @cached_property
    def phases(self) -> Mask:
        """Whether a case is of training."""
        return np.array([case.phase == "training" for case in self.cases], dtype=np.bool_)

    @cached_property
    def chips(self) -> NDArray[np.int64]:
        """Number of chips, 0 where not stated."""
        return np.array([case.chips or 0 for case in self.cases], dtype=np.int64)

    def family_of(self, run: PastRun) -> str | None:
        """The family a run names or its model belongs to, the model's own name where none is known."""
        if run.family is not None:
            return normalise(run.family)
        return None if run.model is None else self.families.get(normalise(run.model), normalise(run.model))

    def same_model(self, question: PastRun) -> Mask:
        """Cases of the question's model: equal numbers where both state them all, else one name."""
        shape, name = question.architecture.shape, self.family_of(question)
        pairs = zip(self.shapes, self.names, strict=True)
        return np.array([_same_model(shape, name, other, named) for other, named in pairs], dtype=np.bool_)

    def same_family(self, question: PastRun) -> Mask:
        """`same_model` without models that history knows by two names: one shape may be trained in two ways."""
        name = self.family_of(question)
        same = self.same_model(question)
        if name is None or name not in self._known_names:
            return same
        return same & np.array([other is None or other == name for other in self.names], dtype=np.bool_)

    @cached_property
    def _known_names(self) -> frozenset[str]:
        return frozenset(name for name in self.names if name is not None)

    def similarity(self, question: PastQuestion) -> Floats:
        """exp(-distance) in (0, 1]: the weighted mean over what the question states of |log2 ratio|, over OCTAVES_OF_E.

        What the case does not state counts as UNKNOWN_OCTAVES, what the question leaves open does not count.
        """
        asked = figures_of(question)
        stated = ~np.isnan(asked)
        weights = np.array(list(WEIGHTS.values()))[stated]
        if not weights.size:
            return np.full(len(self.cases), np.exp(-UNKNOWN_OCTAVES / OCTAVES_OF_E))
        octaves = np.abs(self.figures[:, stated] - asked[stated])
        octaves = np.where(np.isnan(octaves), UNKNOWN_OCTAVES, octaves)
        return np.asarray(np.exp(-(octaves @ weights) / (weights.sum() * OCTAVES_OF_E)), dtype=np.float64)


def figures_of(run: PastRun) -> Floats:
    """The figures of WEIGHTS in log2, NaN where they are not stated; shape [len(WEIGHTS)]."""
    model, chip = run.architecture, run.hardware
    sequence = run.seq_len if run.phase == "training" else _sum(run.input_len, run.output_len)
    values = (
        model.parameters,
        model.active_parameters,
        run.chips,
        sequence,
        run.batch_tokens,
        *((None,) * 4 if chip is None else _chip_figures(chip)),
    )
    return np.log2(np.array([np.nan if value is None else value for value in values], dtype=np.float64))


def same_model(first: PastRun, second: PastRun) -> bool:
    """Whether two runs are of one model, by their numbers or by their names."""
    return _same_model(first.architecture.shape, _name(first), second.architecture.shape, _name(second))


def _name(run: PastRun) -> str | None:
    name = run.family or run.model
    return normalise(name) if name is not None else None


def _same_model(
    shape: tuple[int, ...] | None, name: str | None, other: tuple[int, ...] | None, named: str | None
) -> bool:
    if shape is not None and other is not None:
        return shape == other
    return name is not None and name == named


def _chip_figures(chip: HardwareProfile) -> tuple[float, ...]:
    """Peak of 16-bit products, capacity and rate of the memory, chips that fast links join."""
    peaks = chip.peak_flop_per_s
    peak = peaks.get("bf16") or peaks.get("fp16") or next(iter(peaks.values()))
    return (peak.value, chip.hbm_bytes.value, chip.hbm_bytes_per_s.value, chip.intra.max_domain_chips)


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second
