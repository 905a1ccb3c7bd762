"""Facts in a message: limits, sizes and machines that it states, each with the words it was read in.

The message is data. A fact is only what one of these forms spells out with its number; it becomes a key of the next
request and passes the same validation as one a user wrote. What is put in other words is not guessed.
"""

import re
from collections.abc import Iterator

from agents.conversation.records import Fact
from projector.catalog import chips
from projector.names import normalise

AXES = {
    "tp": r"tp|tensor[- ]parallel(?:ism)?|tensor[- ]parallel (?:size|degree)",
    "pp": r"pp|pipeline[- ]parallel(?:ism)?|pipeline stages?|pipeline",
    "dp": r"dp|data[- ]parallel(?:ism)?",
    "cp": r"cp|context[- ]parallel(?:ism)?",
    "ep": r"ep|expert[- ]parallel(?:ism)?",
    "fsdp": r"fsdp|weight sharding|zero-?3",
    "micro_batch": r"micro[- _]?batch(?: size)?",
}
SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
CLAUSE = re.compile(r",\s+")
TRIED = re.compile(
    r"\b(?:what if|why not|how about|what about|suppose|assume|imagine|what would|if we (?:had|used|moved|went)|"
    r"would it|(?:could|can|may) (?:we|i))\b",
    re.IGNORECASE,
)
# asked, conditional, past or reported: nothing that holds
QUESTION = re.compile(r"\W*(?:why|which|how|explain|compare)\b", re.IGNORECASE)
NOT_STATED = re.compile(
    r"^\W*(?:is|are|does|do(?!n)|did|should|would|will|could|can|if|when|because|since|unless)\b|"
    r"\b(?:why|which|how|explain|compare|was|were|used to|previously|formerly|yesterday|ago|had been|"
    r"last (?:week|month|run)|because)\b",
    re.IGNORECASE,
)
# what is left of a denial once the forms below are taken out; German and French for what is read only in English
DENIED = re.compile(
    r"\b(?:not|never|none|neither|cannot|without|no longer|instead of|rather than|lost|except|but|avoid|forbid|"
    r"nicht|kein\w*|ohne|h(?:\u00f6|oe)chstens|maximal|mindestens|nie|pas|sans|jamais|au plus|au moins|ne)\b|"
    r"\bno\b(?=\s+\w)(?! wait)|n['\u2019]t\b",
    re.IGNORECASE,
)
NEGATED = (
    r"(?:not|never|no|cannot|can['\u2019]t|don['\u2019]t|must not|do not)"
    r"(?:\s+(?:go|use|have|want|exceed))*"
)
AT_MOST = (
    rf"(?:(?:{NEGATED}\s+)(?:more than|over|above|beyond|exceed(?:ing)?|larger than|higher than)|at most|up to|"
    r"max(?:imum)?(?:\s+of)?|under|below|within|<=?)"
)
AT_LEAST = rf"(?:(?:{NEGATED}\s+)(?:less than|fewer than|under|below)|at least|min(?:imum)?(?:\s+of)?|above|over|>=?)"
AT_MOST_BEHIND = r"(?:max(?:imum)?|at most|or (?:less|fewer|lower|below))\b"
AT_LEAST_BEHIND = r"(?:min(?:imum)?|at least|or (?:more|higher|above))\b"
NONE_OF = (
    r"(?:no|without(?: any)?|cannot use|can['\u2019]t use|can not use|must not use|do not use|"
    r"don['\u2019]t use|never use|avoid|forbid|rule out)"
)
ENDS = r"(?=\s*(?:please|at all|any ?more|here|for us)?\s*(?:[.!;]|$)|\s+(?:and|or)\b)"
# words that may stand between a name and its number, few, as a message may be hostile; any other makes the number
# another's
FILLER = (
    r"(?:\s|=|:|\b(?:must|should|has|have|needs?|will|shall|can|to|stays?|remains?|be|is|at|of|equals?|fixed|kept|keep|set|"
    r"size|degree|exactly|only|a|the|now|soll|muss|stay|remain|bleibt|limited|capped|with)\b){0,14}"
)
NUMBER = r"(?<![\d.,\w/-])(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?\s*([kKmM](?![a-zA-Z]))?(?![\d.,]*\d)"
DEGREE = r"(?<![\d.,-])(?P<n>\d{1,7})(?![\w%]|[.,]\d|/)"
OTHER_UNIT = (
    r"(?!\s*(?:%|percent\b|times\b|fold\b|(?:ms|s|sec|seconds?|minutes?|h|gb|gib|tb|gpus?|chips?|nodes?|devices?|layers?|"
    r"tokens?|million|billion|thousand|bn)\b|x\s+\w*er\b|or\s+\d|to\s+\d|-\s*\d|\u2013|per\b|/|each\b|on each\b|"
    r"a (?:gpu|device|chip|rank)\b|"
    r"(?:sequences?|samples?|requests?)\s+(?:per|/|a|each|on each)\b))"
)
BINARY = 1_024
GIB_IN_GB = 1.073741824
UNIT_MS = {"ms": 1.0, "s": 1_000.0}

