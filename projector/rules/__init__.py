"""The rules of legality, in the order a reader would ask them: chips, model, then the phase's own."""

from projector.rules.cluster_rules import CLUSTER_RULES
from projector.rules.model_rules import MODEL_RULES
from projector.rules.pool_rules import POOL_RULES
from projector.rules.rule import Rule, Setting
from projector.rules.serving_rules import SERVING_RULES
from projector.rules.training_rules import TRAINING_RULES

__all__ = ["RULES", "Rule", "Setting"]

RULES: tuple[Rule, ...] = (*CLUSTER_RULES, *MODEL_RULES, *TRAINING_RULES, *SERVING_RULES, *POOL_RULES)
