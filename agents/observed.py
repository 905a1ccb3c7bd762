"""Observed: figures a user read off a run without a trace of it; every one is a claim, so its evidence is "stated"."""

from pydantic import Field, model_validator

from projector.specs.record import Record
from projector.specs.workload import MOST_IMBALANCE

MOST_DEVICE_GB = 1e4  # tens of times the memory of any device there is
ROUNDING_FRAC = 0.02  # figures are read off dashboards with two digits


class PhaseTimes(Record):
    """Seconds of one step of reinforcement learning, a phase each; phases that overlap may sum to more than the step.

    sync_assembly_s and sync_wire_s are parts of weight_sync_s: building tensors on the sender, and the transfer.
    """

    generation_s: float | None = Field(None, ge=0)
    log_probabilities_s: float | None = Field(None, ge=0)
    update_s: float | None = Field(None, ge=0)
    weight_sync_s: float | None = Field(None, ge=0)
    sync_assembly_s: float | None = Field(None, ge=0)
    sync_wire_s: float | None = Field(None, ge=0)

    @model_validator(mode="after")
    def _parts_fit(self) -> "PhaseTimes":
        parts = (self.sync_assembly_s or 0.0) + (self.sync_wire_s or 0.0)
        if self.weight_sync_s is not None and parts > self.weight_sync_s * 1.02:
            raise ValueError(
                f"sync_assembly_s and sync_wire_s sum to {parts:g} s, more than weight_sync_s {self.weight_sync_s:g} s"
            )
        return self


class Observed(Record):
    """Figures of the run as it is, in the user's words; None: not stated. Fractions are of a step."""

    step_time_s: float | None = Field(None, gt=0)
    tokens_per_s: float | None = Field(None, gt=0, description="of the whole job")
    tokens_per_s_per_chip: float | None = Field(None, gt=0)
    tokens_per_step_per_chip: float | None = Field(None, gt=0, description="tokens of a step over the chips")
    useful_token_frac: float | None = Field(None, ge=0, le=1, description="tokens that are no padding")
    samples_per_s: float | None = Field(None, gt=0)
    requests_per_s: float | None = Field(None, gt=0)
    mfu_frac: float | None = Field(None, ge=0, le=1)
    peak_memory_gb: float | None = Field(
        None, gt=0, le=MOST_DEVICE_GB, description="of the fullest device, reserved memory included"
    )
    memory_limit_gb: float | None = Field(
        None, gt=0, le=MOST_DEVICE_GB, description="what the allocator may use of a device"
    )
    out_of_memory: bool | None = None
    duty_cycle_frac: float | None = Field(None, ge=0, le=1, description="time the device runs kernels")
    exposed_communication_frac: float | None = Field(None, ge=0, le=1)
    idle_frac: float | None = Field(None, ge=0, le=1)
    bubble_frac: float | None = Field(None, ge=0, le=1, description="pipeline bubble")
    host_frac: float | None = Field(None, ge=0, le=1, description="time the device waits for the host")
    recompute_frac: float | None = Field(None, ge=0, le=1)
    expert_imbalance: float | None = Field(
        None, ge=1, le=MOST_IMBALANCE, description="tokens of the fullest expert rank over the mean"
    )
    ttft_ms: float | None = Field(None, gt=0)
    tpot_ms: float | None = Field(None, gt=0)
    queued_requests: float | None = Field(None, ge=0)
    draft_acceptance_frac: float | None = Field(None, ge=0, le=1)
    shared_prefix_frac: float | None = Field(None, ge=0, le=1, description="prompt tokens that requests share")
    phases: PhaseTimes | None = Field(None, description="of reinforcement learning")

    @model_validator(mode="after")
    def _shares_fit(self) -> "Observed":
        shares = {
            name: getattr(self, name)
            for name in ("exposed_communication_frac", "idle_frac")
            if getattr(self, name) is not None
        }
        if sum(shares.values()) > 1.001:
            raise ValueError(f"{' and '.join(shares)} sum to {sum(shares.values()):g} of the step, more than 1")
        waits = sum(shares.values())
        if shares and self.mfu_frac is not None and self.mfu_frac + waits > 1 + ROUNDING_FRAC:
            raise ValueError(
                f"mfu_frac {self.mfu_frac:g} leaves {1 - self.mfu_frac:.3g} of the step at most for what is no "
                f"arithmetic, and {' and '.join(shares)} take {waits:g}"
            )
        if self.duty_cycle_frac is not None and self.idle_frac is not None:
            total = self.duty_cycle_frac + self.idle_frac
            if total > 1.01:
                raise ValueError(f"duty_cycle_frac and idle_frac sum to {total:g}, more than 1")
        return self

    @property
    def stated(self) -> dict[str, float | bool]:
        """The figures that are stated, by name; those of phases under their own names."""
        found = {name: value for name, value in self if value is not None and name != "phases"}
        if self.phases is not None:
            found |= {name: value for name, value in self.phases if value is not None}
        return found
