"""A note to vary, and a small deterministic embedder behind the real protocol."""

import hashlib
import re
import socket
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from knowledge_base.embed import MiniLmEmbedder

NOTE = """\
---
id: wider-doors
title: Wider doors
levers: [tensor_parallelism]
causes: [exposed_tp]
phases: [training]
hardware: [gpu, tpu]
variables:
  people: {value: 90, unit: people, meaning: people in the hall}
  doors: {value: 3, unit: doors, meaning: doors of the hall}
worked:
  - {name: queue, expression: people / doors, value: 30, unit: people, meaning: people at one door}
inequality: queue < people
holds: true
sources:
  - {title: A book on doors, url: "https://example.org/doors", year: 2020}
---
## Claim
Halls empty through all doors at once.

## When it helps
Many people wait.

## When it hurts
Doors cost wall.

## The inequality that decides
Open doors while `queue < people`.

## Worked number
90 people, 3 doors: 30 at each.
"""


class HashEmbedder:
    """Bag of words, each word a fixed pseudo-random direction. `calls` records what was embedded."""

    dim = 64

    def __init__(self, name: str = "hash-64") -> None:
        self.name = name
        self.calls: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls.extend(texts)
        return np.stack([self._vector(text) for text in texts]) if texts else np.empty((0, self.dim), np.float32)

    def _vector(self, text: str) -> NDArray[np.float32]:
        words = re.findall(r"\w+", text.lower()) or [""]
        total = np.sum([self._direction(word) for word in words], axis=0)
        return np.asarray(total / np.linalg.norm(total), dtype=np.float32)

    def _direction(self, word: str) -> NDArray[np.float64]:
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
        return np.random.default_rng(seed).normal(size=self.dim)


@pytest.fixture
def embedder() -> HashEmbedder:
    return HashEmbedder()


@pytest.fixture
def other_embedder() -> HashEmbedder:
    return HashEmbedder(name="hash-64-retrained")


@pytest.fixture
def note_text() -> Callable[..., str]:
    """The sample note with (old, new) replacements; each old text must be there."""

    def build(*replacements: tuple[str, str]) -> str:
        text = NOTE
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        return text

    return build


@pytest.fixture(scope="session")
def minilm() -> MiniLmEmbedder:
    """The real model, loaded once, with every way to the network cut."""

    def refuse(*_: object) -> None:
        raise AssertionError("the embedder reached for the network")

    embedder = MiniLmEmbedder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        patch.setattr(socket, "getaddrinfo", refuse)
        embedder.load()
        embedder.embed(["warm"])
    return embedder
