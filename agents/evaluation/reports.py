"""What an evaluation hands back: frozen records, fractions throughout, None where nothing could be counted."""

from pydantic import Field

from projector.specs.plan import ParallelismPlan
from projector.specs.record import Record


class ErrorFigures(Record):
    """Errors of projected against measured step time; projected / measured - 1 is the error of a row."""

    n: int = Field(ge=0, description="rows with a measured speed")
    mape: float | None = Field(None, description="mean absolute error")
    median_error: float | None = Field(None, description="median absolute error")
    bias: float | None = Field(None, description="mean error; negative: projected too fast")
    coverage_80: float | None = Field(None, description="share measured inside the 80 % interval of the projection")
    width_80: float | None = Field(None, description="median of the interval's width over the projected time")
    ratio_10: float | None = Field(None, description="10th percentile of measured over projected")
    ratio_90: float | None = Field(None, description="90th percentile of measured over projected")


class Slice(Record):
    """The figures of the rows that share a value of one property. n_refused counts refusals, suspects apart."""

    by: str
    value: str
    n_given: int = Field(ge=0)
    n_suspect: int = Field(ge=0)
    n_modelled: int = Field(ge=0)
    errors: ErrorFigures


class Reason(Record):
    """Why rows were left out, how many, and which where the caller asked."""

    reason: str
    n: int = Field(ge=1)
    ids: tuple[str, ...] = ()


class SweepGroup(Record):
    """Rows of one workload, source and release that differ in configuration.

    Regret: how much slower than the best measured row of the group the projector's pick is (of its three best picks the
    fastest). Order: pairs that differ by more than 5 % as measured and in configuration; a tie is not the right order.
    """

    name: str
    source: str
    n_given: int = Field(ge=2)
    n_modelled: int = Field(ge=2)
    spread: float = Field(description="slowest over fastest measured row")
    top1_regret: float = Field(ge=0)
    top3_regret: float = Field(ge=0)
    pairs: int = Field(ge=0)
    right_pairs: int = Field(ge=0)
    tied_pairs: int = Field(ge=0)
    spearman: float | None = Field(None, description="of groups of at least four distinct measured times")


class SweepFigures(Record):
    """Several groups together: regret as the mean over groups, order over all their pairs."""

    value: str
    groups: int = Field(ge=0)
    rows: int = Field(ge=0)
    pairs: int = Field(ge=0)
    tied_pairs: int = Field(ge=0)
    order_accuracy: float | None = None
    top1_regret: float | None = None
    top1_regret_worst: float | None = None
    top3_regret: float | None = None
    top3_regret_worst: float | None = None
    spearman: float | None = Field(None, description="mean over the groups that have one")


class MemoryFigures(Record):
    """Memory of rows that print it, counted as their framework does, and what is called out of memory."""

    value: str
    n: int = Field(ge=0, description="rows that print memory")
    mape: float | None = None
    median_error: float | None = None
    bias: float | None = None
    ran: int = Field(ge=0, description="modelled rows that ran")
    ran_called_too_large: int = Field(ge=0)
    out_of_memory: int = Field(ge=0, description="modelled rows that went out of memory")
    out_of_memory_flagged: int = Field(ge=0)


class ScoredRow(Record):
    """One modelled row. Times are seconds of one step; None: the row prints no speed."""

    id: str
    source: str
    framework: str
    chip: str
    chips: int
    model: str
    phase: str
    stratum: str
    target: str | None
    measured_s: float | None
    projected_s: float
    low_s: float
    high_s: float
    measured_memory_bytes: float | None
    projected_memory_bytes: float | None
    fit: str
    superseded: bool
    assumed: tuple[str, ...]
    broken_rules: tuple[str, ...]
    plan: ParallelismPlan


class FoldFigures(Record):
    """Errors of all rows, and order and regret inside same-day sweeps, with one set of constants or one fold each."""

    name: str
    errors: ErrorFigures
    order_accuracy: float | None
    top1_regret: float | None
    top1_regret_worst: float | None


class FittedParameter(Record):
    """One constant: without any fit, as it stands, fitted on all rows given; and what bears on it."""

    name: str
    prior: float
    spread: float = Field(description="standard deviation of its logarithm around the prior")
    basis: str = Field(description="where the prior comes from")
    present: float
    fitted: float
    rows: int
    groups: int


class Check(Record):
    """A left-out group projected again with the values of its fold, beside the linear form."""

    group: str
    rows: int
    linear_mape: float
    projected_mape: float
    median_difference: float
    largest_difference: float


class IntervalClass(Record):
    """Measured over projected time out of fold in one class of intervals, beside the factors in use."""

    name: str
    runs: int
    low_factor: float
    high_factor: float
    ratio_10: float
    ratio_90: float
    coverage_80: float


