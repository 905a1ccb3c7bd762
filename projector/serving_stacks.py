"""The serving engines that are known, and which of them a name means."""

import re
from dataclasses import dataclass

from projector.errors import InvalidDescription, UnknownName
from projector.specs.serving_stack import ANY_ENGINE, ServingStack


def _bearing(points: int, collective_points: int) -> tuple[tuple[str, int], ...]:
    """How many points bear on each fitted value: on link_factor only engines of several devices."""
    each = (("kernel_factor", points), ("memory_factor", points), ("gemm_factor", points), ("step_s", points))
    return (*each, ("link_factor", collective_points))


# values without `fitted` are assumed; the fit and its priors: agents.evaluation.serving_parameters
STACKS: tuple[ServingStack, ...] = (
    ServingStack(
        name="TensorRT-LLM 0.5 to 0.19 (C++ runtime)",
        engine="tensorrt-llm",
        since=(0, 5),
        step_s=7.5e-4,
        kernel_factor=1.0,
        memory_factor=0.97,
        gemm_factor=0.96,
        link_factor=1.05,
        fitted=_bearing(421, 301),
        last_seen=(0, 14),
        narrow_kv_dtype="fp8",
        seats=2048,
    ),
    ServingStack(
        name="TensorRT-LLM since 0.20 (PyTorch)",
        engine="tensorrt-llm",
        since=(0, 20),
        step_s=8.0e-4,
        kernel_factor=1.14,
        memory_factor=0.98,
        gemm_factor=1.0,
        link_factor=1.2,
        fitted=_bearing(1200, 960),
        last_seen=(1, 3),
        narrow_kv_dtype="fp8",
        seats=2048,
    ),
    ServingStack(
        name="vLLM since 0.8 (V1)",
        engine="vllm",
        since=(0, 8),
        step_s=8.2e-4,
        kernel_factor=1.31,
        memory_factor=0.95,
        gemm_factor=0.985,
        link_factor=1.41,
        fitted=_bearing(943, 856),
        last_seen=(0, 19),
    ),
    ServingStack(
        name="SGLang since 0.5",
        engine="sglang",
        since=(0, 5),
        step_s=9.0e-4,
        kernel_factor=1.47,
        memory_factor=0.95,
        gemm_factor=0.965,
        link_factor=1.14,
        admission_steps=8.0,
        fitted=(*_bearing(365, 349), ("admission_steps", 365)),
        last_seen=(0, 5, 9),
    ),
    ServingStack(name="vLLM on TPU", engine="vllm-tpu", since=(0,), last_seen=(0, 12)),
    ServingStack(name="Transformers NeuronX", engine="neuronx", since=(2,), last_seen=(2, 18)),
)
# other spellings, the longest first
SPELLINGS = {
    "transformers neuronx": "neuronx",
    "tensorrt-llm": "tensorrt-llm",
    "tensorrt llm": "tensorrt-llm",
    "tensorrtllm": "tensorrt-llm",
    "trtllm": "tensorrt-llm",
    "vllm tpu": "vllm-tpu",
    "vllm-tpu": "vllm-tpu",
    "neuronx": "neuronx",
    "sglang": "sglang",
    "vllm": "vllm",
}
LONGEST_NAME = 80
NUMBERS = re.compile(r"\bv?(\d{1,4}(?:\.\d{1,4}){0,3})")


@dataclass(frozen=True)
class NamedStack:
    """The stack a name means. remark: what was taken for granted, empty where its release is one of those seen."""

    stack: ServingStack
    remark: str = ""


def serving_stack(name: str | None) -> NamedStack:
    """The stack of an engine's name and release, as in "vllm 0.19" or "TensorRT-LLM 1.1.0rc2".

    None means no engine in particular. A release older than all that are known, newer than all seen, or not stated,
    falls back to the nearest generation of the engine: the remark says so, and as none of its values was fitted on that
    release, intervals are wider. UnknownName for an engine nobody knows.
    """
    if name is None:
        return NamedStack(ANY_ENGINE, "no engine is named: overheads of none in particular")
    if len(name) > LONGEST_NAME:
        raise InvalidDescription(f"the engine's name has {len(name)} characters, at most {LONGEST_NAME} are read")
    spelled = " ".join(name.lower().replace("_", " ").split())
    found = next((spelling for spelling in SPELLINGS if spelled.startswith(spelling)), None)
    if found is None:
        raise UnknownName("engine", name, sorted({one.engine for one in STACKS}))
    generations = [one for one in STACKS if one.engine == SPELLINGS[found]]
    numbers = NUMBERS.search(spelled.removeprefix(found))
    newest = generations[-1]
    if numbers is None:
        return _unseen(newest, f"no release of {newest.engine} is named: as {newest.name}")
    release = tuple(int(part) for part in numbers[1].split("."))
    held = [one for one in generations if one.since <= release]
    if not held:
        oldest = generations[0]
        return _unseen(oldest, f"{name} is older than any engine seen: as {oldest.name}")
    if release[: len(held[-1].last_seen)] > held[-1].last_seen:
        return _unseen(held[-1], f"{name} is newer than any seen: as {held[-1].name}")
    return NamedStack(held[-1])


def _unseen(stack: ServingStack, remark: str) -> NamedStack:
    return NamedStack(stack.model_copy(update={"fitted": ()}), remark)
