"""Figures of a training step that can be optimised."""

from projector.specs.objective_entry import Objective

TRAINING_OBJECTIVES: tuple[Objective, ...] = (
    Objective(
        name="tokens_per_s_per_chip",
        unit="tokens/s/chip",
        direction="maximise",
        phases=("training",),
        meaning="trained tokens a second and chip",
    ),
    Objective(
        name="step_time_s", unit="s", direction="minimise", phases=("training",), meaning="time of one optimizer step"
    ),
    Objective(
        name="mfu",
        unit="fraction",
        direction="maximise",
        phases=("training", "serving"),
        meaning=(
            "model FLOP over peak FLOP of the compute dtype; training: attention whole, the causal mask not taken off; "
            "serving: of prompt and generated tokens, attention over the keys each token sees"
        ),
        formula="serving: requests/s * model FLOP of a request / (chips * peak)",
    ),
    Objective(
        name="memory_per_chip_gb",
        unit="GB",
        direction="minimise",
        phases=("training", "serving"),
        meaning="peak HBM in use on the fullest chip",
    ),
    Objective(
        name="cost_per_million_tokens",
        unit="USD",
        direction="minimise",
        phases=("training", "serving"),
        meaning="price of a million trained or generated tokens, on chips whose list price is known",
        formula="price of a chip and hour / 3600 / (tokens a second and chip) * 1e6",
        aliases=("cost_per_million_output_tokens",),
    ),
    Objective(
        name="energy_per_token_j",
        unit="J",
        direction="minimise",
        phases=("training",),
        meaning="energy of the chips a trained token, on chips whose board power is known",
    ),
)
