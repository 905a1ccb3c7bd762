"""Comparison: what changed between two measured runs, and whether a promised gain arrived."""

from typing import Literal

from pydantic import Field

from projector.breakdown import Axis, OperatorKind
from projector.specs.record import Record
from traces.measure_types import ServingPhaseName

Basis = Literal["step", "window"]
Term = Literal["compute", "exposed_communication", "exposed_copy", "idle"]
Verdict = Literal["arrived", "exceeded", "partly", "not_at_all", "worse", "inconclusive"]


class Side(Record):
    """One run. time_ns: a step (mean of the measured ones), or the window of a rank (mean over ranks) without steps."""

    files: tuple[str, ...]
    time_ns: float = Field(gt=0)
    steps: int = Field(ge=0, description="measured steps of all ranks; 0: none marked, the window is compared")
    error_ns: float | None = Field(None, ge=0, description="standard error of time_ns; None: too few steps")
    ranks: int = Field(ge=1)


class TermChange(Record):
    """One term of the window identity on the mean device, in the unit of `Comparison.basis`."""

    term: Term
    before_ns: float
    after_ns: float
    change_ns: float
    change_of_time_frac: float = Field(description="change_ns over the time before")


class KindChange(Record):
    """Kernels of one kind: summed durations, scaled to the basis."""

    kind: OperatorKind | Literal["communication", "copy"]
    before_ns: float
    after_ns: float
    change_ns: float


class CommunicationChange(Record):
    """Communication along one axis: all of it, and the exposed part."""

    axis: Axis
    before_ns: float
    after_ns: float
    before_exposed_ns: float
    after_exposed_ns: float


class PhaseChange(Record):
    """Serving steps of one phase; None: the side has none."""

    phase: ServingPhaseName
    before_median_ns: int | None
    after_median_ns: int | None


class KernelChange(Record):
    """One of the costliest kernels of either side; None: not among the kernels the summary of that side lists."""

    name: str = Field(description="as the profiler wrote it; untrusted text")
    before_ns: float | None
    after_ns: float | None


class Prediction(Record):
    """A promised change of the time, e.g. -0.2 for 20 % less, and what came of it."""

    predicted_change_frac: float
    measured_change_frac: float
    arrived_frac: float | None = Field(None, description="measured over predicted; None where nothing was predicted")
    verdict: Verdict
    why: str


class Comparison(Record):
    """BEFORE against AFTER. Negative changes are less time."""

    basis: Basis
    before: Side
    after: Side
    change_ns: float
    change_frac: float
    significant: bool | None = Field(description="beyond twice the standard error; None where no error is known")
    terms: tuple[TermChange, ...] = Field(description="they sum to change_ns")
    kinds: tuple[KindChange, ...]
    communication: tuple[CommunicationChange, ...]
    kernels: tuple[KernelChange, ...]
    phases: tuple[PhaseChange, ...] = ()
    prediction: Prediction | None = None
    cautions: tuple[str, ...] = Field((), description="why the two runs may not be of the same work")
