"""ModelArchitecture: the numbers of a decoder-only transformer that cost and memory depend on."""

from typing import Self

from pydantic import Field, model_validator

from projector.specs.record import Record


class ModelArchitecture(Record):
    """A decoder-only transformer: dense or mixture of experts, grouped-query attention, optional sliding window.

    intermediate_size is the width of a dense MLP; moe_intermediate_size that of one expert.
    experts = 0 means dense. `source` says where the numbers come from, `unverified` that nobody re-read them.
    """

    name: str
    hf_id: str | None = None
    layers: int = Field(ge=1)
    hidden_size: int = Field(ge=1)
    heads: int = Field(ge=1)
    kv_heads: int = Field(ge=1)
    head_dim: int = Field(ge=1)
    intermediate_size: int = Field(ge=1)
    vocab_size: int = Field(ge=1)
    gated_mlp: bool = True
    tied_embeddings: bool = False
    attention_bias: bool = False
    experts: int = Field(0, ge=0)
    experts_per_token: int = Field(0, ge=0)
    moe_intermediate_size: int = Field(0, ge=0)
    shared_experts: int = Field(0, ge=0)
    first_dense_layers: int = Field(0, ge=0)
    sliding_window: int | None = Field(None, ge=1, description="tokens a sliding-window layer attends to")
    sliding_layers: int = Field(0, ge=0, description="layers with the sliding window; the others attend to all")
    max_positions: int | None = Field(None, ge=1)
    source: str
    retrieved: str | None = Field(None, description="date the source was read, ISO 8601")
    published_parameters: float | None = Field(None, gt=0, description="parameter count its publisher states")
    unverified: bool = False

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads {self.kv_heads} does not divide heads {self.heads}")
        if self.experts and not (self.experts_per_token and self.moe_intermediate_size):
            raise ValueError("a mixture of experts needs experts_per_token and moe_intermediate_size")
        if self.experts_per_token > self.experts:
            raise ValueError(f"experts_per_token {self.experts_per_token} > experts {self.experts}")
        if self.sliding_layers and self.sliding_window is None:
            raise ValueError("sliding_layers without sliding_window")
        if max(self.sliding_layers, self.first_dense_layers) > self.layers:
            raise ValueError("more sliding or dense layers than layers")
        return self

    @property
    def is_moe(self) -> bool:
        """Whether any layer routes tokens to experts."""
        return self.experts > 0

    @property
    def moe_layers(self) -> int:
        """Layers whose MLP is a mixture of experts."""
        return self.layers - self.first_dense_layers if self.is_moe else 0

    @property
    def attention_parameters(self) -> int:
        """Weights of one attention block: Q, K, V, O projections."""
        q_width, kv_width = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return self.hidden_size * (2 * q_width + 2 * kv_width)

    @property
    def dense_mlp_parameters(self) -> int:
        """Weights of one dense MLP: up and down, and gate where gated."""
        return (3 if self.gated_mlp else 2) * self.hidden_size * self.intermediate_size

    @property
    def expert_parameters(self) -> int:
        """Weights of one expert."""
        return (3 if self.gated_mlp else 2) * self.hidden_size * self.moe_intermediate_size

    @property
    def embedding_parameters(self) -> int:
        """Weights of one vocabulary matrix."""
        return self.vocab_size * self.hidden_size

    @property
    def parameters(self) -> int:
        """All weights: matrices and norm vectors; biases are left out (below 0.1 %)."""
        dense_layers = self.layers - self.moe_layers
        moe = self.moe_layers * (
            (self.experts + self.shared_experts) * self.expert_parameters + self.hidden_size * self.experts
        )
        norms = (2 * self.layers + 1) * self.hidden_size
        vocabulary = self.embedding_parameters * (1 if self.tied_embeddings else 2)
        return (
            self.layers * self.attention_parameters
            + dense_layers * self.dense_mlp_parameters
            + moe
            + norms
            + vocabulary
        )

    @property
    def active_parameters(self) -> int:
        """Weights one token passes through, both vocabulary matrices included where they differ."""
        idle_experts = self.moe_layers * (self.experts - self.experts_per_token) * self.expert_parameters
        return self.parameters - idle_experts