NAMES = {normalise(name): chip.id for chip in chips() for name in (chip.id, *chip.aliases)}
UNIT_OF = r"(?P<unit>chips?|gpus?|tpus?|accelerators?|cards?|devices?|nodes?)\b"
PER = (
    r"(?!\s*(?:per\b|/|each\b|a (?:node|host|server|replica)|"
    r"in (?:a|each|every)|on (?:a|each|every)|failed|broke|died|more\b|are (?:down|broken|idle)))"
)
CHIPS = re.compile(
    rf"(?<!across )(?<!over )(?<!among )(?<!spans )(?<!per )(?<!of the )"
    rf"{NUMBER}(?:\s+|x\s*)(?:(?P<name>[\w-]+)\s+)?{UNIT_OF}{PER}",
    re.IGNORECASE,
)
NODES_OF = re.compile(
    rf"{NUMBER}\s+(?:nodes?|hosts?|servers?)\s+(?:of|with|having|x)\s+(?P<each>\d+)\s*(?:[\w-]+)?", re.IGNORECASE
)
COUNTED = re.compile(rf"{NUMBER}\s*(?:x\s*)?(?P<name>[a-z][\w-]*){PER}", re.IGNORECASE)
# a chip that is only spoken of is not the machine: "H100s are cheap"
MACHINE_WORDS = re.compile(
    r"\b(?:have|has|had|got|get|use|move|moved|switch|switched|run|running|on|to|of|with|chip|machine|cluster|hardware)\b",
    re.IGNORECASE,
)
TOPOLOGY = re.compile(r"\b(\d+x\d+(?:x\d+)*)\b", re.IGNORECASE)
TOPOLOGY_WORDS = re.compile(r"\b(?:topology|torus|slice|pod|tpu\w*|v\d\w*)\b", re.IGNORECASE)
MEMORY = re.compile(rf"{NUMBER}\s*(GB|GiB)\b", re.IGNORECASE)
MEMORY_WORDS = re.compile(r"\b(?:memory|hbm|vram)\b", re.IGNORECASE)
MEMORY_LIMIT = re.compile(
    rf"\b(?:only|usable|limit(?:ed)?|cap(?:ped)?|budget|{AT_MOST}|may (?:use|take))\b|{AT_MOST_BEHIND}", re.IGNORECASE
)
MEMORY_OTHER = re.compile(
    r"\b(?:uses?|used|using|takes?|took|needs?|peak|peaks|host|cpu|ram|disk|total|reserve|free|spare|has|have|comes?)\b",
    re.IGNORECASE,
)
SIZES = {
    ("workload", "global_batch"): r"(?:global[- _]?)?batch(?: size)?",
    ("workload", "seq_len"): r"(?:sequence[- ]length|seq[_ ]?len|context[- ]length|sequences? of)",
    ("workload", "concurrency"): r"(?:concurrency|concurrent (?:requests|users)|requests in flight)",
    ("workload", "input_len"): r"(?:input[- _]?len(?:gth)?|prompt[- ]length|isl|prompts? of)",
    ("workload", "output_len"): r"(?:output[- _]?len(?:gth)?|answer[- ]length|osl|answers? of)",
}
NAMED_BEHIND = {
    "seq_len": r"(?:tokens?\s+(?:of\s+)?)?"
    r"(?:sequence[- ]length|context(?:[- ](?:length|window))?(?![- ]parallel))"
}
NOT_GLOBAL = re.compile(r"(?:micro|mini|per[- ]?(?:device|gpu|chip|rank)|local)[-_ ]*(?:global[-_ ]*)?$", re.IGNORECASE)
BINARY_SIZES = {"seq_len", "input_len", "output_len"}
LATENCIES = {
    "ttft_ms": r"ttft|time to first token",
    "tpot_ms": r"tpot|itl|inter-token latency|time per output token",
    "request_latency_ms": r"request latency|end[- ]to[- ]end latency",
}
# a latency without one of these is what is measured, not what is wanted
BUDGET = rf"\b(?:must|should|has to|needs? to|within|budget|slo|target|limit)\b|{AT_MOST}"
ALLOWED = re.compile(
    r"\b(?:fp8|precision|numerics|lower precision|quantisation|quantization)\b.{0,30}?"
    r"\b(?:allowed|fine|ok(?:ay)?|acceptable|may change)\b",
    re.IGNORECASE,
)


