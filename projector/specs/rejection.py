"""Rejection: why a plan was refused, as data."""

from typing import Literal

from pydantic import computed_field

from projector.specs.record import Record


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
