"""How the harness behind the CSV's in-flight points starts its engines, as its launch scripts say.

The dump prints none of it. The scripts (github:SemiAnalysisAI/InferenceX, `benchmarks/*.sh` of 2025 and 2026, read
2026-12-01, configurations only) differ by engine, chip and model; a script that was not read leaves everything open.
All of them switch prefix caching off and have seats for the requests in flight.
"""

from dataclasses import dataclass

BLACKWELL = ("b200", "b300", "gb200", "gb300")


@dataclass(frozen=True)
class Launch:
    """What a script states; None: the engine's default.

    kv: precision of the KV cache; step_tokens: prompt tokens a step; hbm_frac: share of the chip's memory an engine
    takes, free_frac: of what its weights leave; wait_steps: mean decode steps a new request waits to be looked at.
    """

    kv: str | None = None
    step_tokens: int | None = None
    hbm_frac: float | None = None
    free_frac: float | None = None
    wait_steps: float | None = None


@dataclass(frozen=True)
class Launched:
    """The point a script is asked for."""

    engine: str
    chip: str
    model: str
    experts: str
    tp: int
    concurrency: int
    input_len: int
    output_len: int

    @property
    def blackwell(self) -> bool:
        """Whether the chip is of that generation."""
        return self.chip.split("-")[0] in BLACKWELL

    @property
    def short(self) -> bool:
        """Whether prompts and responses have 1,024 tokens."""
        return self.input_len == self.output_len == 1024


def launch_of(point: Launched) -> Launch:
    """The launch of a point of the harness in one pool."""
    if point.engine == "vllm":
        return _vllm(point)
    if point.engine == "trtllm":
        return _trtllm(point)
    if point.engine == "sglang" and point.model.startswith(("deepseek", "glm")):
        return _sglang(point)
    return Launch()


def _vllm(point: Launched) -> Launch:
    """Checkpoints in NVFP4 carry an 8-bit cache scheme (ModelOpt), which vLLM takes unasked."""
    if point.model.startswith("llama"):
        return Launch(kv="fp8", step_tokens=8192, hbm_frac=0.9)
    if point.model.startswith("gpt-oss"):
        return Launch(kv="fp8" if point.blackwell else "bf16", step_tokens=8192, hbm_frac=0.9)
    narrow = point.experts == "nvfp4"
    if point.model.startswith("minimax"):
        return Launch(kv="fp8" if narrow else "bf16", hbm_frac=0.9 if narrow else 0.95)
    return Launch(kv="fp8" if narrow else "bf16", hbm_frac=0.9) if point.model.startswith("kimi") else Launch()


def _trtllm(point: Launched) -> Launch:
    """Of short requests prompts wait for each other: 20 steps on less than a node, 40 for DeepSeek in 8 bit."""
    if point.model.startswith("llama"):
        waits = point.short and point.tp < 8
        return Launch("fp8", 16384, free_frac=0.9, wait_steps=_wait_for_others(20, point) if waits else None)
    if point.model.startswith("deepseek"):
        waits = point.short and 64 <= point.concurrency < 256 and point.experts != "nvfp4"
        tokens = max(8192, point.concurrency + point.input_len + 64)
        return Launch("fp8", tokens, free_frac=0.8, wait_steps=_wait_for_others(40, point) if waits else None)
    return Launch("fp8", free_frac=0.9)


def _wait_for_others(steps: int, point: Launched) -> float:
    """batch_wait_timeout_iters: the first prompt opens a window of so many steps, others come at C / output a step."""
    others = steps * point.concurrency / point.output_len
    return (steps + others * steps / 2) / (1 + others)


def _sglang(point: Launched) -> Launch:
    """scheduler-recv-interval of DeepSeek on Blackwell: a look at the queue every 30 steps from 16 requests on, every
    10 below; who comes at any time waits for half of that."""
    narrow_engine = point.tp == 4 and point.blackwell
    tokens = 8192 if narrow_engine else 32768
    if not point.blackwell:
        return Launch(kv="bf16" if point.model.startswith("deepseek") else None, step_tokens=tokens)
    interval = 30 if point.concurrency >= 16 and point.tp == 8 else 10
    return Launch(
        kv="fp8",
        step_tokens=tokens,
        hbm_frac=0.95 if narrow_engine else None,
        wait_steps=interval / 2 if point.model.startswith("deepseek") else None,
    )
