"""Reinforcement learning: weights on their way to the engines, and rollouts."""

from agents.remedies.rule import RemedyRule

POST_TRAINING: tuple[RemedyRule, ...] = (
    RemedyRule(
        "weight_sync",
        "Send weights as they are sharded, or only what changed; build no full tensors",
        ("host_idle", "copies"),
        "sync is a visible share of the step, and building tensors, not the wire, takes most of it",
        "the wire takes most of it: then a faster path between the same shards",
        0.9,
        1.5,
        "code",
        "sender and receiver must agree on shards",
        ("rl-weight-sync",),
    ),
    RemedyRule(
        "async_rl",
        "Let generation run ahead of training, with a limit to how old samples may be",
        ("host_idle", "imbalance"),
        "trainer and engines wait for one another, or a tail of long responses holds the step",
        "phases are even already",
        0.6,
        0.8,
        "code",
        "samples of older weights change what is learned: allow that first",
        ("rl-phases-of-a-step", "rl-rollout-tail"),
    ),
)
