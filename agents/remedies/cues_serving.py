"""Cues of serving: scheduling, prompts, drafts, routers."""

from agents.remedies.cue import Cue

SERVING: tuple[Cue, ...] = (
    Cue(
        "prefill in the way",
        "compute_throughput",
        2.0,
        (
            "chunked_prefill",
            "pd_disagg",
            "scheduler",
            "tp",
        ),
        (
            (
                r"prefill\w* .{0,25}(double|triple|spike|raise|delay|hurt|burst|slow)\w*|(prefill )?bursts?\b|(decode"
                r"|itl|tpot) .{0,25}(doubles?|triples?|jumps?|suffers?) .{0,20}(prefill|prompt)"
            ),
            r"prefill[ -]?(heavy|bound|dominat\w*|takes|interrupts|blocks|interfere\w*|capacity|stall\w*)",
            r"(long|large) (prompts?|prefills?|inputs?) .{0,30}(block|stall|delay|interrupt|wait|queue)",
            r"(head[ -]of[ -]line|mixed batch\w*|decode (stalls?|waits?|is interrupted))",
            r"(chunk|token budget|batched tokens) .{0,25}(small|large|fixed|default|too)",
            r"(itl|tpot|inter-token) .{0,20}(spikes?|jitter)",
        ),
        "prompt passes and decode steps are in each other's way",
        settings=("serving",),
    ),
    Cue(
        "transfer of keys and values",
        "exposed_communication",
        2.5,
        ("pd_disagg", "kv", "collective_algo"),
        (
            (
                r"kv[ -]?(cache )?(transfer\w*|hand-?over|migration|movement|send\w*)|(transfer\w*"
                r"|send\w*) .{0,15}(kv|key-value)"
            ),
            r"\b(nixl|mooncake|mori|lmcache)\b",
        ),
        "keys and values travel between pools",
        settings=("serving",),
    ),
    Cue(
        "ring of keys and values",
        "exposed_cp",
        2.5,
        ("cp", "overlap", "tp"),
        (
            r"ring attention|ulysses|context[ -]parallel\w* .{0,25}(comm\w*|wait\w*|expos\w*|exchange)",
            r"kv blocks?.{0,15}(wait|ring|exchange)",
        ),
        "ranks of a sequence wait for each other's keys and values",
    ),
    Cue(
        "queueing",
        "compute_throughput",
        1.5,
        (
            "scheduler",
            "batch",
            "pd_disagg",
            "replicas",
        ),
        (
            r"pil(e|es|ing) up|waiting (queue|list)|(requests?|users) .{0,10}wait\w*",
            r"queu\w+|saturat\w+|back-?log|waiting requests|ttft .{0,15}(grows?|explod\w*|seconds|minutes)",
            r"overload\w*",
        ),
        "requests wait for a place",
        unless=r"not saturation|short queues|queued kernels|fixed",
        timed=False,
        settings=("serving",),
    ),
    Cue(
        "one pool is full",
        "compute_throughput",
        2.5,
        (
            "pd_disagg",
            "replicas",
            "scheduler",
        ),
        (
            (
                r"(prefill|decode) (card|pool|worker|gpu|instance|engine|node)s? .{0,25}(100|full|busy|idle"
                r"|saturat\w*|limit\w*)"
            ),
        ),
        "one of the pools works while the other waits",
        settings=("serving",),
    ),
    Cue(
        "fixed latency of a stage",
        "host_idle",
        2.0,
        (
            "pp",
            "tp",
            "host",
        ),
        (
            r"(load-independent|fixed|constant) .{0,20}(latency|floor|delay)|control[ -]path|hand-?off",
            r"floor (of|in) (ttft|latency)",
        ),
        "a latency that no load explains: hand-over between stages or processes",
        settings=("serving",),
    ),
    Cue(
        "speculative decoding",
        "compute_throughput",
        2.0,
        (
            "spec_decode",
            "host",
        ),
        (r"specul\w+|draft\w*|eagle\d?|\bmtp\b|acceptance|medusa|n-?gram",),
        "drafts cost a pass and save one only where they are accepted",
        timed=False,
        settings=(
            "serving",
            "rl",
        ),
    ),
    Cue(
        "repeated prefixes",
        "compute_throughput",
        2.5,
        (
            "prefix_cache",
            "routing",
            "dp",
        ),
        (
            (
                r"(every|each) (turn|request|call|sample) .{0,20}(re-?comput\w*|re-?process\w*|re-?prefill\w*|again)"
                r"|(conversation|history|context|prompt)s? .{0,15}(again|re-?comput\w*|re-?process\w*)|(session"
                r"|conversation|turn|same user)s?\b"
            ),
            r"(shared|common|same|repeated|long) (prompt|prefix|system)\w*",
            r"prefix(es)? .{0,30}(recomput\w*|cache|hit|shar\w+)|cache hit|multi-?turn",
        ),
        "the same prompt tokens are computed again",
        timed=False,
        settings=(
            "serving",
            "rl",
        ),
    ),
    Cue(
        "uneven replicas",
        "compute_throughput",
        2.0,
        (
            "routing",
            "load_balance",
            "attention_dp",
        ),
        (
            (
                r"(different|another|random|other) (replica|worker|engine|rank|instance)\b|(sticky|affinity"
                r"|least[- ]loaded)"
            ),
            r"(hot|one|slowest|busiest) (dp )?(rank|replica|worker|engine)",
            r"(rank|replica|worker|engine)s? .{0,25}(uneven|imbalanc\w+|skew\w*)",
            r"(ranks?|replicas?|workers?|engines?|gpus?)\b.{0,60}while (the )?(others?|rest)",
            r"round[ -]robin|cache aware",
        ),
        "requests are spread unevenly over replicas",
        timed=False,
        settings=("serving",),
    ),
    Cue(
        "work repeated on every chip",
        "compute_throughput",
        2.5,
        (
            "sharding",
            "replicas",
            "dp",
            "tp",
        ),
        (
            (
                r"(redundant\w*|repeatedly|duplicate\w*) (comput\w*|on (all|every)|work)|comput\w* (redundantly|twice"
                r"|again on)"
            ),
            (
                r"(compute|process|see|run|train on|hold)s? .{0,12}same (\w+ )?(sequences?|batch\w*|tokens|data|rows"
                r"|samples|work)"
            ),
            (
                r"(computed|repeated|replicated|duplicated|done|processed) (by|on|over|across) (all|every"
                r"|each)( \w+)? ?(chips?|devices?|ranks?|gpus?|replicas?)"
            ),
        ),
        "all chips compute the same tokens",
    ),
    Cue(
        "requests one after another",
        "host_idle",
        2.5,
        (
            "batch",
            "host",
            "async_rl",
        ),
        (
            r"one (\w+ )?after (another|the other)|not batched|unbatched|for[ -]loop over",
            r"one (request|sample|prompt) at a time|sequential(ly)?|serial(ly|i[sz]ed)?|\block(ed|s)?\b",
            r"blocking|synchronous (call|request)s?|batch (size )?1 in",
        ),
        "requests run one after another although they could be batched",
        unless=r"sequential (reads|layers)|pipeline",
    ),
    Cue(
        "over-partitioned phases",
        "exposed_communication",
        1.2,
        (
            "tp",
            "replicas",
            "cp",
            "dp",
        ),
        (
            (
                r"(unneeded|unnecessary|too much|over-?partition\w*|wide) .{0,20}(tp|cp|ep|pp|engine|split|shard\w*"
                r"|parallel\w*)"
            ),
        ),
        "a phase is cut into more parts than it needs",
    ),
)
