"""ServingStack: what the engine software adds to a step and a request, apart from what the chip does."""

from typing import Literal

from pydantic import Field

from projector.specs.hardware import HardwareProfile
from projector.specs.plan import Dtype
from projector.specs.record import Record

# Efficiencies are shares of a peak: software that is better than what the chip's calibration was measured with gets
# closer to the peak, never past it.
CEILING = 0.97


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
    The factors multiply what the chip's calibration says: kernel_factor the time no kernel goes below and that of a
    launch, memory_factor the attainable HBM rate, gemm_factor the attainable arithmetic rate, link_factor the latency
    of a collective's step.
    `fitted` names the values chosen on published serving points, with how many of them bear on each; the others are
    assumed.
    """

    name: str
    engine: str = Field("", description="the engine without its release; empty: none in particular")
    since: tuple[int, ...] = Field((), description="first release the values hold for")
    last_seen: tuple[int, ...] = Field((), description="newest release among the points they were chosen on")
    step_s: float = Field(7.5e-4, ge=0, description="host time added to every step")
    request_s: float = Field(0.05, ge=0, description="time of a request outside the steps of the engine")
    handoff_s: float = Field(0.15, ge=0, description="time of a request between two pools, beside the transfer")
    admission_steps: float = Field(1.0, ge=0, description="steps a busy engine takes to look at a new request")
    admission: Literal["mean", "reserve", "greedy"] = Field("mean", description="when a waiting request starts")
    kernel_factor: float = Field(1.0, gt=0)
    memory_factor: float = Field(1.0, gt=0)
    gemm_factor: float = Field(1.0, gt=0)
    link_factor: float = Field(1.0, gt=0)
    narrow_kv_dtype: Dtype = Field("bf16", description="KV cache unless told otherwise, beside 8- and 4-bit weights")
    seats: int = Field(256, ge=1, description="requests an engine decodes at once unless told otherwise")
    step_tokens: int = Field(8192, ge=1, description="tokens a step takes unless told otherwise")
    fitted: tuple[tuple[str, int], ...] = Field((), description="(fitted value, points that bear on it)")

    def on(self, hardware: HardwareProfile) -> HardwareProfile:
        """The chip as this software drives it: its calibration times the factors."""
        calibration, fabric = hardware.calibration, hardware.intra
        changed = {
            "kernel_floor_s": calibration.kernel_floor_s * self.kernel_factor,
            "kernel_launch_s": calibration.kernel_launch_s * self.kernel_factor,
            "hbm_efficiency_frac": _closer(
                calibration.hbm_efficiency_frac, self.memory_factor * calibration.engine_hbm_factor
            ),
            "gemm_efficiency_frac": _closer(calibration.gemm_efficiency_frac, self.gemm_factor),
            "attention_efficiency_frac": _closer(calibration.attention_efficiency_frac, self.gemm_factor),
        }
        links = fabric.model_copy(update={"latency_s": fabric.latency_s * self.link_factor})
        return hardware.model_copy(update={"calibration": calibration.model_copy(update=changed), "intra": links})


def _closer(frac: float, factor: float) -> float:
    return min(frac * factor, max(CEILING, frac))


# No engine in particular.
ANY_ENGINE = ServingStack(name="any engine")
