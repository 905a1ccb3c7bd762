"""The KV pool of one attention rank, in blocks, and the prefixes kept in it."""

from collections import OrderedDict
from dataclasses import dataclass, field
from math import ceil

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Pool:
    """Bytes a rank has for keys and values; what a request takes whatever its length, and a token of it.

    Tokens are kept in whole blocks. Layers with a window or a recurrent state hold less than a token's bytes for each
    token: `request_bytes` and `token_bytes` are the straight line through the shortest and the longest request.
    """

    bytes_: float
    request_bytes: float
    token_bytes: float
    block_tokens: int

    def of(self, tokens: float) -> float:
        """Bytes of a request that holds so many tokens."""
        return self.request_bytes + self.token_bytes * self.block_tokens * ceil(tokens / self.block_tokens)

    def of_all(self, tokens: NDArray[np.float64]) -> float:
        """Bytes of several."""
        blocks = float(np.ceil(tokens / self.block_tokens).sum())
        return len(tokens) * self.request_bytes + self.token_bytes * self.block_tokens * blocks

    def at_most(self, requests: int, tokens: float) -> float:
        """What so many requests with so many tokens together take at most: a block more each."""
        return requests * self.request_bytes + self.token_bytes * (tokens + requests * self.block_tokens)


@dataclass
class PrefixCache:
    """Blocks of prompts whose keys and values are at hand, by their ids: held by a running request, or idle.

    Idle blocks fill what running requests leave of the pool; the least recently used one goes first.
    """

    block_tokens: int
    held: dict[int, int] = field(default_factory=dict)
    idle: OrderedDict[int, None] = field(default_factory=OrderedDict)

    def hits(self, blocks: tuple[int, ...]) -> int:
        """How many leading blocks are at hand."""
        for count, block in enumerate(blocks):
            if block not in self.held and block not in self.idle:
                return count
        return len(blocks)

    def newly_held(self, blocks: tuple[int, ...]) -> int:
        """How many of them no running request holds."""
        return sum(block not in self.held for block in blocks)

    def hold(self, blocks: tuple[int, ...]) -> None:
        """Keep them until they are released as often."""
        for block in blocks:
            self.idle.pop(block, None)
            self.held[block] = self.held.get(block, 0) + 1

    def release(self, blocks: tuple[int, ...]) -> None:
        """Undo one `hold`; what nobody holds any more is idle."""
        for block in blocks:
            self.held[block] -= 1
            if not self.held[block]:
                del self.held[block]
                self.idle[block] = None

    def trim(self, room: int) -> None:
        """Drop idle blocks, the least recently used first, until `room` are left."""
        while len(self.idle) > max(room, 0):
            self.idle.popitem(last=False)
