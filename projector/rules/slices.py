"""How many slices a cluster is made of: stated, or as many as its chips need."""

from projector.cost.torus import slice_chips
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile


def slice_count(cluster: ClusterSpec, hardware: HardwareProfile | None) -> int:
    """Slices of the cluster. Where no topology is stated and the chips pass the largest torus, the projector assumes
    several slices aloud; here they count as such. Chips that no number of equal slices holds leave the stated count.
    """
    if hardware is None or hardware.intra.kind != "torus" or cluster.topology is not None:
        return cluster.slices
    size = slice_chips(cluster, hardware)
    return cluster.slices if cluster.chips % size else cluster.chips // size
