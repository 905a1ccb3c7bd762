"""Transfers between TPU slices as an XProf user reads them: the record."""

from pydantic import Field

from projector.specs.record import Record


class MegascaleTransfer(Record):
    """One collective between slices over the data center network, over its occurrences on all devices of the profile.

    Definitions are those of XProf's Megascale Stats (`traces.xplane.transfers`); times are means over occurrences.
    """

    name: str = Field(description="the rendezvous, as XLA wrote it; untrusted text")
    transfer_type: str = Field(description="as in XLA, e.g. ALL_REDUCE; '' where not stated")
    send_op: str = Field(description="operator that begins it; untrusted text")
    recv_op: str = Field(description="operator that ends it; untrusted text")
    devices: int = Field(ge=1)
    occurrences: int = Field(ge=1, description="on all devices together")
    slack_ps: float = Field(ge=0, description="from send to recv-done without the time in transfer operators")
    observed_ps: float = Field(ge=0, description="from the start of the send to the end of the recv-done")
    stall_ps: float = Field(ge=0, description="send + send-done + recv + recv-done")
    send_ps: float = Field(ge=0)
    send_done_ps: float = Field(ge=0)
    recv_ps: float = Field(ge=0)
    recv_done_ps: float = Field(ge=0)
    total_stall_ps: int = Field(ge=0, description="sum over occurrences and devices")
    transmitted_bytes: int | None = Field(
        None, description="one device puts on the network for one occurrence; None where buffer or group is not stated"
    )
    required_bytes_per_s: float | None = Field(
        None, description="transmitted_bytes / slack of one device; None also where there is no slack"
    )
    host_ps: float | None = Field(None, description="mean run on the host, first action to last; None: not recorded")
    received_bytes_per_s: float | None = Field(
        None, description="bytes of the messages that came in over the time they were under way; None: not recorded"
    )