def facts_of(message: str) -> tuple[Fact, ...]:
    """Every fact of a message, in its order.

    Questions state none, unless they ask what if; nor do conditions, the past, and what is denied.
    """
    found: list[Fact] = []
    for sentence in SENTENCE.split(message):
        tried = TRIED.search(sentence) is not None
        if not tried and (sentence.rstrip(" \"')").endswith("?") or QUESTION.match(sentence)):
            continue
        for clause in CLAUSE.split(" ".join(sentence.split())):
            if tried or not NOT_STATED.search(clause):
                found += _facts(TRIED.sub("", clause))
    return tuple(dict.fromkeys(found))


def is_tried(message: str) -> bool:
    """Whether the facts of a message are to be tried: nothing of it holds."""
    return TRIED.search(message) is not None


def _facts(clause: str) -> Iterator[Fact]:
    """Forms that deny or bound first; what they leave is read only where it denies nothing."""
    yield from _permission(clause)
    yield from _ruled_out(clause)
    yield from _axes(clause)
    if not _denies(clause):
        yield from (*_machine(clause), *_memory(clause), *_sizes(clause))
    yield from _budgets(clause)


def _denies(clause: str) -> bool:
    names = "|".join(AXES.values())
    ruled_out = re.sub(rf"\b{NONE_OF}\s+(?:the\s+)?(?:{names}){ENDS}", " ", clause, flags=re.IGNORECASE)
    return DENIED.search(re.sub(rf"(?:{AT_MOST}|{AT_LEAST})", " ", ruled_out, flags=re.IGNORECASE)) is not None


def _ruled_out(clause: str) -> Iterator[Fact]:
    for axis, names in AXES.items():
        match = re.search(rf"\b{NONE_OF}\s+(?:the\s+)?(?:{names}){ENDS}", clause, re.IGNORECASE)
        if match is not None and (match.start() or not match.group(0).lower().startswith("without")):
            yield _fact(("constraints", "fixed", axis), 1, match)


def _axes(clause: str) -> Iterator[Fact]:
    for axis, names in AXES.items():
        name = rf"(?<![\w-])(?:{names})(?![a-z])"
        between = re.search(
            rf"(?:between\s+{name}|{name}{FILLER}\s*between)\s+(?P<low>\d+)\s+and\s+(?P<high>\d+)(?![\w.])",
            clause,
            re.IGNORECASE,
        )
        if between is not None and not _denies(clause):
            path = ("constraints", "bounds", axis)
            yield _fact((*path, "low"), int(between.group("low")), between)
            yield _fact((*path, "high"), int(between.group("high")), between)
            continue
        bound = rf"(?:(?P<most>{AT_MOST})|(?P<least>{AT_LEAST}))"
        behind = rf"(?:\s*,?\s*(?:(?P<most_behind>{AT_MOST_BEHIND})|(?P<least_behind>{AT_LEAST_BEHIND})))?"
        moved = r"(?:\s*from\s+\d+\s+to\s+)?"
        forms = (
            rf"(?:{bound}\s*)(?:a\s+|the\s+)?{name}{FILLER}{DEGREE}{OTHER_UNIT}",
            rf"{name}{FILLER}{bound}{FILLER}{DEGREE}{OTHER_UNIT}",
            rf"{name}(?:{FILLER}{moved}{FILLER}|-){DEGREE}{OTHER_UNIT}{behind}",
            rf"(?:{bound}\s*)?(?:a\s+)?(?<![\d.,-])(?P<n>\d+)[- ]way\s+{name}",
        )
        for form in forms:
            if match := re.search(form, clause, re.IGNORECASE):
                if not _denies(clause):
                    yield _bounded(axis, match)
                break


def _bounded(axis: str, match: re.Match[str]) -> Fact:
    found, degree = match.groupdict(), int(match.group("n"))
    if found.get("most") or found.get("most_behind"):
        less = re.fullmatch(r"<|under|below", found.get("most") or "", re.IGNORECASE) is not None
        return _fact(("constraints", "bounds", axis, "high"), degree - less, match)
    if found.get("least") or found.get("least_behind"):
        more = re.fullmatch(r">|over|above", found.get("least") or "", re.IGNORECASE) is not None
        return _fact(("constraints", "bounds", axis, "low"), degree + more, match)
    return _fact(("constraints", "fixed", axis), degree, match)


