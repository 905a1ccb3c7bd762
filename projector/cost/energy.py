"""Electrical energy of a step: what the chips draw while they compute, communicate and wait."""

from dataclasses import dataclass

from projector.graph.columns import Column
from projector.specs.hardware import ChipKind, HardwareProfile

# Shares of a chip's board power. Computing: training reaches the limit of the board in its arithmetic phases and falls
# well below it while it only exchanges gradients (Patel et al. 2024, doi:10.1145/3620666.3651329). Communicating: no
# published share was found, assumed half way. Idle: 60 of 400 W is told of an A100 and 105 of 700 W of an H100; of a
# TPU v4 90 W as the least and 192 W as the most measured (cloud.google.com/tpu/docs/v4); of Trainium nothing, assumed.
COMPUTING_FRAC = 1.0
COMMUNICATING_FRAC = 0.5
IDLE_FRAC: dict[ChipKind, float] = {"gpu": 0.15, "tpu": 0.45, "trainium": 0.3}


@dataclass(frozen=True)
class ChipPower:
    """Watts of one chip in each state, and the sentence that says what they rest on."""

    computing_w: float
    communicating_w: float
    idle_w: float
    basis: str

    @classmethod
    def of(cls, hardware: HardwareProfile) -> "ChipPower | None":
        """The power of a chip; None where its file states none."""
        board = hardware.tdp_w
        if board is None:
            return None
        idle = IDLE_FRAC[hardware.kind]
        recalled = " (recalled, not re-read)" if board.unverified else ""
        return cls(
            computing_w=COMPUTING_FRAC * board.value,
            communicating_w=COMMUNICATING_FRAC * board.value,
            idle_w=idle * board.value,
            basis=(
                f"energy is modelled: {board.value:g} W a {hardware.id}{recalled} while it computes, "
                f"{COMMUNICATING_FRAC:.0%} of that while it only communicates and {idle:.0%} while it waits (assumed); "
                "hosts, network and cooling are not in it"
            ),
        )

    def mean_w(self, compute_s: Column, communication_s: Column, idle_s: Column) -> Column:
        """Watts a chip draws over a step of these parts, shape [n].

        (P_compute t_compute + P_communicate t_exposed + P_idle t_idle) / (t_compute + t_exposed + t_idle)

        What waits for copies from the host is idle. The parts are those of a device of the slowest pipeline stage; the
        others wait longer and draw less.
        """
        energy_j = self.computing_w * compute_s + self.communicating_w * communication_s + self.idle_w * idle_s
        watts: Column = energy_j / (compute_s + communication_s + idle_s)
        return watts
