"""Which events have times that can be right."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from traces.trace import Category, Ints, Mask

Codes = NDArray[np.int8]

NS_PER_DAY: Final = 86_400_000_000_000
ON_DEVICE: Final = frozenset({Category.KERNEL, Category.MEMCPY, Category.MEMSET, Category.DEVICE_ANNOTATION})


def believable(
    starts: Ints, durations: Ints, start_read: Mask, duration_read: Mask, category: Codes, texts: Sequence[bytes]
) -> tuple[Mask, tuple[str, ...]]:
    """Rows whose times can be right, and a sentence for each reason to drop others."""
    missing = np.fromiter((not text or text == b"null" for text in texts), dtype=np.bool_, count=len(texts))
    reasons = (
        (~start_read, "had no readable start"),
        (missing, "had no duration (unfinished when the profile ended)"),
        (~duration_read & ~missing, "had an unreadable duration"),
        (duration_read & (durations < 0), "had a negative duration (unfinished when the profile ended)"),
        (duration_read & (durations > NS_PER_DAY), "lasted longer than a day"),
        (start_read & _far_off(starts, start_read, category), "started more than a day away from the others"),
    )
    keep = np.ones(len(starts), dtype=np.bool_)
    told: list[str] = []
    for wrong, why in reasons:
        wrong = wrong & keep
        keep &= ~wrong
        if count := int(wrong.sum()):
            on_device = int((wrong & _device_mask(category)).sum())
            told.append(f"{count:,} events {why} and were dropped ({on_device:,} of them on the device)")
    return keep, tuple(told)


def _device_mask(category: Codes) -> Mask:
    return np.isin(category, [int(one) for one in ON_DEVICE])


def _far_off(starts: Ints, read: Mask, category: Codes) -> Mask:
    """Starts more than a day from the median of their side (host or device): clocks that were never set."""
    far = np.zeros(len(starts), dtype=np.bool_)
    device = _device_mask(category)
    for side in (device, ~device):
        known = side & read
        if known.any():
            middle = np.sort(starts[known])[int(known.sum()) // 2]
            far |= side & (np.abs(starts - middle) > NS_PER_DAY)
    return far
