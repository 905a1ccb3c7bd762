"""LayerSort: layers of one sort in a model whose layers differ."""

from typing import Literal, Self

from pydantic import Field, model_validator

from projector.specs.record import MOST_WIDTH, Record

MlpKind = Literal["dense", "experts", "none"]


class LayerSort(Record):
    """So many layers that are alike. Order among sorts is not described: they count as evenly mixed over stages.

    attention, recurrent    which mixers a layer has; both stand side by side (Falcon-H1), neither means an MLP alone
    mlp                     what follows the mixer; "none": a layer that is its mixer alone (Nemotron-H)
    heads to v_head_dim, intermediate_size    None: the model's
    window                  tokens the layer's attention sees; None: all before it
    shared_projection       keys serve as values too: one projection fewer (Gemma 4, full attention)
    selection               whose indexer chooses the keys, in a model with sparse attention: the layer's own, an
                            earlier layer's ("shared"), nobody's: attention to all ("none")
    reuses_keys             keys and values are those of an earlier layer: queries alone are projected (Gemma 3n)
    """

    layers: int = Field(ge=1, le=MOST_WIDTH)
    attention: bool = True
    recurrent: bool = False
    mlp: MlpKind = "dense"
    heads: int | None = Field(None, ge=1, le=MOST_WIDTH)
    kv_heads: int | None = Field(None, ge=1, le=MOST_WIDTH)
    head_dim: int | None = Field(None, ge=1, le=MOST_WIDTH)
    intermediate_size: int | None = Field(None, ge=1, le=MOST_WIDTH)
    window: int | None = Field(None, ge=1, le=MOST_WIDTH)
    shared_projection: bool = False
    reuses_keys: bool = False
    selection: Literal["own", "shared", "none"] = "own"

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not (self.attention or self.recurrent) and self.mlp == "none":
            raise ValueError("a layer without mixer and MLP")
        attention = (self.heads, self.kv_heads, self.head_dim, self.window)
        if not self.attention and (any(attention) or self.shared_projection or self.reuses_keys):
            raise ValueError("attention sizes of a layer without attention")
        if self.shared_projection and self.reuses_keys:
            raise ValueError("shared_projection and reuses_keys of one layer")
        return self

    @property
    def blocks(self) -> int:
        """Blocks with a norm of their own: mixer and MLP."""
        return int(self.attention or self.recurrent) + int(self.mlp != "none")
