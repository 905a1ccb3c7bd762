"""Families whose layers differ: the reader of each, and the keys it reads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from projector.hf import nemotron_h
from projector.hf.fields import Config
from projector.hf.layers import Layers


@dataclass(frozen=True)
class LayerReader:
    """How a family's layers are read, and the keys that takes beyond the common ones."""

    read: Callable[[Config], Layers]
    keys: frozenset[str]


READERS: Mapping[str, LayerReader] = {
    "nemotron_h": LayerReader(nemotron_h.read, nemotron_h.KEYS),
}
