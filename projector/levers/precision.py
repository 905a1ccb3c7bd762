"""Run the GEMMs in a narrower type."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="precision",
    relieves=("compute_throughput", "hbm_bandwidth", "hbm_capacity"),
    phases=("training",),
    fields=("compute_dtype",),
    numerics=True,
    effort="code",
    summary="Change the type of GEMM operands.",
    mechanism=(
        "Halving the operand width doubles the peak of the GEMMs alone and adds a cast before each, so it gains "
        "while GEMM time * (1 - 1 / peak ratio) exceeds the casts, which needs large GEMMs; convergence has to be "
        "checked."
    ),
)
