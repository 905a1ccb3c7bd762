"""What an evaluation of serving rows hands back: frozen records, fractions throughout."""

from pydantic import Field

from agents.evaluation.reports import FittedParameter, IntervalClass, Reason
from projector.specs.plan import ParallelismPlan
from projector.specs.record import Record


class ServingFigures(Record):
    """Errors of one projected figure (projected / measured - 1 is that of a row) over the rows of one value."""

    by: str
    value: str
    metric: str
    n: int = Field(ge=1)
    mape: float
    median_error: float
    bias: float
    spearman: float | None = Field(None, description="None: fewer than four distinct measured values")
    coverage_80: float = Field(description="share measured inside the interval")
    ratio_10: float = Field(description="10th percentile of measured over projected")
    ratio_90: float
    roofline_mape: float | None = Field(None, description="TPOT alone: weights and KV read once at 70 % of HBM's rate")
    roofline_median_error: float | None = None
    roofline_spearman: float | None = None


class ServingPoint(Record):
    """One figure of one modelled row."""

    id: str
    source: str
    model: str
    chip: str
    engine: str
    release: str
    mode: str
    metric: str
    statistic: str
    measured: float
    projected: float
    too_large: bool
    assumed: tuple[str, ...]
    plan: ParallelismPlan


class ServingFold(Record):
    """Errors of one figure with one set of constants, or one set a group; times and rates as they are printed."""

    name: str
    kind: str = Field(description="dense or mixture of experts")
    metric: str
    n: int
    mape: float
    median_error: float
    bias: float


class ServingFolds(Record):
    """How far the figures rest on the very rows they are printed for."""

    statement: str
    figures: tuple[ServingFold, ...]
    parameters: tuple[FittedParameter, ...]
    intervals: tuple[IntervalClass, ...] = Field(description="TPOT out of fold beside the factors in use")
    ranks: tuple[ServingFigures, ...] = Field(
        description="TPOT out of fold by model, chip and engine: order and errors"
    )


class ServingReport(Record):
    """`shardwise eval accuracy` of serving rows."""

    n_given: int
    n_modelled: int
    n_repeated: int = Field(description="rows that print the measured point of an earlier row; counted once")
    n_ineligible: int
    n_refused: int
    too_large: int = Field(description="modelled rows, all of which ran, that are projected not to fit")
    figures: tuple[ServingFigures, ...]
    assumed: dict[str, int] = Field(description="what was taken for granted -> modelled rows")
    repeated: tuple[Reason, ...]
    ineligible: tuple[Reason, ...]
    refusals: tuple[Reason, ...]
    folds: ServingFolds | None = None
    points: tuple[ServingPoint, ...] = ()
