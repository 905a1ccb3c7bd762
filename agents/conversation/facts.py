"""Facts in a message: limits, sizes and machines that it states, each with the words it was read in.

The message is data. A fact is only what one of these forms spells out with its number; it becomes a key of the next
request and passes the same validation as one a user wrote. What is put in other words is not guessed.
"""

import re
from collections.abc import Iterator
from typing import Literal

from agents.conversation.records import Fact
from projector.catalog import chips
from projector.names import normalise

Bound = Literal["fixed", "low", "high"]

AXES = {
    "tp": r"tp|tensor[- ]parallel(?:ism)?|tensor[- ]parallel (?:size|degree)",
    "pp": r"pp|pipeline[- ]parallel(?:ism)?|pipeline stages?|pipeline",
    "dp": r"dp|data[- ]parallel(?:ism)?",
    "cp": r"cp|context[- ]parallel(?:ism)?",
    "ep": r"ep|expert[- ]parallel(?:ism)?",
    "fsdp": r"fsdp|weight sharding|zero-?3",
    "micro_batch": r"micro[- _]?batch(?: size)?",
}
CLAUSE = re.compile(r"(?<=[.!?;])\s+|,\s+(?:and|but|so)\s+|\n+")
QUESTION = re.compile(r"^\W*(?:why|which|how|is|are|does|do|did|should|explain|compare)\b", re.IGNORECASE)
TRIED = re.compile(r"\b(?:what if|why not)\b", re.IGNORECASE)
AT_MOST = re.compile(
    r"\b(?:at most|no more than|not more than|up to|max(?:imum)?|under|below|within)\b|<=?", re.IGNORECASE
)
AT_LEAST = re.compile(r"\b(?:at least|no less than|not less than|min(?:imum)?|above|over)\b|>=?", re.IGNORECASE)
NONE_OF = r"(?:no|without(?: any)?|cannot use|can't use|can not use|must not use|avoid|forbid|rule out)"
NUMBER = r"(\d[\d,]*(?:\.\d+)?)\s*([kKmM](?![a-zA-Z]))?"
SCALE = {"": 1, "k": 1_000, "m": 1_000_000}
BINARY_SCALE = {"": 1, "k": 1_024, "m": 1_048_576}
GIB_IN_GB = 1.073741824
UNIT_MS = {"ms": 1.0, "s": 1_000.0}

CHIPS = re.compile(
    rf"{NUMBER}\s+(?:[\w-]+\s+)?(chips?|gpus?|tpus?|accelerators?|cards?|devices?|nodes?)\b", re.IGNORECASE
)
TOPOLOGY = re.compile(r"\b(\d+x\d+(?:x\d+)*)\b", re.IGNORECASE)
MEMORY = re.compile(rf"{NUMBER}\s*(GB|GiB)\b", re.IGNORECASE)
MEMORY_WORDS = re.compile(r"\b(?:memory|hbm|vram|usable|available|left|free|headroom)\b", re.IGNORECASE)
SIZES = {
    ("workload", "global_batch"): r"(?:global[- _]?)?batch(?: size)?",
    ("workload", "seq_len"): r"(?:sequence[- ]length|seq[_ ]?len|context[- ]length|sequences? of)",
    ("workload", "concurrency"): r"(?:concurrency|concurrent (?:requests|users)|requests in flight)",
    ("workload", "input_len"): r"(?:input[- _]?len(?:gth)?|prompt[- ]length|isl|prompts? of)",
    ("workload", "output_len"): r"(?:output[- _]?len(?:gth)?|answer[- ]length|osl|answers? of)",
}
NOT_MICRO = r"(?<!micro )(?<!micro-)(?<!micro_)"
BINARY_SIZES = {"seq_len", "input_len", "output_len"}
LATENCIES = {
    "ttft_ms": r"ttft|time to first token",
    "tpot_ms": r"tpot|itl|inter-token latency|time per output token",
    "request_latency_ms": r"request latency|end[- ]to[- ]end latency",
}
ALLOWED = re.compile(
    r"\b(?:fp8|precision|numerics|lower precision|quantisation|quantization)\b.{0,30}?"
    r"\b(?:allowed|fine|ok(?:ay)?|acceptable|may change)\b",
    re.IGNORECASE,
)


def facts_of(message: str) -> tuple[Fact, ...]:
    """Every fact of a message, in its order; questions why and how state none."""
    found: list[Fact] = []
    for clause in CLAUSE.split(message):
        if not QUESTION.search(clause) or TRIED.search(clause):
            found += [*_axes(clause), *_machine(clause), *_memory(clause), *_sizes(clause), *_budgets(clause)]
            found += _permission(clause)
    return tuple(dict.fromkeys(found))


