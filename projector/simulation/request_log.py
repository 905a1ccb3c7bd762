"""RequestLog: requests somebody recorded, as columns. Files are read by `agents.request_logs`."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class RequestLog:
    """One entry a request, by arrival.

    arrival_s                   seconds, rising; the first is the start
    input_tokens, output_tokens at least 1 each
    blocks                      ids of the blocks each prompt consists of, `block_tokens` each, the last one cut short;
                                prompts that begin with the same ids begin with the same tokens. (): the log has none
    """

    arrival_s: NDArray[np.float64]
    input_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    blocks: tuple[tuple[int, ...], ...] = ()
    block_tokens: int = 512

    def __post_init__(self) -> None:
        assert len(self.arrival_s) == len(self.input_tokens) == len(self.output_tokens) > 0
        assert np.all(np.diff(self.arrival_s) >= 0), "requests are in order of arrival"
        assert min(self.input_tokens.min(), self.output_tokens.min()) >= 1
        assert len(self.blocks) in (0, len(self))

    def __len__(self) -> int:
        return len(self.arrival_s)
