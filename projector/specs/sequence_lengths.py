"""How long the documents of a training step are, where they are shorter than its rows."""

import math
from typing import Literal, Self

from pydantic import Field, model_validator

from projector.specs.record import MOST_TOKENS, Record

# 95th percentile of the standard normal distribution
P95_DEVIATIONS = 1.6449
# a log-normal distribution of mean m has its 95th percentile at m exp(P95_DEVIATIONS s - s^2 / 2), at most this much
LARGEST_P95_RATIO = math.exp(P95_DEVIATIONS**2 / 2)


class SequenceLengths(Record):
    """Documents in the rows of `seq_len` tokens a step computes; their lengths are log-normal, cut at a row.

    rows "packed"   a row is filled with documents, and each of them attends to itself alone (a mask a document)
    rows "padded"   a row holds one document and padding to its end, which is computed like the rest and trains nothing
    p95_tokens None: all documents are alike.
    """

    rows: Literal["packed", "padded"] = Field(description="how documents fill the rows of seq_len tokens")
    mean_tokens: float = Field(gt=0, le=MOST_TOKENS, description="mean length of a document")
    p95_tokens: float | None = Field(None, gt=0, le=MOST_TOKENS, description="95th percentile of those lengths")

    @model_validator(mode="after")
    def _a_distribution(self) -> Self:
        if self.p95_tokens is None:
            return self
        if self.p95_tokens < self.mean_tokens:
            raise ValueError(f"p95_tokens {self.p95_tokens:g} is below mean_tokens {self.mean_tokens:g}")
        if self.p95_tokens > LARGEST_P95_RATIO * self.mean_tokens:
            raise ValueError(
                f"p95_tokens {self.p95_tokens:g} is more than {LARGEST_P95_RATIO:.2f} times mean_tokens "
                f"{self.mean_tokens:g}: no log-normal distribution has both"
            )
        return self

    @property
    def spread(self) -> float:
        """Standard deviation of the logarithm of a length: the smaller root of s^2 / 2 - z s + ln(p95 / mean) = 0."""
        if self.p95_tokens is None:
            return 0.0
        return P95_DEVIATIONS - math.sqrt(
            max(P95_DEVIATIONS**2 - 2 * math.log(self.p95_tokens / self.mean_tokens), 0.0)
        )

    @property
    def text(self) -> str:
        """The lengths in a few words."""
        p95 = "" if self.p95_tokens is None else f", 95 % within {self.p95_tokens:g}"
        return f"documents of {self.mean_tokens:g} tokens in the mean{p95}, {self.rows}"