def _axes(clause: str) -> Iterator[Fact]:
    for axis, names in AXES.items():
        if match := re.search(rf"\b{NONE_OF}\s+(?:the\s+)?(?:{names})\b", clause, re.IGNORECASE):
            yield _fact(("constraints", "fixed", axis), 1, match)
            continue
        forms = (
            rf"\b(?:{names})\b(?P<between>[^\d.;]{{0,40}}?)(?P<n>\d+)\b(?!\s*(?:%|gb|gib|ms|x\d))",
            rf"(?P<n>\d+)(?P<between>[- ]way\s+)(?:{names})\b",
        )
        for form in forms:
            match = re.search(form, clause, re.IGNORECASE)
            if match is not None and not _of_another(match.group("between"), axis):
                yield _bounded(axis, clause[: match.end()], int(match.group("n")), match)
                break


def _of_another(between: str, axis: str) -> bool:
    """Whether another axis stands between the name and the number, which is then that one's."""
    return any(re.search(rf"\b(?:{names})\b", between, re.IGNORECASE) for other, names in AXES.items() if other != axis)


def _bounded(axis: str, said: str, degree: int, match: re.Match[str]) -> Fact:
    if AT_MOST.search(said):
        return _fact(("constraints", "bounds", axis, "high"), degree, match)
    if AT_LEAST.search(said):
        return _fact(("constraints", "bounds", axis, "low"), degree, match)
    return _fact(("constraints", "fixed", axis), degree, match)


def _machine(clause: str) -> Iterator[Fact]:
    if match := CHIPS.search(clause):
        unit = match.group(3).lower().rstrip("s")
        path = {"device": "devices", "node": "nodes"}.get(unit, "chips")
        yield _fact(("cluster", path), int(_number(match)), match)
    if match := TOPOLOGY.search(clause):
        yield _fact(("cluster", "topology"), tuple(map(int, match.group(1).lower().split("x"))), match)
    names = {normalise(name): chip.id for chip in chips() for name in (chip.id, *chip.aliases)}
    for word in re.finditer(r"[\w-]+", clause):
        said = normalise(word.group(0))
        if chip := names.get(said) or names.get(said.removesuffix("s")):
            yield _fact(("cluster", "chip"), chip, word)
            return


def _memory(clause: str) -> Iterator[Fact]:
    match = MEMORY.search(clause)
    if match is not None and MEMORY_WORDS.search(clause):
        factor = GIB_IN_GB if match.group(3).lower() == "gib" else 1.0
        yield _fact(("constraints", "max_memory_gb"), round(_number(match) * factor, 3), match)


def _sizes(clause: str) -> Iterator[Fact]:
    for path, names in SIZES.items():
        scale = BINARY_SCALE if path[1] in BINARY_SIZES else SCALE
        before = re.search(
            rf"(?<!micro )(?<!micro-)(?<!micro_)\b{names}\b[^\d.;]{{0,25}}?{NUMBER}", clause, re.IGNORECASE
        )
        behind = re.search(rf"{NUMBER}[- ]+{names}\b", clause, re.IGNORECASE)
        if (match := before or behind) is not None:
            yield _fact(path, int(_number(match, scale)), match)


def _budgets(clause: str) -> Iterator[Fact]:
    for key, names in LATENCIES.items():
        if match := re.search(rf"\b(?:{names})\b[^\d.;]{{0,30}}?(\d+(?:\.\d+)?)\s*(ms|s)\b", clause, re.IGNORECASE):
            yield _fact(("slo", key), float(match.group(1)) * UNIT_MS[match.group(2).lower()], match)


def _permission(clause: str) -> Iterator[Fact]:
    if match := ALLOWED.search(clause):
        denied = re.search(r"\b(?:not|never|isn't|n't)\b", match.group(0), re.IGNORECASE) is not None
        yield _fact(("constraints", "allow_numerics_changes"), not denied, match)


def _number(match: re.Match[str], scale: dict[str, int] = SCALE) -> float:
    return float(match.group(1).replace(",", "")) * scale[(match.group(2) or "").lower()]


def _fact(path: tuple[str, ...], value: int | float | bool | str | tuple[int, ...], match: re.Match[str]) -> Fact:
    return Fact(path=path, value=value, said=" ".join(match.group(0).split())[:200])
