"""SI constants and the only conversions between base units and the units people read.

Inside the packages everything is base SI (seconds, bytes, FLOP); traces are integer nanoseconds.
Sizes are decimal: 1 GB = 1e9 bytes.
"""

KILO = 1e3
MEGA = 1e6
GIGA = 1e9
TERA = 1e12
PETA = 1e15

S_PER_HOUR = 3_600.0
S_PER_DAY = 86_400.0

NS_PER_S = 1_000_000_000
NS_PER_US = 1_000
NS_PER_MS = 1_000_000


def s_to_ms(seconds: float) -> float:
    """Seconds to milliseconds."""
    return seconds * 1e3


def ns_to_s(nanoseconds: int | float) -> float:
    """Nanoseconds to seconds."""
    return nanoseconds / NS_PER_S


def ns_to_ms(nanoseconds: int | float) -> float:
    """Nanoseconds to milliseconds."""
    return nanoseconds / NS_PER_MS


def bytes_to_gb(size_bytes: float) -> float:
    """Bytes to decimal gigabytes."""
    return size_bytes / GIGA
