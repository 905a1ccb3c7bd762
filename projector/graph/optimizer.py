"""What an optimizer keeps, moves and multiplies for each parameter it updates."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from projector.graph.columns import Column, Switch, lookup
from projector.graph.operator import Operator, in_layers
from projector.specs.plan_batch import PlanBatch

# Bytes of moments a parameter, beside the fp32 master weight. Adam: two in fp32, in 16 bit, or in 8 bit with an fp32
# scale for every 256 values (Dettmers et al. 2022, arXiv:2110.02861). Adafactor (arXiv:1804.04235) keeps sums of rows
# and columns, next to nothing. Muon keeps one moment of a matrix and Adam's two of all else; SGD one (momentum).
MOMENT_BYTES: Mapping[str, float] = {
    "adam": 8.0, "adam_bf16": 4.0, "adam_8bit": 2.0 + 2 * 4.0 / 256, "adafactor": 0.0, "muon": 4.0, "sgd": 4.0,
}  # fmt: skip
MASTER_BYTES = 4.0
# An update reads gradient and master weight and writes the master and the 16-bit weight; moments are read and written.
# Adafactor reads the gradient once more, for its sums.
UPDATE_BYTES = 14.0
SECOND_LOOK_BYTES = {"adafactor": 4.0}
# Muon (Jordan et al. 2024): five Newton-Schulz steps of three products, X X^T, A A and B X, in 16 bit.
NEWTON_SCHULZ_STEPS = 5.0
NEWTON_SCHULZ_BYTES = NEWTON_SCHULZ_STEPS * 3 * 2.0


@dataclass(frozen=True)
class Update:
    """The optimizer of each plan; columns of shape [n].

    moment_bytes    a parameter of matrices inside layers, other_moment_bytes of embedding, head and norms
    extra_bytes     read beside what every update moves
    spectral        plans whose optimizer orthogonalises matrices (Muon)
    offloads        plans whose master weights and moments wait in host memory
    """

    moment_bytes: Column
    other_moment_bytes: Column
    extra_bytes: Column
    spectral: Switch
    offloads: Switch

    @classmethod
    def of(cls, batch: PlanBatch) -> "Update":
        """The optimizers of a batch."""
        moments = lookup(batch.optimizer, MOMENT_BYTES)
        spectral = batch.optimizer == "muon"
        return cls(
            moment_bytes=moments,
            other_moment_bytes=np.where(spectral, MOMENT_BYTES["adam"], moments),
            extra_bytes=lookup(batch.optimizer, dict.fromkeys(MOMENT_BYTES, 0.0) | SECOND_LOOK_BYTES),
            spectral=spectral,
            offloads=batch.offload_optimizer.astype(bool),
        )

    def moments_of(self, operator: Operator) -> Column:
        """Bytes of moments a parameter of this operator's weights."""
        return self.moment_bytes if is_matrix(operator) else self.other_moment_bytes


def is_matrix(operator: Operator) -> bool:
    """Whether its weights are matrices inside layers: what Muon orthogonalises."""
    return operator.product is not None and in_layers(operator.place)


def newton_schulz_flop(operators: Iterable[Operator], zero: Column) -> Column:
    """FLOP to orthogonalise the matrices of these operators on one device.

        5 (4 m^2 n + 2 m^3) a matrix of m <= n

    Ranks of a TP group work on their shards (Megatron-Core's blockwise mode); gate and up projection count as one.
    """
    flop = zero
    for operator in operators:
        if operator.product is None or not is_matrix(operator):
            continue
        m = np.minimum(operator.product.inner, operator.product.outer)
        n = np.maximum(operator.product.inner, operator.product.outer)
        flop = flop + operator.product.matrices * NEWTON_SCHULZ_STEPS * (4 * m**2 * n + 2 * m**3)
    return flop
