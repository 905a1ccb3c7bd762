"""Token budget: how prompts are cut into chunks that share an engine's steps with decoding tokens."""

from dataclasses import dataclass

import numpy as np

from projector.graph.columns import Column
from projector.specs.plan_batch import PlanBatch


@dataclass(frozen=True)
class Prompts:
    """How the prompts of a batch of plans are prefilled, columns of shape [n].

    length      tokens of a prompt, cached: those whose keys and values a prefix cache holds, computed: the others
    budget      prompt tokens a mixed step may carry
    rows_each   tokens each decoding request brings to a step, its last and the drafted ones
    chunks      steps a prompt is cut into, chunk: tokens of the mean one
    """

    length: Column
    cached: Column
    budget: Column
    rows_each: Column

    @classmethod
    def of(cls, batch: PlanBatch, input_len: float, prefix_hit_frac: float, decoding: Column) -> "Prompts":
        """Prompts of input_len tokens beside `decoding` requests in each step of a rank.

            budget = min(chunked_prefill_tokens or the whole prompt, max_batched_tokens - decoding (1 + k))

        k tokens a request are drafted and verified beside its own. Engines schedule decoding tokens first and give
        what is left to prompts (vLLM's max_num_batched_tokens). Never below 1: `most_decoding` keeps as many requests
        from running as would leave less.
        """
        length = np.full(len(batch), float(input_len))
        cached = prefix_hit_frac * length
        chunk = np.where(batch.chunked_prefill_tokens == 0, length - cached, batch.chunked_prefill_tokens)
        rows_each = 1.0 + batch.speculative_tokens
        left = np.where(batch.max_batched_tokens == 0, np.inf, batch.max_batched_tokens - decoding * rows_each)
        return cls(length, cached, np.maximum(np.minimum(chunk, left), 1.0), rows_each)

    @property
    def computed(self) -> Column:
        """Tokens of a prompt that pass the model."""
        return self.length - self.cached

    @property
    def chunks(self) -> Column:
        """Steps a prompt is cut into."""
        found: Column = np.ceil(self.computed / self.budget)
        return found

    @property
    def chunk(self) -> Column:
        """Tokens of the mean chunk."""
        return self.computed / self.chunks

    @property
    def fit_in_budget(self) -> Column:
        """Whole prompts one step may carry; 0 where not even one."""
        found: Column = np.floor(self.budget / self.computed)
        return found


def most_decoding(batch: PlanBatch) -> Column:
    """Requests a step of a rank may decode so that one prompt token is left of its budget; inf without a cap, never
    below 1 (an engine of a smaller budget alternates: `projector.rules.serving_rules` refuses it)."""
    each = 1.0 + batch.speculative_tokens
    most = np.maximum(np.floor((batch.max_batched_tokens - 1.0) / each), 1.0)
    return np.where(batch.max_batched_tokens == 0, np.inf, most)
