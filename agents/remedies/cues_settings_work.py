"""Cues of settings of kernels, pipelines, batches and serving."""

from agents.remedies.cue import Cue

WORK_SETTINGS: tuple[Cue, ...] = (
    Cue(
        "a setting: eager",
        "launch_bound",
        4.0,
        (
            "cuda_graph",
            "host",
        ),
        (r"enforce eager true|(cuda|hip)[ -]?graphs? (none|off|false)|eager( mode)? true",),
        "graphs are off",
    ),
    Cue(
        "a setting: graphs",
        "launch_bound",
        0.8,
        (
            "cuda_graph",
            "host",
        ),
        (r"(cuda|hip)[ -]?graphs?|graph (mode|scope|capture)",),
        "graph capture is set",
    ),
    Cue(
        "a setting: pipeline",
        "pipeline_bubble",
        0.9,
        (
            "pp",
            "microbatches",
        ),
        (
            r"(?<![\w-])pp ?(?:size )?([2-9]|\d\d|high)\b|\b(1f1b|gpipe|interleaved|zero-?bubble)\b",
            r"\bvp(p)? (null|none|off|on|\d)",
        ),
        "a pipeline is on",
    ),
    Cue(
        "a setting: recompute",
        "compute_throughput",
        0.8,
        ("recompute",),
        (r"\b(recompute|ac|remat|checkpointing|remat policy) (full|on|true|selective|recompute|none|off|all|core)",),
        "recompute is set",
        settings=(
            "training",
            "fine-tuning",
            "rl",
        ),
    ),
    Cue(
        "a setting: kernels",
        "compute_throughput",
        1.2,
        ("kernels",),
        (
            (
                r"(?<!dp )\b(kernels?|moe config|attention|attn( implementation)?|gemm|backend|moe impl\w*) (?!kernel"
                r"|parallel|dp|tp|true|false|none|pct|the\b|and\b|is\b|are\b|of\b|on\b|in\b|that\b|run|take)\w+"
            ),
        ),
        "kernels are chosen by hand",
        unless=r"dispatcher|distributed|nccl|deepep|hybridep|all-?to-?all|weight sync|disagg|kv",
    ),
    Cue(
        "a setting: compile",
        "compute_throughput",
        0.8,
        (
            "compile",
            "kernels",
        ),
        (r"(torch ?)?compile (false|off|none|true|on|loss|partial)",),
        "compilation is set",
    ),
    Cue(
        "a setting: precision",
        "compute_throughput",
        0.8,
        ("precision",),
        (r"\b(precision|dtype|weights|quant\w*) (bf16|fp8|mxfp8|fp16|int8|int4|nvfp4|mxfp4|w\d)",),
        "precision is set",
    ),
    Cue(
        "a setting: micro-batch",
        "compute_throughput",
        0.5,
        (
            "batch",
            "microbatches",
        ),
        (r"(micro ?batch|mbs|local batch|per device batch)(es)?( size)? \d",),
        "the micro-batch is set",
        settings=(
            "training",
            "fine-tuning",
            "rl",
        ),
    ),
    Cue(
        "a setting: speculation",
        "compute_throughput",
        1.0,
        ("spec_decode",),
        (r"\b(spec|spec decode|speculative|num speculative tokens|draft|mtp|eagle)\b",),
        "speculation is set",
        settings=(
            "serving",
            "rl",
        ),
    ),
    Cue(
        "a setting: chunk",
        "compute_throughput",
        0.9,
        ("chunked_prefill",),
        (r"\bchunk(ed)?( prefill)?( size)?\b|max (num )?batched tokens|max prefill",),
        "the prefill chunk is set",
        settings=("serving",),
    ),
    Cue(
        "a setting: pools",
        "compute_throughput",
        0.9,
        ("pd_disagg",),
        (
            r"\b(mode|serving) aggregated|disagg\w*|\bprefill \d|\bdecode \d|\b\d+p\d+d\b",
            r"prefill (pp|tp|dp)",
        ),
        "prefill and decode pools are stated",
        settings=("serving",),
    ),
    Cue(
        "a setting: router",
        "compute_throughput",
        1.0,
        (
            "routing",
            "load_balance",
        ),
        (r"\brouter?\b|routing policy|eplb|load balanc\w+",),
        "how requests are routed is stated",
        settings=("serving",),
    ),
    Cue(
        "a setting: concurrency",
        "hbm_bandwidth",
        0.4,
        ("batch",),
        (r"\bconcurren\w+ \d|max (num seqs|running)|n prompts|users \d",),
        "concurrency is stated",
        settings=(
            "serving",
            "rl",
        ),
    ),
    Cue(
        "a setting: sync",
        "exposed_communication",
        1.0,
        ("weight_sync",),
        (r"\bsync (full|broadcast|nccl|delta|http|file|every|bucket\w*)",),
        "how weights are synchronised is stated",
        settings=("rl",),
    ),
    Cue(
        "a setting: prefix cache",
        "compute_throughput",
        0.9,
        ("prefix_cache",),
        (r"(prefix|radix) cach\w+|enable prefix",),
        "prefix caching is set",
        settings=(
            "serving",
            "rl",
        ),
    ),
    Cue(
        "a setting: scheduler",
        "host_idle",
        0.8,
        (
            "scheduler",
            "host",
        ),
        (
            r"(async |overlap )?schedul\w+|\bpolicy \w|admission|stream interval|num scheduler steps",
            r"overlap schedule",
        ),
        "scheduling is set",
        settings=("serving",),
    ),
    Cue(
        "a setting: replicas",
        "compute_throughput",
        0.6,
        (
            "replicas",
            "dp",
        ),
        (r"\b(replicas|dp|engines) \d|\d engines?|sharding batch|chips \d+, sharding",),
        "replicas are stated",
        settings=(
            "serving",
            "rl",
        ),
    ),
    Cue(
        "a setting: rollouts",
        "hbm_bandwidth",
        0.6,
        (
            "batch",
            "async_rl",
        ),
        (r"\brollouts?\b",),
        "rollouts are stated",
        settings=("rl",),
    ),
)
