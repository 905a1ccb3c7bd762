"""The operator table and the headline figures of a profile, as an XProf user reads them: the records.

Roofline (https://openxla.org/xprof/roofline_model): an operator of W FLOP that moves B_m bytes through memory m in t
seconds uses the fraction W / (t P) of the peak arithmetic P and B_m / (t b_m) of each memory's peak bandwidth b_m. The
largest of these fractions is its roofline efficiency, and the resource it belongs to is what bounds it. W and B_m are
the compiler's figures for the operator, P and b_m the peaks the plane states for its device; where either is missing
the result is unknown. Figures above 1 are left as they are: the time of an asynchronous start or done is not the time
of its transfer.
"""

from typing import Final, Literal

from pydantic import Field

from projector.specs.record import Record

Bound = Literal["compute", "hbm", "cmem_read", "cmem_write", "vmem_read", "vmem_write", "unknown"]
BOUNDS: Final[tuple[Bound, ...]] = ("compute", "hbm", "cmem_read", "cmem_write", "vmem_read", "vmem_write")
"""Resources in the order of `Cost.figures` and of `Peaks.figures`."""

PS_PER_S: Final = 1e12


class OpRow(Record):
    """One operator, summed over its occurrences on all devices of the profile.

    Only operators with `attributed` may decide anything: of the others the profile does not say what they are. They are
    listed so that the times add up to the busy time, with bound "unknown" and without efficiencies.
    """

    name: str = Field(description="as the profiler wrote it; untrusted text")
    category: str = Field(description="HLO category, or the opcode a name begins with; '' where neither is known")
    event_class: Literal["compute", "communication", "copy"]
    framework_op: str = Field("", description="framework operator the compiler made it from; untrusted text")
    total_ps: int = Field(ge=0, description="own time (without operators inside), summed over occurrences and devices")
    count: int = Field(ge=1)
    average_ps: float = Field(ge=0, description="total_ps / count")
    share_of_step_frac: float = Field(ge=0, description="total_ps over the summed time of the steps (or windows)")
    bound: Bound
    roofline_efficiency_frac: float | None = Field(None, ge=0)
    compute_efficiency_frac: float | None = Field(None, ge=0, description="FLOP/s over the peak")
    hbm_utilisation_frac: float | None = Field(None, ge=0, description="HBM bytes/s over the peak")
    memory_utilisation_frac: float | None = Field(None, ge=0, description="largest over memories with a stated peak")
    attributed: bool


class Kpis(Record):
    """Headline figures: means over the complete steps of all devices, or over the devices' windows without steps.

    Fractions are of the step. Busy and communication are what occupies a core (for a GPU: the device), as the union of
    intervals; an asynchronous collective occupies a core only while the core starts it or waits for it.
    """

    devices: int = Field(ge=1)
    steps: int = Field(ge=0, description="steps of all devices together; 0: none marked")
    step_time_s: float | None = Field(None, gt=0, description="mean; None without marked steps")
    window_s: float = Field(gt=0, description="mean duration the fractions are of: the step, or the window of a device")
    busy_s: float = Field(ge=0, description="time in operators other than waits for the host and generic async-done")
    duty_cycle_frac: float = Field(ge=0, le=1, description="busy_s / window_s")
    communication_s: float = Field(ge=0)
    communication_frac: float = Field(ge=0, le=1, description="all collectives and sends, of every kind")
    all_reduce_s: float = Field(ge=0, description="operators of category all-reduce alone")
    all_reduce_only_frac: float = Field(ge=0, le=1, description="what a KPI counts that looks at all-reduce alone")
    all_reduce_only_incomplete: bool = Field(description="communication other than all-reduce took time as well")
    in_flight_frac: float | None = Field(
        None, ge=0, le=1, description="time with an asynchronous collective between start and done; None: not recorded"
    )
    unattributed_frac: float = Field(ge=0, le=1, description="time in operators the profile does not identify")
    costed_frac: float = Field(ge=0, le=1, description="share of operator time in operators with a stated cost")
    program_goodput_frac: float | None = Field(
        None,
        ge=0,
        description="time the stated work would take at the roofline, over the step; None unless peaks are stated and "
        "nearly all operator time is costed. XProf does not publish its formula; this is ours",
    )
    basis: str = Field(description="what was averaged")
