"""Give each group of devices a run of layers."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="pipeline_parallelism",
    relieves=("hbm_capacity", "pipeline_bubble", "exposed_pp", "exposed_tp", "exposed_dp", "exposed_communication"),
    phases=("training", "serving"),
    fields=("pp", "vp", "schedule", "first_stage_layers", "last_stage_layers"),
    effort="relaunch",
    summary="Change the number of pipeline stages, their length, or the order they work in.",
    mechanism=(
        "Stages pass only one boundary activation a micro-batch over the slow network but idle for (pp - 1) / "
        "(micro-batches * vp) of the busy time, so stages pay when that bubble is smaller than the tensor- or "
        "data-parallel traffic they replace."
    ),
)
