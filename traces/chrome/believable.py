"""Which events have times that can be right."""

from collections.abc import Collection, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from traces.chrome.categories import ON_DEVICE
from traces.trace import Ints, Mask

Codes = NDArray[np.int8]

NS_PER_DAY: Final = 86_400_000_000_000


def believable(
    starts: Ints,
    durations: Ints,
    category: Codes,
    start_faults: Mapping[int, bytes],
    duration_faults: Mapping[int, bytes],
) -> tuple[Mask, tuple[str, ...]]:
    """Rows whose times can be right, and a sentence for each reason to drop others. faults: row -> unreadable text."""
    unread = _mask(start_faults, len(starts))
    missing = _mask([row for row, text in duration_faults.items() if text in (b"", b"null")], len(starts))
    reasons = (
        (unread, "had no readable start"),
        (missing, "had no duration (unfinished when the profile ended)"),
        (_mask(duration_faults, len(starts)), "had an unreadable duration"),
        (durations < 0, "had a negative duration (unfinished when the profile ended)"),
        (durations > NS_PER_DAY, "lasted longer than a day"),
        (_far_off(starts, ~unread, category), "started more than a day away from the others"),
    )
    keep = np.ones(len(starts), dtype=np.bool_)
    told: list[str] = []
    for wrong, why in reasons:
        if not wrong.any():
            continue
        wrong = wrong & keep
        keep &= ~wrong
        if count := int(wrong.sum()):
            on_device = int((wrong & _device_mask(category)).sum())
            told.append(f"{count:,} events {why} and were dropped ({on_device:,} of them on the device)")
    return keep, tuple(told)


def _mask(rows: Collection[int], length: int) -> Mask:
    mask = np.zeros(length, dtype=np.bool_)
    mask[np.fromiter(rows, dtype=np.int64, count=len(rows))] = True
    return mask


def _device_mask(category: Codes) -> Mask:
    return np.isin(category, [int(one) for one in ON_DEVICE])


def _far_off(starts: Ints, read: Mask, category: Codes) -> Mask:
    """Starts more than a day from the median of their side (host or device): clocks that were never set."""
    if not len(starts) or (read.all() and starts.max() - starts.min() <= NS_PER_DAY):
        return np.zeros(len(starts), dtype=np.bool_)
    far = np.zeros(len(starts), dtype=np.bool_)
    device = _device_mask(category)
    for side in (device, ~device):
        known = side & read
        if known.any():
            middle = np.sort(starts[known])[int(known.sum()) // 2]
            far |= known & (np.abs(starts - middle) > NS_PER_DAY)
    return far
