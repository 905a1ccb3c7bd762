"""A DeviceProfile made small: its figures as they are, its operators packed, to wait for those of other devices."""

import pickle
import zlib
from dataclasses import dataclass, replace

from traces.xplane.profile import DeviceProfile, OpSum
from traces.xplane.report import WorkSums, work_sums


@dataclass(frozen=True, slots=True)
class ProfileParts:
    """One device. profile: without its operators; work: sums over those; packed_ops: `ops_of`."""

    profile: DeviceProfile
    work: WorkSums
    packed_ops: bytes


def profile_parts(profile: DeviceProfile) -> ProfileParts:
    """The parts of a profile."""
    packed = zlib.compress(pickle.dumps(profile.ops), level=1)
    return ProfileParts(replace(profile, ops=()), work_sums(profile), packed)


def ops_of(parts: ProfileParts) -> tuple[OpSum, ...]:
    """The operators again."""
    ops: tuple[OpSum, ...] = pickle.loads(zlib.decompress(parts.packed_ops))  # noqa: S301 - packed by this program
    return ops
