"""80 % intervals of serving: how far measured TPOT lies from the projected one, by what is known of the engine."""

from dataclasses import dataclass

from projector.batch_projection import IntervalRule
from projector.specs.architecture import ModelArchitecture
from projector.specs.serving_stack import ServingStack


@dataclass(frozen=True)
class ServingClass:
    """10th and 90th percentile of measured over projected TPOT, rounded outwards (`shardwise eval accuracy --folds`).

    seen: points of the engine's release were at hand, and the row's own (family, chip) group was left out of the fit;
    otherwise all points of its engine were left out.
    """

    name: str
    moe: bool
    seen: bool
    low_factor: float
    high_factor: float
    basis: str


SERVING_CLASSES = (
    ServingClass(
        "dense, engine seen",
        moe=False,
        seen=True,
        low_factor=0.86,
        high_factor=1.26,
        basis="80 % of 491 measured points of dense models had a TPOT within these factors of a projection "
        "that had not seen their model on their chip",
    ),
    ServingClass(
        "mixture of experts, engine seen",
        moe=True,
        seen=True,
        low_factor=0.79,
        high_factor=1.46,
        basis="80 % of 1,637 measured points of MoE models had a TPOT within these factors of a projection "
        "that had not seen their model on their chip",
    ),
    ServingClass(
        "dense, engine not seen",
        moe=False,
        seen=False,
        low_factor=0.85,
        high_factor=1.38,
        basis="80 % of 491 measured points of dense models had a TPOT within these factors of a projection "
        "that had seen no point of their engine",
    ),
    ServingClass(
        "mixture of experts, engine not seen",
        moe=True,
        seen=False,
        low_factor=0.78,
        high_factor=1.62,
        basis="80 % of 1,637 measured points of MoE models had a TPOT within these factors of a projection "
        "that had seen no point of their engine",
    ),
)


def serving_interval(model: ModelArchitecture, stack: ServingStack) -> IntervalRule:
    """The interval of a projection. A stack without fitted values is an engine nobody saw."""
    found = next(one for one in SERVING_CLASSES if one.moe == model.is_moe and one.seen == bool(stack.fitted))
    return IntervalRule(found.low_factor, found.high_factor, found.basis)
