"""ServingStack: what the engine software adds to a step and a request, apart from what the chip does."""

from typing import Literal

from pydantic import Field

from projector.specs.record import Record


class ServingStack(Record):
    """One engine (and generation of it). Effects of the software alone; what a chip does is in its calibration.

    admission_steps: mean steps between a request's arrival at a busy engine and the first step that may carry its
    prompt: the step under way and those already launched, the interval at which the queue is polled.
    handoff_s: what a request costs between a prefill and a decode engine beside the wire: routing to both, the
    handshake of their transfer, the notice that it is done. 0.15 s: the least error of TTFT over 252 published points
    of SGLang, TensorRT-LLM and vLLM; with any group of one engine and chip left out 0.125 to 0.225 s.
    step_s: host time a step takes beside its kernels: scheduling, sampling, detokenising what is not hidden.
    request_s: what a request costs outside the steps: HTTP, tokeniser, admission, first response.
    admission: whether a waiting request starts when the KV pool holds it at its mean length, keeps room for its whole
    output ("reserve"), or starts as soon as its prompt fits, at the price of preemptions ("greedy"):
    `projector.cost.admission`.
    """

    name: str
    step_s: float = Field(7.5e-4, ge=0, description="host time added to every step")
    request_s: float = Field(0.05, ge=0, description="time of a request outside the steps of the engine")
    handoff_s: float = Field(0.15, ge=0, description="time of a request between two pools, beside the transfer")
    admission_steps: float = Field(1.0, ge=0, description="steps a busy engine takes to look at a new request")
    admission: Literal["mean", "reserve", "greedy"] = Field("mean", description="when a waiting request starts")


# No engine in particular.
ANY_ENGINE = ServingStack(name="any engine")
