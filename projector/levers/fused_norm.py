"""Run the norm behind an all-reduce in its kernel."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="fused_norm",
    relieves=("latency_bound_collectives", "launch_bound", "hbm_bandwidth"),
    phases=("serving",),
    fields=("fuse_all_reduce_norm",),
    effort="flag",
    summary="Switch the fusion of all-reduce, residual and norm.",
    mechanism=(
        "The fused kernel saves the norm's launch and one round trip of the hidden state through HBM for each "
        "all-reduce, so it gains while that time > what the fused kernel, which keeps SMs for the exchange, is "
        "slower at large messages."
    ),
)
