"""Cues of memory: capacity, the cliff near it, the KV cache, bandwidth of decoding, and what fills a device."""

from agents.remedies.cue import Cue

MEMORY: tuple[Cue, ...] = (
    Cue(
        "out of memory",
        "hbm_capacity",
        3.0,
        (
            "memory",
            "recompute",
            "zero_stage",
            "optimizer",
            "offload",
        ),
        (
            r"out[ -]of[ -]memory|\booms?\b|\boom-?\w+\b|cuda error.{0,10}memory|resource exhausted",
            r"(does|do|did|would|will|can|could)(n.t| ?not)( \w+)? fit|cannot fit|no longer fits?",
            r"fits? false|too large for",
            r"exceed\w* .{0,25}(memory|hbm|capacity|limit|gib?\b|gb\b)",
            r"allocation .{0,15}(fail\w*|error)|fail\w* .{0,20}allocation",
        ),
        "the run does not fit in device memory",
        timed=False,
    ),
    Cue(
        "near-full memory",
        "hbm_capacity",
        2.5,
        (
            "memory",
            "recompute",
            "batch",
            "optimizer",
        ),
        (
            (
                r"(logits|activation\w*|vocabulary|cross[ -]entropy|loss)\b.{0,25}(peak|spike|memory|gi?b\b)"
                r"|in[ -]flight activations|(stage|rank) .{0,12}holds? .{0,15}(all|most|more)"
            ),
            r"(near(ly)?|almost) (full|the limit|out of)|just (over|under|above|below) the .{0,15}limit",
            r"allocator (limit|retr\w+)|memory limit|cudamalloc retr\w+|fragmentation|expandable segments",
            r"peak .{0,30}(above|over|against|beyond|exceeds|near) .{0,25}(limit|capacity|gi?b)",
            r"reserved .{0,25}(memory|gi?b|allocated)",
            r"(memory|hbm) .{0,15}(at|near|close to|against) (the |its )?(limit|capacity|edge|ceiling)",
            r"memory (is )?full",
            (
                r"(peak|activation|logits|workspace|buffer)s? (memory )?.{0,15}(spikes?|dominat\w*|grows?|too (large"
                r"|high))"
            ),
            r"memory (spikes?|leaks?)",
            r"memory (pressure|headroom|head-room|bound by capacity|is tight|grows)",
            r"\bmemory forces\b",
        ),
        "peak memory is close to the limit",
        timed=False,
    ),
    Cue(
        "optimizer state",
        "hbm_capacity",
        2.0,
        (
            "optimizer",
            "zero_stage",
            "offload",
            "memory",
        ),
        (
            r"(optimi[sz]er|adam\w*|momentum|moments?) .{0,20}(states?|memory|moments?|exist|fp32|precision)",
            r"(fp32|32-bit) (moments?|master|copy|copies)",
            r"(second|2nd) step|step 2 (fails|forward|oom)",
        ),
        "optimizer state takes the memory",
        settings=(
            "training",
            "fine-tuning",
            "rl",
        ),
    ),
    Cue(
        "key-value cache",
        "hbm_capacity",
        2.5,
        (
            "kv",
            "attention_dp",
            "batch",
            "tp",
            "precision",
        ),
        (
            (
                r"only \d+ (sequences?|requests?|users?) fit|(keeps?|stores?|full[- ]length) .{0,15}(cache|kv)"
                r"|(little|small|gb) .{0,10}(for|left for) (the )?(kv|cache)"
            ),
            (
                r"kv[ -]?(cache|pool|tokens|blocks|memory|capacity|heads?)?.{0,25}(full|limit\w*|capacity|pressure"
                r"|small|exhaust\w*|run out|usage|room|shrinks?|little)"
            ),
            r"(little|less|no|more|enough) .{0,15}(kv|cache room|space for (the )?(kv|cache))",
            r"cache usage (of )?(9\d|100)|kv[^.]{0,25}\b(9\d|100)(\.\d+)? ?%|(9\d|100) ?% (of )?(the )?kv",
            r"kv .{0,10}(for|of) (only )?\d+ (requests?|sequences?|users?)",
            r"(collaps\w+|falls off|drops?) .{0,50}\d+ (users|requests|concurren\w*)",
        ),
        "the key-value cache limits how many requests run",
        timed=False,
    ),
    Cue(
        "evicted requests",
        "hbm_capacity",
        2.5,
        (
            "kv",
            "scheduler",
            "batch",
            "prefix_cache",
        ),
        (
            r"preempt\w*|evict\w*|thrash\w*|re-?prefill\w*|swapp?(ed|ing)? out",
            r"recompute (preempt|of requests)",
            r"(max[ _]utili[sz]ation|admission|no[ _]evict)\b",
        ),
        "requests lose their cache and are computed again",
        timed=False,
        settings=(
            "serving",
            "rl",
        ),
    ),
    Cue(
        "replicated key-value cache",
        "hbm_capacity",
        3.0,
        (
            "attention_dp",
            "tp",
            "kv",
            "dp",
        ),
        (
            r"(kv|latent|cache|key-value)\w* .{0,30}(replicat\w+|duplicat\w+|copied|same .{0,20}every)",
            r"(replicat\w+|duplicat\w+|copies of) .{0,20}(the )?(kv|latent|cache|key-value)",
            r"(fewer|more than) .{0,20}kv heads|kv heads? .{0,30}(than|below|do(es)? not divide)",
        ),
        "every rank of tensor parallelism keeps the same keys and values",
    ),
    Cue(
        "bandwidth of decoding",
        "hbm_bandwidth",
        2.0,
        (
            "batch",
            "kernels",
            "precision",
            "spec_decode",
            "tp",
        ),
        (
            r"hbm (is )?(saturated|limited|bound)|(reads?|read) .{0,12}(all|every|the) .{0,10}weights",
            r"(memory[ -]|hbm[ -])?bandwidth[ -](bound|limited)|memory[ -]bound",
            r"bound by (hbm|memory) ?(bandwidth)?",
            r"(reads?|stream\w*|load\w*) .{0,15}(all )?(the )?weights|weight (reads?|streaming|bandwidth)",
            r"hbm (bandwidth|traffic)|gather-?reduce|(?<!reduce-)(?<!reduce )scatter|memory traffic",
            r"decode[ -]bound",
            r"(?<!re)(un)?sort(ing|/\w+|s)?\b|(un)?permut(e|es|ation|ing)\b(?! over)",
            (
                r"(cop(y|ies)|transpos\w*|concat\w*|cast\w*|relayout\w*|element-?wise) .{0,25}(dominat\w*|traffic"
                r"|bytes|of hbm|bandwidth)"
            ),
        ),
        "kernels wait for HBM",
        unless=r"weight sync|checkpoint|start-?up",
    ),
    Cue(
        "small decode batch",
        "hbm_bandwidth",
        2.0,
        (
            "batch",
            "replicas",
            "scheduler",
        ),
        (
            (
                r"(run|runs|hold|holds|have|with|at|see) (only )?(\d|1\d|few|two|three|four|six) (sequences?"
                r"|requests?|samples?)( each|\b)"
            ),
            r"(engine|server|worker)s? .{0,20}(small|tiny|few|half-empty|underused|starved)",
            r"(under|not|half|poorly|barely)[ -]?filled|under-?fill\w*",
            r"(few|only \w+|small) (running )?(requests|sequences)",
            r"(decode |running )batch (is |of )?(too )?(small|1\b|low)|batch (is )?too small",
            r"(tokens?|tok)/s.{0,40}(alone|isolat\w+|by itself)|engine alone",
        ),
        "decode batches are too small to share each read of the weights",
        settings=(
            "serving",
            "rl",
        ),
    ),
    Cue(
        "graph pool",
        "hbm_capacity",
        1.5,
        (
            "cuda_graph",
            "memory",
        ),
        (
            r"graph (memory )?(pool|capture).{0,40}(memory|gi?b|oom|pool)|graph memory",
            r"(full[ -]iteration|full) graph|graphs? full",
        ),
        "captured graphs keep memory of their own",
        timed=False,
    ),
    Cue(
        "offload",
        "copies",
        1.5,
        (
            "offload",
            "optimizer",
            "memory",
        ),
        (
            r"off-?load\w*|host memory|cpu memory|pinned memory|d2h|h2d|host link|over pcie",
            r"swap\w* to (host|cpu)",
        ),
        "tensors wait in host memory and cross the host link",
        unless=r"weight sync|without offload",
    ),
    Cue(
        "weights fill the device",
        "hbm_capacity",
        1.5,
        (
            "attention_dp",
            "precision",
            "tp",
            "memory",
        ),
        (
            r"weights? .{0,30}(leave|take|fill|occupy|per rank|replicat\w+|duplicat\w+|twice|in memory)",
            r"(profil\w+|dummy) run|startup profil\w+|mem(ory)? fraction|gpu memory util\w+",
        ),
        "weights and buffers leave little memory",
        unless=r"weight sync|gather",
        timed=False,
    ),
    Cue(
        "dispatch buffers",
        "hbm_capacity",
        1.0,
        (
            "ep_dispatch",
            "memory",
        ),
        (r"(dispatch|exchange|communication|transport|a2a) buffers?",),
        "buffers of the exchange take memory",
    ),
    Cue(
        "compiler recompute",
        "hbm_capacity",
        2.0,
        (
            "memory",
            "recompute",
            "sharding",
        ),
        (
            r"(compiler|xla) .{0,40}(remat\w*|recomput\w*)|remat\w* .{0,30}(compiler|xla)",
            r"pays .{0,30}in recompute",
        ),
        "the compiler makes activations again because they do not fit",
        unless=r"involuntary|partitioner",
    ),
)
