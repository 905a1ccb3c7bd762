"""Model FLOP: what training a token takes by the model's definition, whatever computes it."""

from projector.graph.documents import context_tokens
from projector.specs.architecture import ModelArchitecture
from projector.specs.sequence_lengths import SequenceLengths


def model_flop_per_token(
    model: ModelArchitecture, seq_len: int, lengths: SequenceLengths | None = None, *, trained_frac: float = 1.0
) -> float:
    """Model FLOP a trained token, forward and backward, without recompute.

        (4 + 2 trained) N + 6 heads (head_dim + value_dim) sum over layers of min(window, seq_len) + 3 recurrence

    In rows of several documents seq_len is the mean length of a token's own document (`context_tokens`).
    trained: share of the weights that have a gradient, 1 or with adapters 0 (theirs, below a hundredth, are left out).
    N: weights a token is multiplied with: active parameters without look-up tables, norms and other vectors. Attention
    is counted whole, not halved for the causal mask: the convention of PaLM (arXiv:2204.02311, appendix B; 12 heads
    head_dim where keys and values are alike) and of most published MFU figures; in sparse attention the keys chosen
    count as a window, the indexer's scores as attention of its own heads to all. Recurrent mixers count what a token
    changes and reads of their state (`Recurrence.model_flop_per_token`), not the chunks of an algorithm. Softmax, norms
    and other element-wise work are not counted.
    """
    # each prediction layer multiplies with the vocabulary once more
    multiplied = multiplied_parameters(model) + model.trained_mtp_layers * model.embedding_parameters
    weights_flop = (4.0 + 2.0 * trained_frac) * multiplied
    return weights_flop + attention_flop_per_token(model, seq_len, lengths) + 3.0 * recurrence_flop_per_token(model)


def served_flop_per_request(
    model: ModelArchitecture, input_len: float, output_len: float, prefix_hit_frac: float = 0.0
) -> float:
    """Model FLOP of one request, forward, of the tokens that are computed.

        2 (N - V) (T - hit) + 2 V output_len + 2 heads (head_dim + value_dim) sum over layers and tokens of keys seen
        + recurrence, T = input_len + output_len - 1

    N: weights a token is multiplied with, V those of the vocabulary, which only tokens that are sampled from need. The
    last token generated is never fed back. Attention is counted over the keys a token really sees (the mask taken off,
    windows and chosen keys as such), unlike that of training. Prompt tokens whose keys a cache holds are not computed.
    """
    fed, cached = input_len + output_len - 1.0, prefix_hit_frac * input_len
    layers = multiplied_parameters(model) - model.embedding_parameters
    weights_flop = 2.0 * layers * (fed - cached) + 2.0 * model.embedding_parameters * output_len
    attention_flop = sum(_served_attention_flop(one, fed, cached) for one in model.by_sort())
    return weights_flop + attention_flop + recurrence_flop_per_token(model) * (fed - cached)


def multiplied_parameters(model: ModelArchitecture) -> int:
    """Weights a token is multiplied with: active parameters without look-up tables, norms and other vectors."""
    tables = model.position_parameters + model.layer_embedding_parameters
    tables += 0 if model.tied_embeddings else model.embedding_parameters
    vectors = sum(one.layers * one.recurrence.vector_parameters for one in model.by_sort() if one.recurrence)
    return model.active_parameters - model.norm_parameters - vectors - tables


def recurrence_flop_per_token(model: ModelArchitecture) -> float:
    """Model FLOP of recurrent mixers a token, forward."""
    return sum((one.layers * one.recurrence.model_flop_per_token for one in model.by_sort() if one.recurrence), 0.0)


def attention_flop_per_token(model: ModelArchitecture, seq_len: int, lengths: SequenceLengths | None = None) -> float:
    """The part of it that is attention: scores and their product with the values, over all pairs (formula above)."""
    layers = sum(_attention_flop(one, seq_len, lengths) for one in model.by_sort())
    if not model.trained_mtp_layers:
        return layers
    return layers + model.trained_mtp_layers * _attention_flop(model.prediction_layer(), seq_len, lengths)


def _attention_flop(model: ModelArchitecture, seq_len: int, lengths: SequenceLengths | None) -> float:
    full, window = context_tokens(seq_len, lengths, None), context_tokens(seq_len, lengths, model.window)
    context = (model.attention_layers - model.windowed_layers) * full + model.windowed_layers * window
    indexer = 6.0 * model.index_heads * model.index_head_dim * model.attention_layers * full
    return indexer + 6.0 * model.heads * (model.head_dim + model.value_dim) * context


def _served_attention_flop(model: ModelArchitecture, fed: float, cached: float) -> float:
    """Scores and their product with the values, of tokens cached + 1 to fed."""
    full, near = (_keys_seen(fed, most) - _keys_seen(cached, most) for most in (None, model.window))
    seen = (model.attention_layers - model.windowed_layers) * full + model.windowed_layers * near
    indexer = 2.0 * model.index_heads * model.index_head_dim * model.attention_layers * full
    return indexer + 2.0 * model.heads * (model.head_dim + model.value_dim) * seen


def _keys_seen(tokens: float, most: int | None) -> float:
    """Keys that tokens 1 to `tokens` see, each those before it and itself, at most `most`."""
    growing = tokens if most is None else min(tokens, float(most))
    return growing * (growing + 1) / 2 + (tokens - growing) * growing
