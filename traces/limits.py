"""How much of a file is believed."""

from dataclasses import dataclass
from typing import Final

from projector.errors import TraceTooLarge

RATIO_CHECKED_FROM_BYTES: Final = 32 << 20
"""Below so many bytes a repetitive file is no bomb."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a file is believed. A passed limit raises `TraceTooLarge`, never cuts silently.

    max_ratio is decompressed over compressed size; real traces reach about 40, a bomb about 1000. It is checked once
    32 MiB came out, so that a small repetitive file is not refused. The limits of a file hold for each member of an
    archive; max_files and max_unpacked_bytes are for all files of a job, and for what archives put on disk, which
    max_ratio holds for as well. max_devices is for one file: each device is summarised on its own.
    """

    max_compressed_bytes: int = 1 << 30
    max_decompressed_bytes: int = 4 << 30
    max_ratio: float = 200.0
    max_events: int = 20_000_000
    max_depth: int = 64
    max_files: int = 10_000
    max_unpacked_bytes: int = 32 << 30
    max_devices: int = 1_024

    def check(self, name: str, value: float, what: str) -> None:
        """Raise `TraceTooLarge` where `value` is above the limit called `name`."""
        limit = getattr(self, name)
        if value > limit:
            raise TraceTooLarge(
                f"{what} is at least {value:,.0f}, {value - limit:,.0f} over the limit of {limit:,.0f}",
                hint=f"limit {name}; profile fewer steps, or raise the limit",
            )
