"""Cues of settings of parallelism and memory: what is set says little of causes, much of what could be otherwise."""

from agents.remedies.cue import Cue

SETTINGS: tuple[Cue, ...] = (
    Cue(
        "a setting: tensor parallelism",
        "exposed_tp",
        0.5,
        ("tp",),
        (r"(?<![\w-])tp ?(?:size )?([2-9]|\d\d)\b",),
        "tensor parallelism is on",
    ),
    Cue(
        "a setting: expert parallelism",
        "exposed_ep",
        0.5,
        (
            "ep",
            "ep_dispatch",
        ),
        (r"(?<![\w-])ep ?(?:size )?([2-9]|\d\d|>1|true|on)",),
        "expert parallelism is on",
    ),
    Cue(
        "a setting: dispatcher",
        "exposed_ep",
        1.0,
        (
            "ep_dispatch",
            "overlap",
        ),
        (r"\b(dispatcher|transport|moe backend|a2a backend|deepep|hybridep|ragged all)",),
        "how tokens are exchanged is set",
    ),
    Cue(
        "a setting: overlap",
        "exposed_communication",
        0.6,
        ("overlap",),
        (
            r"overlap \w+|\w+ overlap (true|false|on|off)|prefetch|one all-?gather|max connections",
            r"\bcollectives (on|in)\b|fsdp units",
        ),
        "overlap is set",
    ),
    Cue(
        "a setting: full sharding",
        "exposed_dp",
        0.7,
        (
            "zero_stage",
            "hsdp",
        ),
        (r"\bfsdp2?\b|full shard|zero ?-?3|\bzero 3|reshard after forward",),
        "parameters are fully sharded",
        settings=(
            "training",
            "fine-tuning",
        ),
    ),
    Cue(
        "a setting: context parallelism",
        "exposed_cp",
        0.8,
        (
            "cp",
            "tp",
        ),
        (r"(?<![\w-])(cp|ulysses|context parallel\w*) ?(?:size )?([2-9]|\d\d)\b",),
        "context parallelism is on",
    ),
    Cue(
        "a setting: sharding",
        "exposed_communication",
        0.8,
        ("sharding",),
        (
            r"\w+ sharding \w+|\bsharding (auto\w*|replicated|\w+)|logical axis|tensor transpose",
            r"(small|norm) params \w+|replicated\b",
        ),
        "how tensors are sharded is set",
        unless=r"sharding batch|shard ?\d",
    ),
    Cue(
        "a setting: collectives",
        "exposed_communication",
        0.8,
        ("collective_algo",),
        (r"\bnccl (algo|proto|buffsize|p2p|nvls)|nvls|\bsharp\b",),
        "collectives are tuned by hand",
    ),
    Cue(
        "a setting: accumulation",
        "exposed_dp",
        0.6,
        (
            "grad_accum",
            "batch",
        ),
        (r"(grad(ient)? accum\w*|\bga|microsteps|accum) (steps )?([2-9]|\d\d)",),
        "gradients are accumulated",
    ),
    Cue(
        "a setting: hybrid sharding",
        "exposed_dp",
        0.8,
        (
            "hsdp",
            "grad_accum",
        ),
        (r"\bhsdp\b|hybrid shard",),
        "parameters are sharded inside groups",
    ),
    Cue(
        "a setting: memory",
        "hbm_capacity",
        0.8,
        ("memory",),
        (r"\b(peak|limit|reserved|allocated|memory|mem) (gi?b|gb)\b",),
        "memory figures are stated",
    ),
    Cue(
        "a setting: optimizer state",
        "hbm_capacity",
        0.8,
        ("optimizer",),
        (r"optimi[sz]er (states?|dtype|moments)|\b(adamw?|adafactor|muon|8-?bit adam)\b",),
        "the optimizer is stated",
        settings=(
            "training",
            "fine-tuning",
        ),
    ),
    Cue(
        "a setting: attention data parallelism",
        "hbm_capacity",
        1.2,
        ("attention_dp",),
        (r"(dp attention|attention dp|enable dp)",),
        "attention data parallelism is set",
    ),
    Cue(
        "a setting: cache",
        "hbm_capacity",
        0.8,
        ("kv",),
        (
            r"kv (cache )?(dtype|fp8|bf16|offload|int8|tokens)|mem fraction|page size|block size|swa",
            r"hybrid cache",
        ),
        "the cache is set",
    ),
    Cue("a setting: offload", "copies", 0.8, ("offload",), (r"offload \w+",), "offload is set"),
)
