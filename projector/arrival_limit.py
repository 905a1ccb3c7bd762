"""ArrivalLimit: whether plans serve what arrives, and the refusal of those that do not."""

from dataclasses import dataclass

from projector.graph.columns import Column, Switch
from projector.specs.objective import Rejection


@dataclass(frozen=True)
class ArrivalLimit:
    """Requests that arrive a second over the fleet, and what each plan can serve at most (columns)."""

    rate_per_s: float
    capacity_per_s: Column

    @property
    def kept_up(self) -> Switch:
        """Plans that serve what arrives."""
        found: Switch = self.rate_per_s < self.capacity_per_s
        return found

    def rejections(self, index: int) -> tuple[Rejection, ...]:
        """Why a plan does not keep up; none where it does."""
        if self.kept_up[index]:
            return ()
        return (
            Rejection(
                rule="request_rate_per_s",
                quantity="arrival rate",
                value=self.rate_per_s,
                limit=float(self.capacity_per_s[index]),
                unit="requests/s",
            ),
        )
