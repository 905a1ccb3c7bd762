"""Transfers between slices of a whole profile, from the sums of its devices."""

from collections.abc import Sequence

from traces.xplane.megascale_types import MegascaleTransfer
from traces.xplane.op_table import PS_PER_S
from traces.xplane.profile import DeviceProfile
from traces.xplane.transfers import TransferSum


def megascale_table(profiles: Sequence[DeviceProfile]) -> tuple[MegascaleTransfer, ...]:
    """One row a rendezvous, the one that stalls the devices most first."""
    found: dict[str, list[TransferSum]] = {}
    for profile in profiles:
        for one in profile.transfers:
            found.setdefault(one.rendezvous, []).append(one)
    rows = (_row(name, sums) for name, sums in found.items())
    return tuple(sorted(rows, key=lambda row: (-row.total_stall_ps, row.name)))


def _row(name: str, sums: Sequence[TransferSum]) -> MegascaleTransfer:
    count = sum(one.count for one in sums)
    slack_ps = sum(one.slack_ps for one in sums) / count
    sizes = {one.bytes_each for one in sums}
    size = sizes.pop() if len(sizes) == 1 else None
    hosts = [one.host for one in sums if one.host is not None]
    runs, transport_ps = sum(host.runs for host in hosts), sum(host.transport_ps for host in hosts)
    types = {one.transfer_type for one in sums}
    return MegascaleTransfer(
        name=name,
        transfer_type=types.pop() if len(types) == 1 else "",
        send_op=sums[0].send_op,
        recv_op=sums[0].recv_op,
        devices=len(sums),
        occurrences=count,
        slack_ps=slack_ps,
        observed_ps=sum(one.observed_ps for one in sums) / count,
        stall_ps=sum(one.stall_ps for one in sums) / count,
        send_ps=sum(one.send_ps for one in sums) / count,
        send_done_ps=sum(one.send_done_ps for one in sums) / count,
        recv_ps=sum(one.recv_ps for one in sums) / count,
        recv_done_ps=sum(one.recv_done_ps for one in sums) / count,
        total_stall_ps=sum(one.stall_ps for one in sums),
        transmitted_bytes=size,
        required_bytes_per_s=size * PS_PER_S / slack_ps if size is not None and slack_ps > 0 else None,
        host_ps=sum(host.total_ps for host in hosts) / runs if runs else None,
        received_bytes_per_s=(
            sum(host.received_bytes for host in hosts) * PS_PER_S / transport_ps if transport_ps else None
        ),
    )
