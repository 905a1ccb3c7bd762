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
# Decoding reads memory and computes little: capping an H100 at half of its board power left the latency of decoding as
# it was and lengthened prefill (Splitwise, arXiv:2311.18677). Its draw lies a little above that, assumed.
DECODING_FRAC = 0.6
IDLE_FRAC: dict[ChipKind, float] = {"gpu": 0.15, "tpu": 0.45, "trainium": 0.3}


@dataclass(frozen=True)
class ChipPower:
    """Watts of one chip in each state, and the sentence that says what they rest on."""

    computing_w: float
    communicating_w: float
    idle_w: float
    basis: str
    decoding_w: float
    serving_basis: str

    @classmethod
    def of(cls, hardware: HardwareProfile) -> "ChipPower | None":
        """The power of a chip; None where its file states none."""
        board = hardware.tdp_w
        if board is None:
            return None
        idle = IDLE_FRAC[hardware.kind]
        recalled = " (recalled, not re-read)" if board.unverified else ""
        waits = f"{COMMUNICATING_FRAC:.0%} of that while it only communicates and {idle:.0%} while it waits (assumed)"
        chip, left_out = f"{board.value:g} W a {hardware.id}{recalled}", "hosts, network and cooling are not in it"
        return cls(
            computing_w=COMPUTING_FRAC * board.value,
            communicating_w=COMMUNICATING_FRAC * board.value,
            idle_w=idle * board.value,
            decoding_w=DECODING_FRAC * board.value,
            basis=f"energy is modelled: {chip} while it computes, {waits}; {left_out}",
            serving_basis=(
                f"energy is modelled: {chip} in steps with a prompt, {DECODING_FRAC:.0%} of that while it decodes, "
                f"{waits}; {left_out}"
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

    def mean_serving_w(
        self, prefill_s: Column, decode_s: Column, communication_s: Column, idle_s: Column, busy_frac: Column | float
    ) -> Column:
        """Watts a chip draws in the mean over engines of which busy_frac have work, shape [n].

        As `mean_w`, with the compute of decode steps (decode_s) apart from that of steps that carry a prompt.
        """
        energy_j = (
            self.computing_w * prefill_s
            + self.decoding_w * decode_s
            + self.communicating_w * communication_s
            + self.idle_w * idle_s
        )
        busy_w = energy_j / (prefill_s + decode_s + communication_s + idle_s)
        watts: Column = busy_frac * busy_w + (1 - busy_frac) * self.idle_w
        return watts
