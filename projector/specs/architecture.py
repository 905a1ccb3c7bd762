"""ModelArchitecture: the numbers of a decoder-only transformer that cost and memory depend on."""

from typing import Literal, Self

from pydantic import Field, model_validator

from projector.specs.plan import Dtype
from projector.specs.record import MOST_TOKENS, MOST_WIDTH, Record

Positions = Literal["rope", "learned", "alibi", "none"]


class ModelArchitecture(Record):
    """A decoder-only transformer: dense or mixture of experts; grouped-query or multi-head latent attention.

    intermediate_size is the width of a dense MLP; moe_intermediate_size that of one expert, routed or shared.
    experts = 0 means dense. kv_lora_rank > 0 means multi-head latent attention (DeepSeek-V2, arXiv:2405.04434): keys
    and values come from one latent of that width a token, and head_dim = qk_nope_head_dim + qk_rope_head_dim.
    `source` says where the numbers come from, `unverified` that nobody re-read them.
    """

    name: str
    hf_id: str | None = None
    layers: int = Field(ge=1, le=MOST_WIDTH)
    hidden_size: int = Field(ge=1, le=MOST_WIDTH)
    heads: int = Field(ge=1, le=MOST_WIDTH)
    kv_heads: int = Field(ge=1, le=MOST_WIDTH)
    head_dim: int = Field(ge=1, le=MOST_WIDTH)
    intermediate_size: int = Field(ge=1, le=MOST_WIDTH)
    vocab_size: int = Field(ge=1, le=MOST_WIDTH)
    gated_mlp: bool = True
    tied_embeddings: bool = False
    attention_bias: bool = False
    positions: Positions = "rope"
    parallel_block: bool = Field(False, description="attention and MLP read one norm and are summed in one place")
    post_norms: bool = Field(False, description="a norm behind attention and MLP besides the one before each")
    experts: int = Field(0, ge=0, le=MOST_WIDTH)
    experts_per_token: int = Field(0, ge=0, le=MOST_WIDTH)
    moe_intermediate_size: int = Field(0, ge=0, le=MOST_WIDTH)
    shared_experts: int = Field(0, ge=0, le=MOST_WIDTH)
    first_dense_layers: int = Field(0, ge=0, le=MOST_WIDTH)
    moe_every_layers: int = Field(1, ge=1, le=MOST_WIDTH, description="one of so many layers is a mixture of experts")
    sliding_window: int | None = Field(
        None, ge=1, le=MOST_WIDTH, description="tokens a sliding-window layer attends to"
    )
    sliding_layers: int = Field(
        0, ge=0, le=MOST_WIDTH, description="layers with the sliding window; the others attend to all"
    )
    chunked_window: bool = Field(False, description="the window is a fixed chunk of the sequence, not a moving one")
    q_lora_rank: int = Field(0, ge=0, le=MOST_WIDTH, description="width of the query latent; 0: no query latent")
    kv_lora_rank: int = Field(
        0, ge=0, le=MOST_WIDTH, description="width of the key-value latent; 0: no latent attention"
    )
    qk_nope_head_dim: int = Field(0, ge=0, le=MOST_WIDTH)
    qk_rope_head_dim: int = Field(0, ge=0, le=MOST_WIDTH)
    v_head_dim: int = Field(0, ge=0, le=MOST_WIDTH)
    mtp_layers: int = Field(
        0, ge=0, le=MOST_WIDTH, description="multi-token-prediction layers of the checkpoint; not modelled"
    )
    max_positions: int | None = Field(None, ge=1, le=MOST_TOKENS)
    checkpoint_dtype: Dtype | None = Field(
        None, description="dtype most weights of the published checkpoint are stored in; None: 16 bit or not stated"
    )
    source: str
    retrieved: str | None = Field(None, description="date the source was read, ISO 8601")
    published_parameters: float | None = Field(None, gt=0, description="parameter count its publisher states")
    published_parameters_source: str | None = Field(None, description="where that count is stated")
    unverified: bool = False
    note: str = Field("", description="what a reader of the numbers has to know")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads {self.kv_heads} does not divide heads {self.heads}")
        if self.experts and not (self.experts_per_token and self.moe_intermediate_size):
            raise ValueError("a mixture of experts needs experts_per_token and moe_intermediate_size")
        if self.experts_per_token > self.experts:
            raise ValueError(f"experts_per_token {self.experts_per_token} > experts {self.experts}")
        if self.first_dense_layers and self.moe_every_layers > 1:
            raise ValueError("leading dense layers and dense layers in between are not modelled together")
        if (self.sliding_layers or self.chunked_window) and self.sliding_window is None:
            raise ValueError("sliding_layers or chunked_window without sliding_window")
        if max(self.sliding_layers, self.first_dense_layers) > self.layers:
            raise ValueError("more sliding or dense layers than layers")
        if self.positions == "learned" and self.max_positions is None:
            raise ValueError("learned positions without max_positions")
        self._check_latent_attention()
        return self

    def _check_latent_attention(self) -> None:
        dims = (self.q_lora_rank, self.qk_nope_head_dim, self.qk_rope_head_dim, self.v_head_dim)
        if not self.is_mla:
            if any(dims):
                raise ValueError("latent attention sizes without kv_lora_rank")
            return
        if not all(dims[1:]):
            raise ValueError("latent attention needs qk_nope_head_dim, qk_rope_head_dim and v_head_dim")
        if self.head_dim != self.qk_nope_head_dim + self.qk_rope_head_dim:
            raise ValueError("head_dim of latent attention is qk_nope_head_dim + qk_rope_head_dim")
        if self.kv_heads != self.heads:
            raise ValueError("latent attention has as many key and value heads as heads")

    @property
    def is_moe(self) -> bool:
        """Whether any layer routes tokens to experts."""
        return self.experts > 0

    @property
    def is_mla(self) -> bool:
        """Whether keys and values come from a latent."""
        return self.kv_lora_rank > 0

    @property
    def value_dim(self) -> int:
        """Features of one value head."""
        return self.v_head_dim if self.is_mla else self.head_dim

    @property
    def moe_layers(self) -> int:
        """Layers whose MLP is a mixture of experts."""
        return (self.layers - self.first_dense_layers) // self.moe_every_layers if self.is_moe else 0

    @property
    def attention_parameters(self) -> int:
        """Weights of one attention block: Q, K, V, O projections; with latents their down and up projections."""
        hidden, q_width = self.hidden_size, self.heads * self.head_dim
        if not self.is_mla:
            return hidden * (2 * q_width + 2 * self.kv_heads * self.head_dim)
        query = hidden * q_width
        if self.q_lora_rank:
            query = self.q_lora_rank * (hidden + q_width)
        down = hidden * (self.kv_lora_rank + self.qk_rope_head_dim)
        up = self.kv_lora_rank * self.heads * (self.qk_nope_head_dim + self.v_head_dim)
        return query + down + up + self.heads * self.v_head_dim * hidden

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
    def position_parameters(self) -> int:
        """Weights of the table of learned positions; 0 where positions are computed."""
        return (self.max_positions or 0) * self.hidden_size if self.positions == "learned" else 0

    @property
    def norm_parameters(self) -> int:
        """Weights of the norms over the hidden state (norms inside attention heads are left out)."""
        each = (1 if self.parallel_block else 2) * (2 if self.post_norms else 1)
        return (each * self.layers + 1) * self.hidden_size

    @property
    def parameters(self) -> int:
        """All weights: matrices, tables and norm vectors; biases are left out (below 0.1 %), mtp_layers too."""
        dense_layers = self.layers - self.moe_layers
        moe = self.moe_layers * (
            (self.experts + self.shared_experts) * self.expert_parameters + self.hidden_size * self.experts
        )
        vocabulary = self.embedding_parameters * (1 if self.tied_embeddings else 2)
        return (
            self.layers * self.attention_parameters
            + dense_layers * self.dense_mlp_parameters
            + moe
            + self.norm_parameters
            + vocabulary
            + self.position_parameters
        )

    @property
    def active_parameters(self) -> int:
        """Weights one token passes through, both vocabulary matrices included where they differ."""
        idle_experts = self.moe_layers * (self.experts - self.experts_per_token) * self.expert_parameters
        return self.parameters - idle_experts
