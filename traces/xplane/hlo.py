"""What an HLO operator is: its class and kind from the category XLA gives it, or from its name where that says nothing.

The category decides. Custom calls, custom fusions and asynchronous wrappers say only how an operator is run; of these
the name tells communication from computation, and one that does arithmetic is computation (an all-gather fused into a
matmul hides its traffic). Without a category only an unmistakable opcode at the start of the name counts; the rest is
unattributed.
"""

import re
from dataclasses import dataclass
from typing import Final

from projector.breakdown import OperatorKind
from traces.kernel_names import kind_of
from traces.remembered import remembered
from traces.summary_types import EventClass

CONTROL: Final = frozenset({"while", "conditional", "call", "megacore fusion"})
"""Categories that contain other operators; their cost is that of what they contain."""

OFF_DUTY: Final = frozenset(
    {"infeed", "outfeed", "host send", "host send-done", "host recv", "host recv-done", "async-done", "megacore fusion"}
)
"""Categories in which a core waits; XProf leaves them out of its duty cycle, and so does this package."""

_OPAQUE: Final = frozenset({"custom-call", "custom fusion", "async-start", "async-update", "async-done", "custom_call"})
_NO_CATEGORY: Final = frozenset({"", "unknown", "uncategorized", "idle"})
_CACHED: Final = 65_536


@dataclass(frozen=True, slots=True)
class OpClass:
    """kind is set for computation, collective (in the words of `traces.collectives`) for communication."""

    event_class: EventClass
    kind: OperatorKind | None = None
    collective: str = ""


def _rules(*pairs: tuple[str, str]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((meaning, re.compile(pattern, re.IGNORECASE)) for meaning, pattern in pairs)


_S: Final = r"[-_ ]?"
_COLLECTIVES: Final = _rules(
    ("reduce_scatter", rf"all{_S}reduce{_S}scatter"),
    ("all_reduce", rf"all{_S}reduce"),
    ("all_gather", rf"all{_S}gather"),
    ("reduce_scatter", rf"reduce{_S}scatter"),
    ("all_to_all", rf"all{_S}to{_S}all"),
    ("collective_permute", rf"collective{_S}permute|\bppermute"),
    ("broadcast", rf"collective{_S}broadcast"),
    ("p2p", r"^(?:send|recv)(?:-done)?$|\bp2p\b|peer[-_ ]to[-_ ]peer|\bremote[-_ ](?:copy|dma)"),
    ("collective", r"\bcollective\b"),
)
_ARITHMETIC: Final = re.compile(r"matmul|gemm|\bdot\b|conv(?:olution)?\b|attention", re.IGNORECASE)
_HOST_TRANSFER: Final = re.compile(r"infeed|outfeed|^host (?:send|recv)|^copy-(?:start|done)$", re.IGNORECASE)
_TELLING_KINDS: Final = ("attention", "moe", "gemm", "norm", "quantise", "embedding")
_DMA_NAME: Final = re.compile(r"^%?(?:async[-_])?(?:dynamic[-_])?(?:update[-_])?(?:slice|copy)", re.IGNORECASE)
_KINDS: Final[tuple[tuple[OperatorKind, re.Pattern[str]], ...]] = (
    ("gemm", re.compile(r"convolution|^dot|^output fusion$|^cublas|^matmul|^ragged-dot", re.IGNORECASE)),
    (
        "other",
        re.compile(r"^(?:while|conditional|call|megacore fusion|after-all|sort|fft|rng|partition-id)", re.IGNORECASE),
    ),
)
_OPCODE: Final = re.compile(
    r"^%?(?P<opcode>all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all|collective-permute|collective-broadcast"
    r"|infeed|outfeed|copy|convolution|dot|while|conditional|transpose|reduce|broadcast|concatenate|slice|dynamic-slice"
    r"|dynamic-update-slice|gather|scatter|pad|select|convert|reshape|iota|sort)(?P<half>-start|-done)?(?:\.\d+)*$"
)


@remembered(_CACHED)
def op_class(category: str, name: str, does_arithmetic: bool) -> OpClass | None:
    """Class of an operator; None where neither category nor name says what it is.

    `does_arithmetic`: the profile states FLOP above 0 for it, which matters only where the category is opaque.
    """
    category = known_category(category, name)
    if not category:
        return None
    if category in _OPAQUE:
        return _opaque(category, name, does_arithmetic)
    collective = _first(_COLLECTIVES, category)
    if collective is not None and "host" not in category:
        return OpClass("communication", collective=collective)
    if _HOST_TRANSFER.search(category):
        return OpClass("copy")
    kinds = [kind for kind, pattern in _KINDS if pattern.search(category)]
    return OpClass("compute", kinds[0] if kinds else "elementwise")


def known_category(category: str, name: str) -> str:
    """The stated category, or the opcode a name begins with where none is stated; "" where neither is known."""
    if category.lower() not in _NO_CATEGORY:
        return category
    match = _OPCODE.match(name)
    return f"{match['opcode']}{match['half'] or ''}" if match else ""


def collective_of(name: str) -> str | None:
    """Collective an operator name stands for, or None."""
    return _first(_COLLECTIVES, name)


def _opaque(category: str, name: str, does_arithmetic: bool) -> OpClass:
    collective = _first(_COLLECTIVES, name)
    if collective is not None and not does_arithmetic and not _ARITHMETIC.search(name):
        return OpClass("communication", collective=collective)
    if category.startswith("async-") and _DMA_NAME.match(name):
        return OpClass("copy")
    kind = kind_of(name)
    return OpClass("compute", kind if kind in _TELLING_KINDS else "other")


def _first(rules: tuple[tuple[str, re.Pattern[str]], ...], text: str) -> str | None:
    return next((meaning for meaning, pattern in rules if pattern.search(text)), None)
