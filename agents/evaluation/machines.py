"""The machine of a row: its chip from the catalogue, and the cluster it makes up."""

import math

from agents.evaluation.refusal import Refused
from agents.evaluation.rows import MeasuredRow
from projector.catalog import chip
from projector.errors import ShardwiseError
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile


def chip_of(name: str) -> HardwareProfile:
    """The chip of a row. Refused where the catalogue lacks it."""
    try:
        return chip(name)
    except ShardwiseError as error:
        raise Refused(f"chip {name!r} is not in the catalogue") from error


def cluster_of(row: MeasuredRow, hardware: HardwareProfile) -> ClusterSpec:
    """The chips of a row; slices and their shape only on a torus, and the shape only where it makes up the count."""
    if hardware.intra.kind != "torus":
        return ClusterSpec(chip=hardware.id, chips=row.chips)
    slices = max(row.plan.slices, row.slices)
    shape = row.slice_shape
    whole = shape is not None and math.prod(shape) * slices == row.chips
    return ClusterSpec(chip=hardware.id, chips=row.chips, slices=slices, topology=shape if whole else None)
