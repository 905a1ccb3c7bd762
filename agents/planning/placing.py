"""A trace's figures beside the chip the trace names."""

from projector import catalog
from projector.specs.hardware import HardwareProfile
from traces.cross_rank.placed import place_links
from traces.summary_types import TraceSummary
from traces.work.placed import place_work


def chip_of(summary: TraceSummary) -> HardwareProfile | None:
    """The catalogue's chip for the device the trace names; None without one, or where the name fits none."""
    implied = summary.implied
    if implied.chip_name is None:
        return None
    return catalog.match_chip(implied.chip_name.value, float(implied.hbm_bytes.value) if implied.hbm_bytes else None)


def beside_chip(summary: TraceSummary) -> TraceSummary:
    """The summary with every field that is relative to the chip's peaks filled in; placing it again changes nothing."""
    chip = chip_of(summary)
    return place_links(place_work(summary, chip), chip)
