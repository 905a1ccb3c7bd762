"""What is optimised (Objective), what must hold (Slo), and why a plan was refused (Rejection)."""

from typing import Literal

from pydantic import Field, computed_field

from projector.errors import UnknownName
from projector.specs.plan import Phase
from projector.specs.record import Record

Direction = Literal["maximise", "minimise"]


class Objective(Record):
    """One figure to optimise, with its unit and direction."""

    name: str
    unit: str
    direction: Direction
    phases: tuple[Phase, ...]
    meaning: str


OBJECTIVES: tuple[Objective, ...] = (
    Objective(
        name="tokens_per_s_per_chip",
        unit="tokens/s/chip",
        direction="maximise",
        phases=("training",),
        meaning="trained tokens a second and chip",
    ),
    Objective(
        name="step_time_s", unit="s", direction="minimise", phases=("training",), meaning="time of one optimizer step"
    ),
    Objective(
        name="mfu",
        unit="fraction",
        direction="maximise",
        phases=("training",),
        meaning="model FLOP (attention whole, the causal mask not taken off) over peak FLOP of the compute dtype",
    ),
    Objective(
        name="memory_per_chip_gb",
        unit="GB",
        direction="minimise",
        phases=("training", "serving"),
        meaning="peak HBM in use on the fullest chip",
    ),
    Objective(
        name="cost_per_million_tokens",
        unit="USD",
        direction="minimise",
        phases=("training", "serving"),
        meaning="price of a million trained or generated tokens, on chips whose list price is known",
    ),
    Objective(
        name="energy_per_token_j",
        unit="J",
        direction="minimise",
        phases=("training",),
        meaning="energy of the chips a trained token, on chips whose board power is known",
    ),
    Objective(
        name="decode_throughput_tps_per_gpu",
        unit="tokens/s/chip",
        direction="maximise",
        phases=("serving",),
        meaning="generated tokens a second and chip",
    ),
    Objective(
        name="total_throughput_tps_per_gpu",
        unit="tokens/s/chip",
        direction="maximise",
        phases=("serving",),
        meaning="prompt and generated tokens a second and chip",
    ),
    Objective(name="ttft_ms", unit="ms", direction="minimise", phases=("serving",), meaning="mean time to first token"),
    Objective(name="itl_ms", unit="ms", direction="minimise", phases=("serving",), meaning="mean inter-token latency"),
    Objective(
        name="request_latency_ms",
        unit="ms",
        direction="minimise",
        phases=("serving",),
        meaning="mean end-to-end request latency",
    ),
)


def find_objective(name: str, phase: Phase) -> Objective:
    """The objective of this name. UnknownName with the nearest ones of the phase where it has none such."""
    known = {entry.name: entry for entry in OBJECTIVES if phase in entry.phases}
    if name not in known:
        raise UnknownName(f"{phase} objective", name, known)
    return known[name]


DEFAULT_OBJECTIVE: dict[Phase, str] = {
    "training": "tokens_per_s_per_chip",
    "serving": "decode_throughput_tps_per_gpu",
}


class Slo(Record):
    """Latency budgets in milliseconds; None leaves one unconstrained."""

    ttft_ms: float | None = Field(None, gt=0, description="mean time to first token")
    tpot_ms: float | None = Field(None, gt=0, description="mean time per output token after the first")
    request_latency_ms: float | None = Field(None, gt=0, description="mean end-to-end request latency")


class Rejection(Record):
    """Why a plan was refused, as data; the text is derived.

    `comparison` is the relation the value violates by holding: "TTFT 812.4 ms > 500.0 ms".
    """

    rule: str
    quantity: str
    value: float
    limit: float
    unit: str = ""
    comparison: Literal[">", "<", "does not divide", "!="] = ">"

    @computed_field  # type: ignore[prop-decorator]
    @property
    def text(self) -> str:
        """The refusal as a sentence fragment that names the limit and the overshoot."""

        def number(x: float) -> str:
            return f"{x:.0f}" if self.unit == "" and float(x).is_integer() else f"{x:.1f}"

        unit = f" {self.unit}" if self.unit else ""
        return f"{self.quantity} {number(self.value)}{unit} {self.comparison} {number(self.limit)}{unit}"
