"""Speculation: tokens a verifying step yields, who may draft, and what is taken for granted of it."""

import numpy as np

from projector.batch_projection import Assumption
from projector.errors import InvalidDescription
from projector.graph.columns import Column
from projector.graph.drafting import DRAFT_MODEL_RATIO, draft_model_of
from projector.specs.architecture import ModelArchitecture
from projector.specs.plan_batch import PlanBatch

# Chance that a drafted token is accepted, given those before it, where the traffic states none.
#   mtp          DeepSeek-V3 accepts the second token in 85 to 90 % (arXiv:2412.19437, section 5.4.3): a layer that
#                drafts as far ahead as it was trained to. One layer used again and again: 3.1 to 3.2 tokens a step with
#                7 drafts (published with a retrained DeepSeek-V3 MTP module, 2026), which is 0.7 a token
#   eagle        0.7: chains of EAGLE-3; its trees of many drafts a step reach 0.8 (arXiv:2503.01840)
#   draft_model  0.65: the middle of Leviathan et al.'s pairs, 0.5 to 0.8 (arXiv:2211.17192)
#   ngram        0.3: prompt lookup accepts what the answer repeats of its prompt, little in chats, most in edits
#                (arXiv:2601.11580)
ACCEPTANCE_FRAC = {"none": 0.0, "mtp": 0.85, "eagle": 0.7, "draft_model": 0.65, "ngram": 0.3}
MTP_AGAIN_FRAC = 0.7
# One core compares a token of a request's past in about a nanosecond: an estimate, one integer load and compare.
NGRAM_S_PER_TOKEN = 1e-9


def check_drafters(batch: PlanBatch, model: ModelArchitecture) -> None:
    """InvalidDescription where a plan drafts with layers that cannot be: prediction layers the model has not, a layer
    with the model's attention where it has none."""
    if not model.mtp_layers and bool((batch.speculation == "mtp").any()):
        raise InvalidDescription(
            f"speculation mtp: {model.name} has no prediction layers",
            hint="draft_model and ngram draft for any model, eagle for any that attends",
        )
    if not model.attention_layers and bool(np.isin(batch.speculation, ("eagle", "mtp")).any()):
        raise InvalidDescription(
            f"speculation eagle: {model.name} has no attention for a draft layer to share",
            hint="draft_model and ngram draft for any model",
        )


def acceptance_frac(batch: PlanBatch, model: ModelArchitecture, stated: float | None) -> Column:
    """Chance that a drafted token is accepted, shape [n]: the traffic's, or that of the kind of drafter."""
    found = np.zeros(len(batch))
    if not batch.speculative_tokens.any():
        return found
    for kind, frac in ACCEPTANCE_FRAC.items():
        if kind != "none":
            found[batch.speculation == kind] = frac if stated is None else stated
    if stated is None:
        again = (batch.speculation == "mtp") & (batch.speculative_tokens > model.mtp_layers)
        found = np.where(again, MTP_AGAIN_FRAC, found)
    return found


def tokens_a_step(batch: PlanBatch, model: ModelArchitecture, stated: float | None) -> Column:
    """Tokens a request gains in a step, shape [n]: (1 - a^(k + 1)) / (1 - a); 1 where nothing is drafted.

    k drafts, each accepted with chance a given those before it, and one token of the model itself (Leviathan et al.
    2023, arXiv:2211.17192, equation 1).
    """
    a = acceptance_frac(batch, model, stated)
    found: Column = (1.0 - a ** (batch.speculative_tokens + 1.0)) / (1.0 - a)
    return found


def drafting_host_s(batch: PlanBatch, requests: Column, context: Column | float) -> Column:
    """Host time a step waits for n-grams: the past of every request of a rank is searched on one core."""
    if not batch.speculative_tokens.any():
        return np.zeros(len(batch))
    return np.where(batch.speculation == "ngram", requests * context * NGRAM_S_PER_TOKEN, 0.0)


def speculation_assumptions(batch: PlanBatch, model: ModelArchitecture, stated: float | None) -> tuple[Assumption, ...]:
    """Who drafts and how much is accepted, of the plans that speculate."""
    if not batch.speculative_tokens.any():
        return ()
    found = []
    accepted = acceptance_frac(batch, model, stated)
    for kind in np.unique(batch.speculation[batch.speculative_tokens > 0]).tolist():
        text, of_kind = _who_drafts(kind, model), np.asarray(batch.speculation == kind)
        for frac in np.unique(accepted[of_kind]).tolist():
            whose = "as the traffic states" if stated is not None else "the drafter's usual, which traffic decides"
            found.append(
                Assumption(
                    f"{text}; a draft is accepted with chance {frac:g} given those before it: {whose}",
                    of_kind & (accepted == frac),
                )
            )
    return tuple(found)


def _who_drafts(kind: str, model: ModelArchitecture) -> str:
    if kind == "draft_model":
        size = f"{draft_model_of(model).parameters / 1e9:.2g} billion weights"
        return (
            f"a dense model with a {DRAFT_MODEL_RATIO}th of the layers and width ({size}, in 16 bit) drafts, sharded "
            "as the model is; no plan states which"
        )
    return {
        "mtp": "the checkpoint's prediction layers draft",
        "eagle": "one layer of the model's attention with a dense MLP, in 16 bit, drafts (EAGLE-3)",
        "ngram": "n-grams of the request draft, found by one core that searches 1e9 tokens a second",
    }[kind]
