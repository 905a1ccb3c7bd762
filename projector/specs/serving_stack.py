"""ServingStack: what the engine software adds to a step and a request, apart from what the chip does."""

from typing import Literal

from pydantic import Field

from projector.specs.record import Record


class ServingStack(Record):
    """One engine (and generation of it). Effects of the software alone; what a chip does is in its calibration.

    admission_steps: mean steps between a request's arrival at a busy engine and the first step that may carry its
    prompt: the step under way and those already launched, the interval at which the queue is polled.
    step_s: host time a step takes beside its kernels: scheduling, sampling, detokenising what is not hidden.
    request_s: what a request costs outside the steps: HTTP, tokeniser, admission, first response.
    admission: whether a waiting request starts when the KV pool holds it at its mean length, keeps room for its whole
    output ("reserve"), or starts as soon as its prompt fits, at the price of preemptions ("greedy"):
    `projector.cost.admission`.
    """

    name: str
    step_s: float = Field(7.5e-4, ge=0, description="host time added to every step")
    request_s: float = Field(0.05, ge=0, description="time of a request outside the steps of the engine")
    admission_steps: float = Field(1.0, ge=0, description="steps a busy engine takes to look at a new request")
    admission: Literal["mean", "reserve", "greedy"] = Field("mean", description="when a waiting request starts")


# No engine in particular.
ANY_ENGINE = ServingStack(name="any engine")
