"""Choose what moves keys and values between the pools."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="kv_transfer",
    relieves=("exposed_communication",),
    phases=("serving",),
    fields=("kv_transfer",),
    effort="config",
    summary="Change the library that carries keys and values from prefill to decode engines.",
    mechanism=(
        "A transfer adds its start-up and KV bytes over its rate to the first token of every request, so another "
        "library gains while its start-up + bytes / rate < today's by more than a hundredth of the prefill beside it."
    ),
)
