"""The ordered table of remedies: levers no plan expresses first, then pointers to those it does. Order settles ties."""

from agents.remedies.families.batching import BATCHING
from agents.remedies.families.collectives import COLLECTIVES
from agents.remedies.families.launch import LAUNCH
from agents.remedies.families.layout import LAYOUT
from agents.remedies.families.measuring import MEASURING
from agents.remedies.families.memory import MEMORY
from agents.remedies.families.post_training import POST_TRAINING
from agents.remedies.families.serving import SERVING
from agents.remedies.rule import RemedyRule

REMEDIES: tuple[RemedyRule, ...] = (
    *LAUNCH,
    *COLLECTIVES,
    *BATCHING,
    *MEMORY,
    *SERVING,
    *POST_TRAINING,
    *LAYOUT,
    *MEASURING,
)
BY_LEVER: dict[str, RemedyRule] = {rule.lever: rule for rule in REMEDIES}
