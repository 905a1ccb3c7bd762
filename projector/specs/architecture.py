"""ModelArchitecture: the numbers of a decoder-only transformer that cost and memory depend on."""

from typing import Literal, Self

from pydantic import Field, model_validator

from projector.specs.architecture_checks import contradictions
from projector.specs.layer_sort import LayerSort, MlpKind
from projector.specs.plan import Dtype
from projector.specs.record import MOST_TOKENS, MOST_WIDTH, Record
from projector.specs.recurrence import Recurrence

Positions = Literal["rope", "learned", "alibi", "none"]


class ModelArchitecture(Record):
    """A decoder-only transformer: dense or mixture of experts; grouped-query or multi-head latent attention.

    intermediate_size is the width of a dense MLP; moe_intermediate_size that of one expert, routed or shared.
    experts = 0 means dense. kv_lora_rank > 0 means multi-head latent attention (DeepSeek-V2, arXiv:2405.04434): keys
    and values come from one latent of that width a token, and head_dim = qk_nope_head_dim + qk_rope_head_dim.
    sorts lists the layers by sort where they differ in more than a window or experts: hybrids, layers of several sizes.
    `by_sort` gives each as a model whose layers are all alike.
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
    clamped_experts: bool = Field(
        False, description="experts clamp their gated activation and add biases around it (GPT-OSS): a chain of kernels"
    )
    positions: Positions = "rope"
    parallel_block: bool = Field(False, description="attention and MLP read one norm and are summed in one place")
    post_norms: bool = Field(False, description="a norm behind attention and MLP besides the one before each")
    experts: int = Field(0, ge=0, le=MOST_WIDTH)
    experts_per_token: int = Field(0, ge=0, le=MOST_WIDTH)
    expert_groups: int = Field(1, ge=1, le=MOST_WIDTH, description="groups of experts the router chooses among first")
    groups_per_token: int = Field(1, ge=1, le=MOST_WIDTH, description="groups a token's experts may lie in")
    moe_intermediate_size: int = Field(0, ge=0, le=MOST_WIDTH)
    shared_experts: int = Field(0, ge=0, le=MOST_WIDTH)
    first_dense_layers: int = Field(0, ge=0, le=MOST_WIDTH)
    expert_latent_size: int = Field(
        0,
        ge=0,
        le=MOST_WIDTH,
        description="width routed experts work on behind a projection; 0: hidden_size",
    )
    moe_every_layers: int = Field(1, ge=1, le=MOST_WIDTH, description="one of so many layers is a mixture of experts")
    sliding_window: int | None = Field(
        None, ge=1, le=MOST_WIDTH, description="tokens a sliding-window layer attends to"
    )
    sliding_layers: int = Field(
        0, ge=0, le=MOST_WIDTH, description="layers with the sliding window; the others attend to all"
    )
    chunked_window: bool = Field(False, description="the window is a fixed chunk of the sequence, not a moving one")
    attention_gate: bool = Field(False, description="a gate as wide as the queries on what attention computes")
    index_topk: int = Field(0, ge=0, le=MOST_TOKENS, description="keys sparse attention sees; 0: attention to all")
    index_heads: int = Field(0, ge=0, le=MOST_WIDTH, description="heads of the indexer that chooses them")
    index_head_dim: int = Field(0, ge=0, le=MOST_WIDTH, description="features of an indexer's head and of its one key")
    layer_embedding_size: int = Field(
        0, ge=0, le=MOST_WIDTH, description="features looked up for each token in each layer besides the embedding"
    )
    encoder_parameters: int | None = Field(
        0, ge=0, description="weights of vision and audio encoders in front, which are left out; None: not stated"
    )
    sorts: tuple[LayerSort, ...] = Field((), max_length=256, description="layers by sort; empty: see the fields above")
    recurrence: Recurrence | None = Field(None, description="mixer of layers that keep a state, not keys and values")
    q_lora_rank: int = Field(0, ge=0, le=MOST_WIDTH, description="width of the query latent; 0: no query latent")
    kv_lora_rank: int = Field(
        0, ge=0, le=MOST_WIDTH, description="width of the key-value latent; 0: no latent attention"
    )
    qk_nope_head_dim: int = Field(0, ge=0, le=MOST_WIDTH)
    qk_rope_head_dim: int = Field(0, ge=0, le=MOST_WIDTH)
    v_head_dim: int = Field(0, ge=0, le=MOST_WIDTH, description="features of a value head; 0: head_dim")
    mtp_layers: int = Field(
        0, ge=0, le=MOST_WIDTH, description="multi-token-prediction layers of the checkpoint; see trained_mtp_layers"
    )
    trained_mtp_layers: int = Field(0, ge=0, le=64, description="prediction layers that are trained beside the model")
    max_positions: int | None = Field(None, ge=1, le=MOST_TOKENS)
    checkpoint_dtype: Dtype | None = Field(
        None, description="dtype most weights of the published checkpoint are stored in; None: 16 bit or not stated"
    )
    source: str
    retrieved: str | None = Field(None, description="date the source was read, ISO 8601")
    class_defaults: tuple[str, ...] = Field(
        (), description="keys the configuration leaves to the defaults of its class in transformers"
    )
    published_parameters: float | None = Field(None, gt=0, description="parameter count its publisher states")
    published_parameters_source: str | None = Field(None, description="where that count is stated")
    unverified: bool = False
    note: str = Field("", description="what a reader of the numbers has to know")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        found = next(contradictions(self), None)
        if found is not None:
            raise ValueError(found)
        return self

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
        return self.v_head_dim or self.head_dim

    @property
    def moe_layers(self) -> int:
        """Layers whose MLP is a mixture of experts."""
        if self.sorts:
            return sum(sort.layers for sort in self.sorts if sort.mlp == "experts")
        return (self.layers - self.first_dense_layers) // self.moe_every_layers if self.is_moe else 0

    @property
    def sort(self) -> LayerSort | None:
        """The one sort of a model whose layers are all alike and described as a sort."""
        return self.sorts[0] if len(self.sorts) == 1 else None

    def prediction_layer(self) -> "ModelArchitecture":
        """A prediction layer as a model of that layer alone: attention to all, and the MLP most layers have."""
        mlp: MlpKind = "experts" if self.is_moe else "dense"
        if not self.sorts:
            sort = LayerSort(layers=1, mlp=mlp)
        else:
            attending = sorted(
                (sort for sort in self.sorts if sort.attention), key=lambda sort: sort.window is not None
            )
            sort = attending[0].model_copy(update={"layers": 1, "recurrent": False})
            if sort.mlp == "none":
                sort = sort.model_copy(update={"mlp": mlp})
        return self._only(sort).model_copy(
            update={"first_dense_layers": 0, "moe_every_layers": 1, "trained_mtp_layers": 0}
        )

    @property
    def mtp_matrix_parameters(self) -> int:
        """Weights of one prediction layer without norms: the layer, and the projection of two hidden states to one."""
        return self.prediction_layer()._one_layer_parameters() + 2 * self.hidden_size * self.hidden_size

    def by_sort(self) -> tuple["ModelArchitecture", ...]:
        """Each sort of layers as a model that has those layers alone; the model itself where it lists no sorts."""
        return tuple(self._only(sort) for sort in self.sorts) or (self,)

    def _only(self, sort: LayerSort) -> "ModelArchitecture":
        experts = sort.mlp == "experts"
        return self.model_copy(
            update={
                "layers": sort.layers,
                "sorts": (sort,),
                "heads": sort.heads or self.heads,
                "kv_heads": sort.kv_heads or self.kv_heads,
                "head_dim": sort.head_dim or self.head_dim,
                "intermediate_size": sort.intermediate_size or self.intermediate_size,
                "sliding_window": sort.window,
                "sliding_layers": sort.layers if sort.window else 0,
                "experts": self.experts if experts else 0,
                "shared_experts": self.shared_experts if experts else 0,
                "recurrence": self.recurrence if sort.recurrent else None,
                "index_topk": self.index_topk if sort.attention and sort.selection != "none" else 0,
                "index_heads": self.index_heads if sort.attention and sort.selection == "own" else 0,
            }
        )

    @property
    def attention_layers(self) -> int:
        """Layers with attention over keys and values of earlier tokens."""
        return sum(sort.layers for sort in self.sorts if sort.attention) if self.sorts else self.layers

    @property
    def window(self) -> int | None:
        """Keys a token attends to at most in layers that do not attend to all: of the window, or chosen ones."""
        return self.sliding_window if self.index_topk == 0 else min(self.index_topk, self.sliding_window or MOST_TOKENS)

    @property
    def windowed_layers(self) -> int:
        """Layers that do not attend to all."""
        return self.attention_layers if self.index_topk else self.sliding_layers

    @property
    def index_parameters(self) -> int:
        """Weights of one layer's indexer: queries, one key, and with latents a weight for each head."""
        if not self.index_heads:
            return 0
        weights = self.index_heads if self.q_lora_rank else 0
        queries = (self.q_lora_rank or self.hidden_size) * self.index_heads * self.index_head_dim
        return queries + self.hidden_size * (self.index_head_dim + weights)

    @property
    def has_dense_mlp(self) -> bool:
        """Whether any layer has a dense MLP."""
        if self.sorts:
            return any(sort.mlp == "dense" for sort in self.sorts)
        return self.moe_layers < self.layers

    @property
    def key_value_projections(self) -> int:
        """Projections from the hidden state to keys and values a layer has: 2, 1 where one serves as both, 0."""
        if self.sort is None:
            return 2
        return 0 if self.sort.reuses_keys else 1 if self.sort.shared_projection else 2

    @property
    def attention_parameters(self) -> int:
        """Weights of one attention block: Q, K, V, O projections; with latents their down and up projections."""
        hidden, q_width = self.hidden_size, self.heads * self.head_dim
        gate = hidden * self.heads * self.value_dim if self.attention_gate else 0
        if not self.is_mla:
            kv_width = self.kv_heads * (0, self.head_dim, self.head_dim + self.value_dim)[self.key_value_projections]
            return hidden * (q_width + kv_width + self.heads * self.value_dim) + gate
        query = hidden * q_width + gate
        if self.q_lora_rank:
            query = self.q_lora_rank * (hidden + q_width) + gate
        down = hidden * (self.kv_lora_rank + self.qk_rope_head_dim)
        up = self.kv_lora_rank * self.heads * (self.qk_nope_head_dim + self.v_head_dim)
        return query + down + up + self.heads * self.v_head_dim * hidden

    @property
    def dense_mlp_parameters(self) -> int:
        """Weights of one dense MLP: up and down, and gate where gated."""
        return (3 if self.gated_mlp else 2) * self.hidden_size * self.intermediate_size

    @property
    def expert_parameters(self) -> int:
        """Weights of one routed expert."""
        return (3 if self.gated_mlp else 2) * self.expert_features * self.moe_intermediate_size

    @property
    def expert_features(self) -> int:
        """Features of a token that travel to a routed expert and back."""
        return self.expert_latent_size or self.hidden_size

    @property
    def moe_block_parameters(self) -> int:
        """Weights of one layer's experts, shared ones, router, and projections to the experts' latent and back."""
        shared = (3 if self.gated_mlp else 2) * self.hidden_size * self.moe_intermediate_size * self.shared_experts
        latent = 2 * self.hidden_size * self.expert_latent_size
        return self.experts * self.expert_parameters + shared + self.hidden_size * self.experts + latent

    @property
    def embedding_parameters(self) -> int:
        """Weights of one vocabulary matrix."""
        return self.vocab_size * self.hidden_size

    @property
    def position_parameters(self) -> int:
        """Weights of the table of learned positions; 0 where positions are computed."""
        return (self.max_positions or 0) * self.hidden_size if self.positions == "learned" else 0

    @property
    def layer_embedding_parameters(self) -> int:
        """Weights of the table of embeddings of each layer's own."""
        return self.vocab_size * self.layers * self.layer_embedding_size

    @property
    def norm_parameters(self) -> int:
        """Weights of the norms over the hidden state (norms inside attention heads are left out)."""
        mtp = self.trained_mtp_layers * self._mtp_norms * self.hidden_size if self.trained_mtp_layers else 0
        return self._layer_norm_parameters + mtp

    @property
    def _mtp_norms(self) -> int:
        """Norms of a prediction layer: of the layer, of its two inputs, of its output."""
        return self.prediction_layer().sorts[0].blocks * (2 if self.post_norms else 1) + 3

    @property
    def _layer_norm_parameters(self) -> int:
        around = 2 if self.post_norms else 1
        if self.sorts:
            extra = self.layers if self.layer_embedding_size else 0
            return (sum(around * sort.blocks * sort.layers for sort in self.sorts) + extra + 1) * self.hidden_size
        each = (1 if self.parallel_block else 2) * around
        return (each * self.layers + 1) * self.hidden_size

    @property
    def recurrence_parameters(self) -> int:
        """Weights of one recurrent mixer; 0 without."""
        return 0 if self.recurrence is None else self.recurrence.parameters(self.hidden_size)

    @property
    def matrix_parameters(self) -> int:
        """Weights of all layers without norms over the hidden state."""
        if self.sorts:
            return sum(one.layers * one._one_layer_parameters() for one in self.by_sort())
        dense_layers = self.layers - self.moe_layers
        moe = self.moe_layers * self.moe_block_parameters
        mixers = self.layers * (self.attention_parameters + self.index_parameters)
        return mixers + dense_layers * self.dense_mlp_parameters + moe

    def _one_layer_parameters(self) -> int:
        sort = self.sorts[0]
        attention = self.attention_parameters + self.index_parameters if sort.attention else 0
        mlp = {"dense": self.dense_mlp_parameters, "experts": self.moe_block_parameters, "none": 0}[sort.mlp]
        own = 3 * self.hidden_size * self.layer_embedding_size
        return attention + self.recurrence_parameters + mlp + own

    @property
    def parameters(self) -> int:
        """All weights: matrices, tables and norm vectors, of prediction layers those that are trained; biases are left
        out (below 0.1 %)."""
        vocabulary = self.embedding_parameters * (1 if self.tied_embeddings else 2)
        tables = vocabulary + self.position_parameters + self.layer_embedding_parameters
        prediction = self.trained_mtp_layers * self.mtp_matrix_parameters if self.trained_mtp_layers else 0
        return self.matrix_parameters + self.norm_parameters + tables + prediction

    @property
    def active_parameters(self) -> int:
        """Weights one token passes through, both vocabulary matrices included where they differ."""
        moe_layers = self.moe_layers + (self.trained_mtp_layers if self.is_moe else 0)
        idle_experts = moe_layers * (self.experts - self.experts_per_token) * self.expert_parameters
        return self.parameters - idle_experts