def _machine(clause: str) -> Iterator[Fact]:
    if match := NODES_OF.search(clause):
        yield _fact(("cluster", "chips"), int(match.group(1)) * int(match.group("each")), match)
    elif (match := CHIPS.search(clause)) and _is_chip(match.group("name")) and (count := _whole_number(match)):
        unit = match.group("unit").lower().rstrip("s")
        path = {"device": "devices", "node": "nodes"}.get(unit, "chips")
        yield _fact(("cluster", path), count, match)
    elif (match := COUNTED.search(clause)) and _chip(match.group("name")) and (count := _whole_number(match)):
        yield _fact(("cluster", "chips"), count, match)
    if TOPOLOGY_WORDS.search(clause) and (match := TOPOLOGY.search(clause)):
        yield _fact(("cluster", "topology"), tuple(map(int, match.group(1).lower().split("x"))), match)
    if not MACHINE_WORDS.search(clause) and not re.search(r"\d\s*x?\s+[a-z]", clause, re.IGNORECASE):
        return
    for word in re.finditer(r"[\w-]+", clause):
        if chip := _chip(word.group(0)):
            yield _fact(("cluster", "chip"), chip, word)
            return


def _chip(word: str) -> str | None:
    said = normalise(word)
    return NAMES.get(said) or NAMES.get(said.removesuffix("s"))


def _is_chip(word: str | None) -> bool:
    """No word, or one that names a chip or its maker: '8 idle GPUs' are not the machine."""
    return word is None or _chip(word) is not None or word.lower() in ("nvidia", "amd", "google", "tpu", "gpu")


def _memory(clause: str) -> Iterator[Fact]:
    found = list(MEMORY.finditer(clause))
    if len(found) != 1 or not MEMORY_WORDS.search(clause) or not MEMORY_LIMIT.search(clause):
        return
    if MEMORY_OTHER.search(clause):
        return
    match = found[0]
    factor = GIB_IN_GB if match.group(4).lower() == "gib" else 1.0
    stated = float(match.group(1).replace(",", "") + (match.group(2) or ""))
    if match.group(3) is None and stated > 0:
        yield _fact(("constraints", "max_memory_gb"), round(stated * factor, 3), match)


def _sizes(clause: str) -> Iterator[Fact]:
    for path, names in SIZES.items():
        binary = path[1] in BINARY_SIZES
        unit = OTHER_UNIT.replace("tokens?|", "") if binary else OTHER_UNIT
        before = re.search(rf"\b{names}{FILLER}{NUMBER}{unit}", clause, re.IGNORECASE)
        behind = re.search(rf"{NUMBER}[- ]+(?:{NAMED_BEHIND.get(path[1], names)})\b", clause, re.IGNORECASE)
        match = before or behind
        if match is None or NOT_GLOBAL.search(clause[: match.start()]):
            continue
        if count := _whole_number(match, binary):
            yield _fact(path, count, match)


def _budgets(clause: str) -> Iterator[Fact]:
    for key, names in LATENCIES.items():
        number = r"(?<![\d.,-])(\d+(?:\.\d+)?)\s*(ms|s)\b(?P<behind>\s+at most)?"
        match = re.search(rf"\b(?:{names})\b(?P<between>[^\d.;]{{0,30}}?){number}", clause, re.IGNORECASE)
        if match is None or _denies(clause):
            continue
        before = re.search(r"(?:budget|limit|target|keep)\s+(?:the\s+)?$", clause[: match.start()], re.IGNORECASE)
        if before or match.group("behind") or re.search(BUDGET, match.group("between"), re.IGNORECASE):
            yield _fact(("slo", key), float(match.group(2)) * UNIT_MS[match.group(3).lower()], match)


def _permission(clause: str) -> Iterator[Fact]:
    match = ALLOWED.search(clause)
    if match is None or DENIED.search(clause[: match.start()]):
        return
    denied = re.search(r"\b(?:not|never)\b|n['\u2019]t\b", match.group(0), re.IGNORECASE) is not None
    yield _fact(("constraints", "allow_numerics_changes"), not denied, match)


def _whole_number(match: re.Match[str], binary: bool = False) -> int | None:
    """The count of a NUMBER; None for a fraction, and for k and m where 1,000 and 1,024 are both meant by it."""
    digits, fraction, scale = match.group(1).replace(",", ""), match.group(2), match.group(3)
    if fraction is not None or len(digits) > 9 or (scale and not binary):
        return None
    return int(digits) * {"": 1, "k": BINARY, "m": BINARY**2}[(scale or "").lower()]


def _fact(path: tuple[str, ...], value: int | float | bool | str | tuple[int, ...], match: re.Match[str]) -> Fact:
    return Fact(path=path, value=value, said=" ".join(match.group(0).split())[:200])
