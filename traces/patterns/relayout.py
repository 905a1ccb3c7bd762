"""Copies that change a layout beside a matrix kernel or a collective: the operand does not lie as its user wants it."""

import re
from typing import Final

import numpy as np

from traces.kernel_names import LONGEST_NAME
from traces.linking import NONE, inside
from traces.naming import EventClass
from traces.patterns.scene import Found, Scene
from traces.remembered import remembered
from traces.trace import Category, Mask

# Kernels that do nothing but move elements: cuDNN and MIOpen around NHWC convolutions, fusions of XLA that XLA names
# after their only operator, Triton kernels named after layout operators alone. A cast or a product in the name: no.
_KERNEL: Final = re.compile(
    r"nchw_?to_?nhwc|nhwc_?to_?nchw|nchw2nhwc|nhwc2nchw"
    r"|\bbatched_transpose|transpose_readwrite|\btransposend?\b"
    r"|^%?(?:wrapped_|loop_|input_)?transpose(?:_fusion)?(?:[._]\d+)*(?:\.kd)?$"
    r"|^%?(?:copy|bitcast-convert|bitcast_convert)(?:\.\d+)*$"
    r"|^triton_poi_fused(?:_(?:clone|transpose|permute|view|t|unsqueeze|expand|contiguous|_unsafe_view))+_\d+$"
)
_HINTS: Final = ("transpose", "nhwc", "copy", "bitcast", "triton_poi_fused")
# what clears or scales a result before a kernel adds to it: MIOpen's, PyTorch's
_FILL: Final = re.compile(r"^SubTensorOpWith|FillFunctor|^%?broadcast(?:\.\d+)*$")
_XLA_CATEGORIES: Final = frozenset({"data formatting", "copy", "transpose"})
# operators that copy only where a tensor does not lie as they want it
_OPERATOR: Final = re.compile(r"aten::(?:contiguous|reshape)")
_CACHED: Final = 32_768
_BASIS: Final = (
    "names of kernels, or a copy inside an operator that copies only what does not lie as wanted; the nearest other "
    "event on the stream is a matrix kernel or a collective"
)


def relayout_copies(scene: Scene) -> Found | None:
    """Copies that only change a layout and whose neighbour on the stream, before or behind, is a matrix kernel
    (product, convolution, attention, experts) or a collective; other such copies, and fills, between do not count.
    """
    relayouts = _of_names(scene) | _of_operators(scene)
    if not relayouts.any():
        return None
    fills = (scene.trace.category[scene.rows] == Category.MEMSET) | scene.named(_is_fill)
    before, after = scene.neighbours(relayouts | fills)
    wants = scene.is_matrix | scene.communicates
    beside = np.zeros(len(wants), dtype=np.bool_)
    for near in (before, after):
        beside |= (near != NONE) & wants[near]
    places = np.flatnonzero(relayouts & beside)
    if not len(places):
        return None
    return scene.found("relayout_copies", places, occurrences=len(places), basis=_BASIS, certain=True)


@remembered(_CACHED)
def _is_relayout(name: str) -> bool:
    """Whether a kernel's name says that it only changes a layout."""
    name = name[:LONGEST_NAME].lower()
    return any(hint in name for hint in _HINTS) and _KERNEL.search(name) is not None


@remembered(_CACHED)
def _is_fill(name: str) -> bool:
    return _FILL.search(name, 0, LONGEST_NAME) is not None


def _of_names(scene: Scene) -> Mask:
    profile = scene.trace.profile
    titles = () if profile is None else {one.op.name for one in profile.ops if one.op.category in _XLA_CATEGORIES}
    named = scene.named(lambda name: name in titles or _is_relayout(name))
    return named & ~scene.communicates


def _of_operators(scene: Scene) -> Mask:
    """Kernels of aten::copy_ launched inside aten::contiguous or aten::reshape."""
    trace, links = scene.trace, scene.classified.links
    copying = np.fromiter((name == "aten::copy_" for name in trace.names), np.bool_, len(trace.names))
    copies: Mask = (links.operator != NONE) & copying[trace.name_id[links.operator]] & (links.launch != NONE)
    copies &= scene.classified.event_class != EventClass.COMMUNICATION
    wanted = np.fromiter((_OPERATOR.fullmatch(name) is not None for name in trace.names), np.bool_, len(trace.names))
    around = trace.named(trace.rows(Category.CPU_OP), wanted)
    found = np.zeros(len(copies), dtype=np.bool_)
    if copies.any() and len(around):
        found[copies] = inside(trace, links.launch[copies], around)
    return found