class Constant(Record):
    """One calibration value of a chip file, or one figure of a software preset, and what it is said to rest on."""

    owner: str = Field(description="id of the chip, or 'software'")
    name: str
    value: float
    basis: str
    rows: int = Field(description="modelled rows it bears on that print a speed")
    groups: int = Field(description="(family, chip) groups of these rows")


class Folds(Record):
    """How far the figures rest on the very rows they are printed for."""

    statement: str
    figures: tuple[FoldFigures, ...] = Field(description="as projected, fitted on all, group left out, source left out")
    parameters: tuple[FittedParameter, ...]
    checks: tuple[Check, ...]
    intervals: tuple[IntervalClass, ...]
    constants: tuple[Constant, ...]
    sources: dict[str, str] = Field(description="chip -> where its file says the calibration comes from")


class AccuracyReport(Record):
    """`shardwise eval accuracy`. The keys up to memory_median_error are stable; figures are fractions."""

    n_given: int
    n_modelled: int
    mape: float | None
    median_error: float | None
    bias: float | None
    coverage_80: float | None
    width_80: float | None
    order_accuracy: float | None
    top1_regret: float | None
    top3_regret: float | None
    memory_median_error: float | None
    n_suspect: int
    n_ineligible: int
    n_refused: int
    refused_share: float | None = Field(description="refused over given, without suspects and ineligible rows")
    all_rows: ErrorFigures
    newest: ErrorFigures = Field(description="rows that no newer release of the same workload supersedes")
    nothing_assumed: ErrorFigures = Field(description="rows that leave no knob open")
    assumed: dict[str, int] = Field(description="knob -> modelled rows that leave it open")
    slices: tuple[Slice, ...]
    sweeps: tuple[SweepFigures, ...] = Field(description="same source and release: all, then by source")
    mixed_sweeps: tuple[SweepFigures, ...] = Field(description="workloads whose rows mix sources or releases")
    sweep_groups: tuple[SweepGroup, ...]
    memory: tuple[MemoryFigures, ...] = Field(description="all rows, then by source")
    suspects: tuple[Reason, ...]
    ineligible: tuple[Reason, ...]
    refusals: tuple[Reason, ...]
    broken_rules: tuple[Reason, ...] = Field(description="runs that our legality rules would not have allowed")
    folds: Folds | None = None
    rows: tuple[ScoredRow, ...] = ()


class Rate(Record):
    """A share of workloads with its 95 % Wilson interval. Weighted by layout, hits need not be whole."""

    hits: float
    n: int
    rate: float | None
    low: float | None
    high: float | None


class Stratum(Record):
    """Hit rates of one stratum. `weighted_by`: every workload once, or every distinct layout key once."""

    stratum: str
    weighted_by: str
    n: int
    n_ranked: int = Field(description="workloads the planner found plans for; the others count as missed")
    top1: Rate
    top3: Rate
    top1_strict: Rate
    top3_strict: Rate
    tolerant: Rate = Field(description="hit in three, or as good by measurement or else within 5 % by projection")
    tolerant_2: Rate = Field(description="hit in three, or projected within 2 % of the best")
    flatness: float | None = Field(description="median number of layouts projected within 5 % of the best")
    median_rank: float | None = Field(description="of the adopted layout among all that fit, where it is one of them")
    outside: int = Field(description="adopted layouts that are not in the search space")
    too_large: int = Field(description="adopted layouts that are projected not to fit")
    baseline_common_top1: Rate
    baseline_common_top3: Rate
    baseline_common_in_sample_top3: Rate
    baseline_same_model_top1: Rate
    baseline_same_model_top3: Rate


class Detail(Record):
    """How often the plan of a hit also agrees on a field the published row prints."""

    field: str
    rate: Rate


class Proposed(Record):
    """One of the three proposals."""

    layout: tuple[int, int, int, int] = Field(description="tp, pp, cp, ep")
    step_time_s: float
    legal: bool
    plan: ParallelismPlan


class WorkloadHits(Record):
    """One workload. rank None: the adopted layout is not among the layouts that fit, `absent` says why."""

    workload_id: str
    stratum: str
    adopted: tuple[tuple[int, int, int, int], ...]
    proposals: tuple[Proposed, ...]
    rank: int | None
    absent: str
    layouts: int
    within_5_percent: int
    plans: int
    hit_top1: bool
    hit_top3: bool
    tolerant: bool


class TopkReport(Record):
    """`shardwise eval topk`. The keys up to baseline_same_model_top3 are stable; figures are fractions."""

    n: int
    nontrivial_n: int
    nontrivial_top1: float | None
    nontrivial_top3: float | None
    nontrivial_tolerant: float | None
    trivial_top1: float | None
    legal_share: float | None
    baseline_common_top3: float | None
    baseline_same_model_top3: float | None
    phase: str
    framework: str
    nontrivial_flatness: float | None
    strata: tuple[Stratum, ...]
    details: tuple[Detail, ...]
    refusals: tuple[Reason, ...]
    notes: tuple[str, ...]
    workloads: tuple[WorkloadHits, ...] = ()
