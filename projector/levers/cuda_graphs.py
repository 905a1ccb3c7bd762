"""Replay a captured step instead of launching kernel by kernel."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="cuda_graphs",
    relieves=("launch_bound", "host_idle"),
    phases=("serving",),
    fields=("cuda_graphs", "cuda_graph_mode"),
    effort="flag",
    summary="Switch capture and replay of decode steps, whole or around attention.",
    mechanism=(
        "Replay removes the host's launch cost and nothing else, so it gains while kernels a step * launch time > "
        "device time of the step, that is for small batches and small shards; replay around attention covers mixed "
        "steps too and still launches attention, so it is shorter only where mixed steps' launches outlast theirs."
    ),
)
