"""Fuse small kernels with their neighbours."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="fused_kernels",
    relieves=("launch_bound", "hbm_bandwidth"),
    phases=("serving",),
    fields=("fused_kernels",),
    effort="flag",
    summary="Switch the fusion of norms, rotary embedding, casts and activations.",
    mechanism=(
        "Each kernel fused away saves its fixed time and one pass over the hidden state, so it gains while "
        "kernels saved * fixed time > nothing else the compiler gives up, most in decode steps whose kernels are "
        "shorter than their fixed time."
    ),
)
