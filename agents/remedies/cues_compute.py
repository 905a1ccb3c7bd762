"""Cues of compute: kernels, host and launches, bubbles, recompute, padding, precision; no faster link would help."""

from agents.remedies.cue import Cue

COMPUTE: tuple[Cue, ...] = (
    Cue(
        "kernel launches",
        "launch_bound",
        3.0,
        (
            "cuda_graph",
            "host",
            "compile",
            "kernels",
        ),
        (
            (
                r"runs? eager\w*|(exceeds?|beyond|outside|above) (the )?captured|not captured|graph (miss\w*|breaks?)"
                r"|falls? out of (the )?graph"
            ),
            r"(kernel |host |gpu )?launch(es|ing)?[ -](is slow|are slow|bound|overhead|latency|cost|gaps?|limited)",
            r"(host|cpu)[ -](bound|limited|overhead|launch\w*|dispatch|side|heavy|intensive|work|time)",
            r"(host|cpu|python|framework) overhead",
            r"(launch|host)\w* .{0,15}(expos\w+|dominat\w*|sets? the pace|limits?)",
            r"(many|thousands of|tiny|small) (\w+ )?(kernels?|ops|launches|calls)",
            r"(gil|python) (contention|loop|bound)|interpreter|single[ -]thread\w*|one core",
            r"eager (mode|dispatch|kernels?)|enforce eager true",
        ),
        "the host issues work more slowly than the device does it",
    ),
    Cue(
        "idle device",
        "host_idle",
        2.5,
        (
            "host",
            "cuda_graph",
            "batch",
            "replicas",
        ),
        (
            (
                r"under-?us(e|es|ed|ing)|(gpu|device|chip|card)s? (starv\w*|under-?utili[sz]\w*)|(gc|garbage"
                r"|checkpoint\w*|logging|evaluation|saving) .{0,15}(pauses?|blocks?|stalls?|takes?|stops?)"
            ),
            r"(gpu|sm|device|tpu|accelerator|npu|core)s? .{0,25}(idle|utili[sz]\w+|active|busy|occupancy|wait\w*)",
            r"(gap|bubble)s? between (steps|kernels|decode|iterations|batches)|device (gaps|idle)",
            r"neither is full",
            r"low (gpu )?(utili[sz]ation|occupancy)|duty cycle|power draw",
            (
                r"(schedul\w+|detoken\w*|sampl\w+|tokeni[sz]\w*|post-?process\w*|python) .{0,25}(on the host|cpu"
                r"|blocks|between steps)"
            ),
        ),
        "the device waits for work",
        unless=r"prefill (card|pool|gpu).{0,15}100|collective",
        of_rest=r"utili|active|busy|occupancy",
    ),
    Cue(
        "pipeline bubble",
        "pipeline_bubble",
        2.5,
        (
            "pp",
            "microbatches",
            "batch",
            "tp",
        ),
        (
            (
                r"(first|last|one) stage .{0,30}(slow\w*|twice|longer|heavier|more|holds? the (lm )?head|imbalanc\w*)"
                r"|(uneven|unequal|unbalanced) (stages?|layers|split)|stage .{0,10}wait\w*"
            ),
            r"(pipeline )?bubbles?(?! between)|pipeline (idle|stalls?|fill|drain|stages? wait)",
            r"(without|no|few) virtual stages|(few|too few) micro-?batches|stage imbalance",
            r"stages? .{0,20}(uneven|unbalanced)",
        ),
        "stages of the pipeline wait for one another",
    ),
    Cue(
        "recompute",
        "compute_throughput",
        2.0,
        (
            "recompute",
            "batch",
            "memory",
        ),
        (
            r"recomput\w*|re-?materiali[sz]\w*|\bremat\b|activation checkpoint\w*",
            r"\bac (on|full|selective)\b",
            r"full (ac|activation)|gradient checkpointing (on|true)",
        ),
        "activations are computed twice",
        unless=r"involuntary|partitioner|prefix|preempt",
        settings=(
            "training",
            "fine-tuning",
            "rl",
        ),
    ),
    Cue(
        "slow kernels",
        "compute_throughput",
        2.5,
        (
            "kernels",
            "compile",
            "precision",
        ),
        (
            (
                r"runs? (the )?(full|dense|eager|fp32|unfused|reference|naive|masked) (attention|kernel|path|softmax)"
                r"|(graph breaks?|recompil\w+)|(falls?|fell) back to|without (a )?(tuned|fused|flash)|no tuned"
                r"|not tuned|config (missing|not found)"
            ),
            r"(small|thin|skinny|narrow|tiny|short) (gemms?|matmuls?|products|experts?)",
            r"(gemms?|matmuls?) .{0,15}(small|thin|narrow)",
            (
                r"(attention|gemms?|moe|softmax|sort\w*|top-?k|sampling|norms?|loss|cross[ -]entropy|scan|conv\w*"
                r"|rope|logits) (kernels? )?(takes?|costs?|is|are|at|share|pct)\b.{0,12}\d"
            ),
            r"(pallas|splash|triton|cutlass|cudnn|flash|cublas|hipblaslt|tensile|aiter|megablox)\b",
            (
                r"(slow|untuned|unfused|naive|missing|generic|default|fall-?back|reference|eager) .{0,20}(kernels?"
                r"|attention|gemms?|ops|path|implementation|tiles?)"
            ),
            (
                r"(kernels?|gemms?|matmuls?|attention|tiles?) .{0,25}(dominat\w*|untuned|slow|inefficien\w+|low"
                r"|fraction of peak|falls? back|time is)"
            ),
            r"(de-?quanti[sz]\w*|cast\w*|transpos\w+|layout) .{0,25}(kernel|per|every|cost|overhead)",
            r"(not|un)[ -]?fused|no flash|\bsdpa\b|megablox|grouped gemm|ragged dot|tile (size|shape)s?",
            r"(moe|mlp|attention|expert) (layer|block|part|kernel)s? dominat\w*",
            r"loss .{0,20}(memory|logits)|kernel .{0,30}(instead|missing)",
        ),
        "kernels run far below what the chip can do",
        unless=r"all-?to-?all|all-?gather kernels|all-?reduce( kernels| per)|nccl kernels|dispatch/combine|collective"
        r"|kernel launch(es|ing)? (is|are) slow",
    ),
    Cue(
        "padding",
        "compute_throughput",
        3.0,
        (
            "packing",
            "batch",
            "data",
        ),
        (
            (
                r"(longest|maximum|max) (sample|sequence|example|length|response)s? .{0,25}(sets?|decides?"
                r"|determines?|shape|batch)|mean (length|tokens) .{0,30}(max\w*|padded|against|of \d)|pads? (every"
                r"|each|all)"
            ),
            r"padd(ed|ing)|\bpads?\b",
            r"(un)?pack(ed|ing)\b|variable[ -]length|short (examples|samples)|useful tokens",
            r"length histogram",
            r"(padd\w+|fixed shape|fixed length).{0,40}(used|useful|real)",
        ),
        "part of the tokens is padding",
        unless=r"weights? .{0,12}packed|packed (int|weights)",
        of_rest=r"used|useful|real",
        settings=(
            "training",
            "fine-tuning",
            "rl",
        ),
    ),
    Cue(
        "low precision on small products",
        "compute_throughput",
        1.5,
        (
            "precision",
            "kernels",
        ),
        (
            (
                r"\b(fp8|mxfp8|nvfp4|mxfp4|int8|fp4|float8)\b .{0,15}(no|not|barely|hardly|only) .{0,12}(faster|gain"
                r"|better|speed|win)"
            ),
            (
                r"\b(fp8|mxfp8|nvfp4|mxfp4|int8|fp4|w8a8|w4a16|int4)\b .{0,40}(slower|slow|larger|no gain|same"
                r"|overhead|worse|speed)"
            ),
            r"(cast|scal|quanti[sz])\w*[ /](scale|quant\w*|overhead)|amax|cast overhead",
        ),
        "casting and scaling eat what narrower products save",
        timed=False,
    ),
    Cue(
        "input pipeline",
        "host_idle",
        2.5,
        (
            "data",
            "host",
        ),
        (
            r"\bloaders?\b|data[ -]?(load\w*|pipeline|fetch\w*|wait\w*|stall\w*)",
            r"input (pipeline|stall|bound)|dataloader",
            r"(image|video|audio) (decod\w+|preprocess\w*)|tokeni[sz]\w* (on the fly|in the loop)",
            r"(disk|storage|s3|gcs|nfs) (read|bound)",
            r"(wait\w*|stall\w*) .{0,20}(for )?(input|data|batches)",
        ),
        "the device waits for input",
        unless=r"data[ -]parallel",
    ),
    Cue(
        "optimizer step",
        "compute_throughput",
        1.5,
        (
            "optimizer",
            "sharding",
            "overlap",
        ),
        (
            r"(optimi[sz]er|muon|newton[ -]schulz|adam) (step|time|update|share|part)",
            r"time (goes|spent) .{0,15}optimi[sz]er",
        ),
        "the optimizer step takes its own share",
        settings=(
            "training",
            "fine-tuning",
        ),
    ),
    Cue(
        "small batches of work",
        "compute_throughput",
        1.5,
        (
            "batch",
            "microbatches",
            "grad_accum",
        ),
        (
            (
                r"memory (is )?(only )?([1-6]\d|half|mostly free|two thirds) ?% (used|full|in use)"
                r"|([1-6]\d) ?% (of )?(the )?(memory|hbm) (is )?(used|full|in use)|\d+ gi?b (free|unused|spare)"
                r"|mfu (of |is |at )?([1-9]|[12]\d) ?%"
            ),
            r"(small|tiny|low) (micro[ -]?|local |per[ -]device )?(batch(es)?|token budgets?|tokens per)",
            r"batch (size )?(is )?(only )?1\b|memory (is )?(two thirds|half|mostly (un|free))",
            r"unused memory",
            r"(mfu|utili[sz]ation) .{0,25}(low|poor|only)|low mfu",
        ),
        "each pass does too little work",
        settings=(
            "training",
            "fine-tuning",
            "rl",
        ),
    ),
    Cue(
        "profile that misleads",
        "unknown",
        0.8,
        ("diagnosis",),
        (
            r"(trace|profil\w+|tool|counter)\w* .{0,30}(miss\w*|wrong|mislead\w*|artefact|artifact|overstat\w*|double)",
            r"(sum\w*|aggregate) .{0,25}(kernels?|times?).{0,30}(interval|union|wall)|first reading",
            r"(different|unequal|mixed) .{0,20}(batch(es)?|precision|lengths?|paths?)",
            r"compares? .{0,40}different",
            r"end-to-end .{0,30}(alone|of )",
        ),
        "what was measured does not say what it seems to",
        timed=False,
    ),
)
