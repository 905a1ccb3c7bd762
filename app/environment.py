"""Environment variables of third-party libraries that must stand before those are imported."""

import os

DEFAULTS = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_NUM_THREADS": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "ANONYMIZED_TELEMETRY": "False",
    "LANGGRAPH_STRICT_MSGPACK": "true",
}


def settle() -> None:
    """Set what is not set already: no library phones home, and none spins more threads than helps."""
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
