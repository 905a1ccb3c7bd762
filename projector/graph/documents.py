"""Documents in the rows of a step: what packing takes off attention, and what padding wastes."""

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from projector.graph.scope import causal_pairs
from projector.specs.sequence_lengths import SequenceLengths

# Quantiles a distribution of lengths is replaced by: with 512 its second moment is off by less than 1 % up to a 95th
# percentile of three times the mean.
POINTS = 512


def document_tokens(lengths: SequenceLengths, seq_len: int) -> NDArray[np.float64]:
    """Equally likely lengths of a document, shape [POINTS]: log-normal, none beyond a row; below that cut of the stated
    mean."""
    deviations = np.array([NormalDist().inv_cdf((point + 0.5) / POINTS) for point in range(POINTS)])
    scaled = np.exp(lengths.spread * deviations)
    tokens: NDArray[np.float64] = np.minimum(scaled * lengths.mean_tokens / scaled.mean(), float(seq_len))
    return tokens


def row_pairs(seq_len: int, lengths: SequenceLengths | None, window: int | None, *, chunked: bool = False) -> float:
    """(query, key) pairs a causal kernel computes in one row of seq_len tokens.

    Packed rows hold seq_len / E[l] documents of pairs(l) each; padded rows are computed whole.
    """
    if lengths is None or lengths.rows == "padded":
        return float(causal_pairs(seq_len, window, chunked=chunked))
    tokens = document_tokens(lengths, seq_len)
    return float(seq_len / tokens.mean() * causal_pairs(tokens, window, chunked=chunked).mean())


def useful_frac(seq_len: int, lengths: SequenceLengths | None) -> float:
    """Share of the positions of a row that train: 1 in packed rows, taken as full; E[l] / seq_len in padded ones."""
    if lengths is None or lengths.rows == "packed":
        return 1.0
    return float(document_tokens(lengths, seq_len).mean()) / seq_len


def context_tokens(seq_len: int, lengths: SequenceLengths | None, window: int | None) -> float:
    """Tokens of the own document (at most of the window) that a token trains with in the mean: E[l min(l, w)] / E[l].

    The whole document, not the half before the token, as in the convention of published model FLOP.
    """
    if lengths is None:
        return float(min(window or seq_len, seq_len))
    tokens = document_tokens(lengths, seq_len)
    seen = tokens if window is None else np.minimum(tokens, float(window))
    return float((tokens * seen).mean() / tokens.mean())
