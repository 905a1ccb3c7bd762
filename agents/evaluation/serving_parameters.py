"""Parameters of serving: every constant that was chosen on published serving points, in one table.

Nothing here is keyed by a model, a workload, a row or a source: a parameter belongs to one generation of an engine, or
to a family of chips that share silicon. Its present value stands in `projector.serving_stacks` or in the chip files;
here stand the value it would have without any fit, how far it may reasonably lie from there, and its bounds.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

from agents.evaluation.parameters import AMPERE, BLACKWELL, BLACKWELL_ULTRA, CDNA3, HOPPER, TPUS
from agents.evaluation.serving_cases import ServingCase
from projector.serving_stacks import STACKS

ADA = ("l40s", "l4")


@dataclass(frozen=True)
class ServingParameter:
    """One constant and what it may be.

    owner    "stack": a field of the engine's generation; "chip": a calibration value of the chips in `members`
    members  names of stacks, or ids of chips
    prior    its value without any fit, spread: standard deviation of its logarithm around that; low, high: bounds
    """

    name: str
    owner: Literal["stack", "chip"]
    field: str
    members: tuple[str, ...]
    prior: float
    spread: float
    low: float
    high: float
    basis: str

    def touches(self, case: ServingCase) -> bool:
        """Whether the case's projection has the parameter."""
        return (case.stack.name if self.owner == "stack" else case.hardware.id) in self.members

    def present(self, case: ServingCase) -> float:
        """The value the case is projected with."""
        record: Any = case.stack if self.owner == "stack" else case.hardware.calibration
        return float(getattr(record, self.field)) - self._stated(case)

    def _stated(self, case: ServingCase) -> float:
        """What a row's launch adds to the value: no part of the stack's habit."""
        return (case.row.wait_steps or 0.0) if self.field == "admission_steps" else 0.0

    def scaled(self, case: ServingCase, factor: float) -> ServingCase:
        """The case with the value multiplied."""
        changed = {self.field: factor * self.present(case) + self._stated(case)}
        if self.owner == "stack":
            return replace(case, stack=case.stack.model_copy(update=changed))
        calibration = case.hardware.calibration.model_copy(update=changed)
        return replace(case, hardware=case.hardware.model_copy(update={"calibration": calibration}))


# engines of one year are built from much the same kernels: they differ by tenths, not by factors
FIELDS: tuple[tuple[str, float, float, float, float, str], ...] = (
    ("kernel_factor", 1.0, 0.1, 0.25, 5.0, "kernels as long as those of training stacks"),
    ("memory_factor", 1.0, 0.04, 0.5, 1.2, "HBM as the chip's calibration says"),
    ("gemm_factor", 1.0, 0.05, 0.4, 1.4, "products as the chip's calibration says"),
    ("link_factor", 1.0, 0.3, 0.2, 12.0, "collectives as the chip's latency says"),
    ("step_s", 7.5e-4, 0.2, 1e-5, 1e-2, "scheduling and sampling of less than a millisecond"),
    ("admission_steps", 1.0, 1.0, 0.25, 20.0, "a request waits for the step under way"),
    ("request_s", 0.05, 0.2, 1e-3, 0.5, "HTTP, tokeniser, admission"),
)
CHIPS = (
    ("Ampere", AMPERE),
    ("Ada", ADA),
    ("Hopper", HOPPER),
    ("Blackwell", (*BLACKWELL, *BLACKWELL_ULTRA, "rtx-pro-6000-blackwell-se")),
    ("CDNA 3", CDNA3),
    ("TPU", TPUS),
)
SERVING_PARAMETERS: tuple[ServingParameter, ...] = (
    *(
        ServingParameter(f"{stack.name}: {field}", "stack", field, (stack.name,), prior, spread, low, high, basis)
        for stack in STACKS
        for field, prior, spread, low, high, basis in FIELDS
    ),
    *(
        ServingParameter(
            f"{family}: engine_hbm_factor", "chip", "engine_hbm_factor", chips, 1.0, 0.025, 0.6, 1.2, "as in training"
        )
        for family, chips in CHIPS
    ),
)
