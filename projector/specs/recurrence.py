"""Recurrence: a mixer that keeps a state of fixed size instead of keys and values of every token."""

from typing import Literal, Self

from pydantic import Field, model_validator

from projector.specs.record import MOST_WIDTH, Record

RecurrenceKind = Literal["mamba1", "mamba2", "gated_delta", "kimi_delta", "lightning"]
# Bytes of an element of the state: kernels keep it in fp32.
STATE_BYTES = 4.0
# Bytes of an element of the inputs the short convolution looks back at.
CONVOLUTION_BYTES = 2.0


class Recurrence(Record):
    """A state-space or linear-attention mixer. Each of `heads` holds a state of state_size x head_dim numbers.

    mamba2        Mamba-2, state-space duality (arXiv:2405.21060): a scalar decay a head; B and C (keys and queries) are
                  shared by the heads of a group; a gate, a norm behind it
    gated_delta   gated delta net (arXiv:2412.06464; Qwen3-Next, Qwen3.5): the same with the delta rule; `groups` are
                  its key heads
    kimi_delta    Kimi delta attention (arXiv:2510.26692): decay a key feature, gate and decay through projections of
                  rank head_dim; as many key heads as heads
    lightning     lightning attention (arXiv:2501.08313; MiniMax-01): fixed decay a head, no convolution
    mamba1        Mamba (arXiv:2312.00752; Jamba, Falcon-Mamba): a scan channel by channel (head_dim 1, one group);
                  step_rank is the rank of its step size

    chunk: tokens the chunked algorithm takes at once; conv_kernel: taps of the short convolution, 0 for none.
    """

    kind: RecurrenceKind
    heads: int = Field(ge=1, le=MOST_WIDTH)
    head_dim: int = Field(ge=1, le=MOST_WIDTH, description="features of a value head")
    groups: int = Field(ge=1, le=MOST_WIDTH, description="key and query heads")
    state_size: int = Field(ge=1, le=MOST_WIDTH, description="features of a key head")
    conv_kernel: int = Field(0, ge=0, le=64)
    chunk: int = Field(64, ge=1, le=MOST_WIDTH)
    step_rank: int = Field(0, ge=0, le=MOST_WIDTH)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.heads % self.groups:
            raise ValueError(f"groups {self.groups} does not divide the {self.heads} heads of the recurrence")
        if (self.kind == "mamba1") != bool(self.step_rank):
            raise ValueError("step_rank belongs to mamba1 and to it alone")
        if self.kind == "mamba1" and (self.head_dim != 1 or self.groups != 1):
            raise ValueError("mamba1 scans channels: head_dim 1 and one group")
        return self

    @property
    def inner(self) -> int:
        """Value features of all heads."""
        return self.heads * self.head_dim

    @property
    def key_features(self) -> int:
        """Key features of all groups; queries have as many."""
        return self.groups * self.state_size

    @property
    def input_features(self) -> int:
        """Features the projection from the hidden state has, split by heads over tp."""
        keys = 2 * self.key_features
        return {
            "mamba1": 2 * self.inner,
            "mamba2": 2 * self.inner + keys + self.heads,
            "gated_delta": 2 * self.inner + keys + 2 * self.heads,
            "kimi_delta": self.inner + keys + self.heads,
            "lightning": 2 * self.inner + keys,
        }[self.kind]

    @property
    def convolved_features(self) -> int:
        """Features the short convolution runs over."""
        if not self.conv_kernel:
            return 0
        return self.inner if self.kind == "mamba1" else self.inner + 2 * self.key_features

    @property
    def low_rank_parameters(self) -> tuple[int, int]:
        """Weights of projections through a narrow middle: (held whole by every rank, split by heads over tp), without
        the hidden size the first are read from: per hidden feature and in all."""
        if self.kind == "kimi_delta":
            return 2 * self.head_dim, self.head_dim * (self.key_features + self.inner)
        if self.kind == "mamba1":
            return 0, self.inner * (2 * self.step_rank + 2 * self.state_size)
        return 0, 0

    @property
    def vector_parameters(self) -> int:
        """Weights that are no matrices: taps (a bias beside them in Mamba), decays, step biases, the norm."""
        taps = self.conv_kernel + (1 if self.kind in ("mamba1", "mamba2") else 0)
        rest = {
            "mamba1": self.inner * (self.state_size + 2),
            "mamba2": 3 * self.heads + self.inner,
            "gated_delta": 2 * self.heads + self.head_dim,
            "kimi_delta": self.heads + self.key_features + self.head_dim,
            "lightning": self.inner,
        }[self.kind]
        return self.convolved_features * taps + rest

    def parameters(self, hidden_size: int) -> int:
        """All weights of one mixer: projections in and out, low-rank projections, vectors."""
        whole, split = self.low_rank_parameters
        return hidden_size * (self.input_features + self.inner + whole) + split + self.vector_parameters

    @property
    def state_elements(self) -> int:
        """Numbers of the states of all heads."""
        return self.heads * self.head_dim * self.state_size

    @property
    def state_bytes(self) -> float:
        """What one sequence keeps in one layer: fp32 states and the last inputs of the convolution in 16 bit."""
        tail = max(self.conv_kernel - 1, 0) * self.convolved_features
        return STATE_BYTES * self.state_elements + CONVOLUTION_BYTES * tail

    @property
    def model_flop_per_token(self) -> float:
        """FLOP of the recurrence itself on one token, forward: what it takes token by token, whatever the algorithm.

        Decay 1, outer product added 2, read by the query 2 a number of the state; the delta rule reads the state by the
        key as well and takes that from the value: 2 more. Convolution: 2 a tap.
        """
        each = 7 if self.kind in ("gated_delta", "kimi_delta") else 5
        return float(each * self.state_elements + 2 * self.conv_kernel * self.convolved_features)
