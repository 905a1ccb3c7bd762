"""Cues of reinforcement learning: weights on their way to the engines, rollouts, and passes without generation."""

from agents.remedies.cue import Cue

POST_TRAINING: tuple[Cue, ...] = (
    Cue(
        "weights assembled for sync",
        "host_idle",
        3.5,
        (
            "weight_sync",
            "async_rl",
            "offload",
        ),
        (
            r"state[ -]?dict|gather\w* (to|on|at) (rank|node|host) 0|serial\w+ (the )?(weights|model|state)",
            r"(assembl\w*|materiali[sz]\w*|bucket\w*|builds?|full) .{0,30}(tensors?|weights?)",
            r"(sync|refit)\w*\b.{0,60}(assembl\w*|bucket\w*|full tensors?)",
        ),
        "the sender builds full tensors before anything is sent",
        settings=("rl",),
    ),
    Cue(
        "weight sync",
        "exposed_communication",
        3.0,
        (
            "weight_sync",
            "async_rl",
            "offload",
        ),
        (
            (
                r"(broadcast|transfer|send\w*|push\w*|ship\w*|copy\w*|upload\w*) .{0,15}(of )?(the )?(new |updated "
                r"|all )?(weights|parameters|policy)"
            ),
            r"(weight|parameter|model)s? (sync\w*|updates?|transfers?|broadcast\w*|load\w*|refit)|refit",
            r"resync",
            r"\bsync\b.{0,60}(broadcast|sender|dominat\w*|receiver|serial\w*|wire)",
            r"\b(senders?|nics?|network cards?)\b",
        ),
        "new weights reach the rollout engines slowly",
        settings=("rl",),
    ),
    Cue(
        "rollout tail",
        "host_idle",
        2.5,
        (
            "async_rl",
            "load_balance",
            "batch",
            "scheduler",
        ),
        (
            (
                r"(few|some|one) (\w+ )?(long |\d+k )?(responses?|samples?|rollouts?|prompts?) .{0,15}(hold|keep"
                r"|block|delay|dominat|finish)\w*|(workers?|ranks?|engines?) finish (between|at)|finish .{0,15}(late"
                r"|last|apart)"
            ),
            r"long[ -]tail\w*",
            r"(longest|slowest|last|straggl\w+) (response|sample|rollout|request|rank|worker|generation)s?",
            r"straggl\w+",
            r"rank \d+ is slowest|max(imum)? (response|length).{0,30}(rank|worker)|trainer (idle|wait\w*)",
            r"wait\w* .{0,20}(rollout|generation)",
            r"(on-?policy|synchronous|lock-?step|colocated) .{0,30}(wait\w*|idle|bubble)",
        ),
        "the step waits for its longest responses",
        settings=("rl",),
    ),
    Cue(
        "rollouts dominate",
        "hbm_bandwidth",
        1.2,
        (
            "async_rl",
            "batch",
            "replicas",
            "spec_decode",
        ),
        (r"(rollout|generation|sampling|gen)s? .{0,25}(dominat\w*|most|% of|takes?|share|slow)",),
        "generation takes most of the step",
        settings=("rl",),
    ),
    Cue(
        "log-probability passes",
        "compute_throughput",
        2.0,
        (
            "batch",
            "packing",
            "diagnosis",
        ),
        (r"log-?prob\w*|old log|ref log|forward[ -]only|token budget|recompute log",),
        "forward-only passes run with small budgets of tokens",
        settings=("rl",),
    ),
)
