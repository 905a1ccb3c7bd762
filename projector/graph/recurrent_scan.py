"""The chunked recurrence itself: arithmetic and traffic of one pass of a state-space or linear-attention core."""

from dataclasses import dataclass

from projector.graph.columns import Column, switched
from projector.graph.operator import Operator
from projector.graph.scope import AttentionWork, Scope
from projector.specs.recurrence import Recurrence

# Vector units against tensor cores at 16 bit: 67 of 989 TFLOP/s on an H100, 19.5 of 312 on an A100 (datasheets).
VECTOR_SLOWDOWN = 16.0
# Bytes a state that passes between chunks moves: Mamba-2's kernels write each chunk's, read and write them while they
# are summed over chunks, and read them again, in fp32; delta-rule kernels write and read one 16-bit copy.
STATE_TRAFFIC = {"mamba2": 16.0, "gated_delta": 4.0, "kimi_delta": 4.0, "lightning": 8.0}
KERNELS = {"mamba1": 1.0, "mamba2": 5.0, "gated_delta": 6.0, "kimi_delta": 6.0, "lightning": 2.0}


@dataclass(frozen=True)
class ScanCost:
    """What the recurrence of all heads costs a token: FLOP, and bytes moved where an activation has act_bytes."""

    flop: float
    act_elements: float
    fixed_bytes: float


def scan_cost(mixer: Recurrence) -> ScanCost:
    """FLOP and traffic of the chunked forward pass a token. H heads, G groups, N state_size, P head_dim, Q chunk.

    mamba2       2 Q N G + 2 Q P H + 4 N P H: scores in the chunk, their product with the values, states in and out
                 (arXiv:2405.21060, section 6); every head reads the keys, queries and fp32 scores of its group
    gated_delta, kimi_delta   H (Q (6 N + 4 P) + Q^2 + 6 N P): key products, the triangular inverse, its products with
                 keys and values, two products with the state and one into it, scores and their product with the values
                 (arXiv:2412.06464, section 3.3); kernels pass intermediate keys and values through memory
    lightning    H (2 Q (N + P) + 4 N P) (arXiv:2401.04658)
    mamba1       9 N a channel on vector units (arXiv:2312.00752, appendix C); states stay on chip
    The masked half of a chunk's scores is computed. Left out: convolution (no multiple of its traffic).
    """
    heads, keys, values, chunk = mixer.heads, mixer.state_size, mixer.head_dim, mixer.chunk
    if mixer.kind == "mamba1":
        return ScanCost(9.0 * mixer.state_elements, 5.0 * mixer.inner + 2.0 * keys, 0.0)
    passed = STATE_TRAFFIC[mixer.kind] * mixer.state_elements / chunk
    both_keys = 2.0 * mixer.key_features
    if mixer.kind == "mamba2":
        flop = 2.0 * chunk * (mixer.key_features + mixer.inner) + 4.0 * mixer.state_elements
        scores = 4.0 * chunk * (mixer.groups + heads / 2)
        return ScanCost(flop, 3.0 * mixer.inner + 2.0 * heads * keys + both_keys, passed + scores)
    if mixer.kind == "lightning":
        flop = heads * (2.0 * chunk * (keys + values) + 4.0 * keys * values)
        return ScanCost(flop, 2.0 * mixer.inner + both_keys, passed)
    flop = heads * (chunk * (6.0 * keys + 4.0 * values) + chunk**2 + 6.0 * keys * values)
    decays = 12.0 * mixer.key_features if mixer.kind == "kimi_delta" else 8.0 * heads
    return ScanCost(flop, 6.0 * mixer.inner + 7.0 * heads * keys, passed + decays)


def scan(scope: Scope, work: AttentionWork, name: str) -> Operator:
    """The recurrence over the queries of `work`; decoding reads and writes the state of every request once.

    Kept for the backward pass: what the input projection gave, the result, and, where kernels do not make it again,
    what the convolution gave. The backward pass is that of attention: states are computed again, 2.5 times the work.
    """
    mixer = scope.recurrence
    cost = scan_cost(mixer)
    decoding = work.absorbed
    tokens = work.queries / scope.tp
    state_bytes: Column = 2 * tokens * mixer.state_bytes
    kept = mixer.input_features + mixer.inner + (0 if mixer.kind == "mamba2" else mixer.convolved_features)
    return Operator(
        name=name,
        kind="attention",
        place="layer",
        run="forward",
        count=switched(work.queries > 0),
        flop=tokens * (mixer.model_flop_per_token if decoding else cost.flop),
        moved_bytes=state_bytes if decoding else tokens * (cost.act_elements * scope.act_bytes + cost.fixed_bytes),
        math="wide",
        kernels=1.0 if decoding else KERNELS[mixer.kind],
        slowdown=VECTOR_SLOWDOWN if decoding or mixer.kind == "mamba1" else 1.0,
        saved_bytes=tokens * kept * scope.act_bytes,
        kept_bytes=tokens * kept * scope.act_bytes,
    )
