"""Cues of communication: exposed collectives of each axis, slow links, layouts that software lost, late ranks."""

from agents.remedies.cue import Cue

COMMUNICATION: tuple[Cue, ...] = (
    Cue(
        "tensor-parallel collectives",
        "exposed_tp",
        2.5,
        (
            "tp",
            "overlap",
            "pp",
            "dp",
        ),
        (
            (
                r"\b(tp|tensor[ -]parallel\w*)\b.{0,50}(all-?reduces?|collectives?|comm\w*|all-?gathers?"
                r"|reduce-?scatters?)"
            ),
            r"all-?reduces? (of|for|on) .{0,20}activations?",
            (
                r"(all-?reduces?|collectives?|all-?gathers?|reduce-?scatters?|comm\w*) .{0,25}\b(tp"
                r"|tensor[ -]parallel\w*)\b"
            ),
            r"activations? .{0,20}all-?reduces?",
            r"all-?reduces? (after|per|in) (every|each|the)? ?(layer|block|attention|mlp)",
            r"collective (matmul|permute)",
        ),
        "collectives of tensor parallelism are exposed",
    ),
    Cue(
        "parameter gathers",
        "exposed_dp",
        2.5,
        (
            "zero_stage",
            "hsdp",
            "batch",
            "overlap",
            "grad_accum",
        ),
        (
            r"(param\w*|weights?)[ -]+(all-?)?gather\w*",
            r"(all-?)?gather\w* .{0,25}(weights?|param\w*)",
            r"(re-?gather\w*|all-?gather\w*|reduce-?scatter\w*)",
            r"(second|two|extra|repeated|another|every|each|per layer|per[ -]micro\w*) (param\w* |weight )?gathers?\b",
            r"\b(fsdp|zero|ddp) .{0,20}(overhead|traffic|comm\w*|wait\w*)",
        ),
        "sharded parameters are gathered again and again",
        unless=r"tensor[ -]parallel|\btp\b|logits|prefill|token|gather-?reduce|unexpected|expert axis",
    ),
    Cue(
        "gradient synchronisation",
        "exposed_dp",
        2.5,
        (
            "grad_accum",
            "hsdp",
            "overlap",
            "batch",
        ),
        (
            r"grad\w* .{0,15}(sync\w*|reduc\w*|all-?reduc\w*|exchang\w*) .{0,20}(after|every|each|of each|per)",
            r"grad\w* (all-?reduce|sync\w*|reduc\w*|communicat\w*)",
            r"all-?reduces? .{0,20}grad\w*",
            r"(sync|reduc|all-?reduc)\w*.{0,25}(every|each|per) (micro[ -]?)(step|batch)",
            r"(all-?reduce|reduc\w+|sync\w*) .{0,25}(inside|within|repeated|during|per) .{0,15}(accum\w*|micro)",
            r"(no ?sync|accum\w*) .{0,40}(no effect|nothing|ignored|exactly|linear\w*)",
            r"(sync\w*|reduc\w*|all-?reduc\w*) (\w+ )?(on |at |after |in )?(every|each) (backward|micro|pass)",
        ),
        "gradients are reduced where they could wait or be hidden",
        unless=r"weight sync|rollout",
    ),
    Cue(
        "expert exchange",
        "exposed_ep",
        2.5,
        (
            "ep_dispatch",
            "overlap",
            "ep",
            "tp",
        ),
        (
            (
                r"(?<!host )(?<!kernel )(?<!cpu )(?<!python )\bdispatch(?!er none)\w*( and combine|/combine| combine"
                r"| kernels?)?(?! (overhead|time on the host|cost of))"
            ),
            r"all-?to-?alls?|\ba2a\b|alltoall",
            r"ragged (collective|exchange|lowering)",
            r"expert (exchange|communication)",
        ),
        "tokens are sent to experts and back",
        unless=r"host dispatch|dispatch overhead|eager dispatch",
    ),
    Cue(
        "slow link between nodes",
        "exposed_communication",
        2.0,
        (
            "hsdp",
            "tp",
            "pp",
            "zero_stage",
            "collective_algo",
        ),
        (
            (
                r"(crosses|cross|spans?|leaves?|beyond|over|across) .{0,15}(racks?|pods?|domains?|switch\w*|hosts"
                r"|nodes|slices)"
            ),
            r"\b(one|1|single) (pod|rack|slice|node) to (two|2|several|many)",
            (
                r"\b(cross|inter|across|over|between)[ -]?(the )?(\d+ |two |four |several )?(nodes?|hosts|slices?"
                r"|servers)\b"
            ),
            r"slow (network|link|interconnect|fabric)",
            r"\b(dcn|efa|ethernet)\b(?! between)",
            r"(spans?|group span\w*|beyond|leaves?) .{0,25}(nodes?|domain|host)",
        ),
        "traffic crosses the slow links between nodes",
        unless=r"\bone node\b only|single node",
        settings=(
            "training",
            "fine-tuning",
            "serving",
        ),
    ),
    Cue(
        "no fast link inside the node",
        "exposed_tp",
        1.5,
        (
            "tp",
            "pp",
            "zero_stage",
            "collective_algo",
        ),
        (
            r"p2p (is )?(disabled|off|false)|no p2p|without peer",
            r"no nvlink|without nvlink|\bpcie\b",
        ),
        "the chips of a node talk over PCIe or host memory",
    ),
    Cue(
        "exposed communication",
        "exposed_communication",
        2.0,
        (
            "overlap",
            "collective_algo",
            "batch",
            "hsdp",
        ),
        (
            (
                r"(backward|forward|compute|step|layer)s? .{0,15}(stall\w*|wait\w*|blocks?|idles?) .{0,10}(on"
                r"|for) .{0,20}(reduce|gather|collective|comm|weights|send|recv|transfer)"
            ),
            r"no compute (runs|happens) (meanwhile|beside)|(prefetch\w*|transfers?) (is|are) (not|never) issued",
            r"\b(network|interconnect)\b(?! (cards?|interface))",
            r"exposed (comm\w*|collectives?|transfers?|all-\w+|reduce\w*|gathers?|nccl|sends?)",
            r"(comm\w*|collectives?|nccl)[ -]bound",
            r"\d ?% (of .{0,20})?(comm\w*|collectives?|nccl)",
            (
                r"(collectives?|comm\w*|all-?reduces?|transfers?|gathers?) .{0,20}(on the critical path|serial"
                r"|block\w*|un-?overlapped|unhidden|stalls?|compet\w+|contend\w*|cannot run|share\w* (the )?(sms?"
                r"|cores?|units))"
            ),
            r"(no|without|little|poor|not) (comm\w* )?overlap\w*|not hidden|nothing (is )?hidden",
            r"(comm\w*|collectives?|all-?reduces?|nccl) .{0,15}(time|share|\d+(\.\d+)? ?(%|ms|s)\b)",
            r"(comm\w*|collectives?|nccl( kernels?)?) (is|are|takes?|dominat\w*|of the)",
        ),
        "communication is not hidden, or takes its time",
    ),
    Cue(
        "sharding lost in the software",
        "exposed_communication",
        3.0,
        (
            "sharding",
            "optimizer",
            "diagnosis",
            "memory",
        ),
        (
            (
                r"(all-?)?gathers? .{0,15}(full|whole|entire) .{0,15}(logits|embedding\w*|activations?|batch"
                r"|tensor\w*|vocab\w*)|(logits|embedding\w*|vocab\w*) .{0,20}(replicat\w+|gather\w*)"
            ),
            (
                r"(not|never|no longer|un) ?(be )?(sharded|partitioned) (over|along|across|on)|has no (sharding|rule"
                r"|annotation)"
            ),
            r"re-?shard\w*(?! after)",
            (
                r"(unexpected|redundant|needless|unneeded|extra|spurious|unwanted) .{0,20}(all-?gather\w*"
                r"|all-?reduce\w*|collectives?|cop(y|ies)|transpos\w*|resharding)"
            ),
            r"(compiler|xla|spmd|gspmd|partitioner) (inserts?|adds?|emits?|chooses|falls|gathers|replicates)",
            r"(mesh )?axis .{0,25}(missing|dropped|unused|not (mapped|in|used|recognised|recognized))",
            r"rules? .{0,20}(missing|lost|dropped|ignored|not appl\w+)",
            r"involuntary|partitioner|full rematerialization",
            r"sharding (mismatch\w*|differs|conflict\w*)|collective[ -]permute",
            r"same (model|mesh|config\w*|layout|plan)\b.{0,60}slower",
            r"slower than .{0,25}(sibling|same|equal|other) (mesh|layout|trainer)",
            r"sharding (rules?|constraints?|annotations?|specs?|hints?)|unsharded|not (be )?sharded",
            r"(spmd|gspmd|shardy|xla) .{0,40}(replicat\w+|gather\w*|warn\w*)",
            r"(replicat\w+|gather\w+) .{0,30}(because|since) .{0,30}(axis|rule|mesh|annotation)",
            (
                r"(tensors?|activations?|logits|embedding\w*|experts?|moments|batch) (is|are|get|gets|was|were|stay"
                r"|being) (fully )?(replicated|all-?gathered)"
            ),
            r"(fell|falls?|falling) back to (full )?replicat\w*",
            r"logical axis|axis (name|rule)|with sharding constraint",
        ),
        "the compiled program moves or replicates tensors that the mesh does not ask for",
    ),
    Cue(
        "expert imbalance",
        "imbalance",
        2.5,
        (
            "load_balance",
            "routing",
            "ep",
            "ep_dispatch",
        ),
        (
            r"(router|gate|routing) .{0,25}(half|most|few|two|hot|third|unequal|uneven)",
            (
                r"(busiest|hottest|one|some) (\w+ )?(expert|rank)s? .{0,15}(gets?|has|have|receives?"
                r"|sees?) .{0,10}(\d|most|half|twice|more)"
            ),
            r"\d(\.\d+)?x (the )?(tokens|load|mean)",
            r"(expert|router|moe|token)s? .{0,20}(imbalanc\w+|skew\w*|unbalanced|uneven)",
            r"(imbalanc\w+|skew\w*|unbalanced|uneven) .{0,25}(experts?|rout\w+|token)",
            r"(?<!load )(?<!stage )\bimbalanc\w+(?! between (dp|replicas))",
            r"hot experts?|eplb|load[ -]balanc\w+ (loss|of experts)",
        ),
        "ranks wait for the one whose experts got most tokens",
    ),
    Cue(
        "small collectives",
        "latency_bound_collectives",
        2.0,
        (
            "tp",
            "collective_algo",
            "ep_dispatch",
            "pp",
        ),
        (
            r"(many|thousands of|small|tiny|short) .{0,15}(collectives?|all-?reduces?|messages?)",
            r"(collective|all-?reduce|exchange|dispatcher|message)\w* .{0,25}(latency|set-?up)",
            r"(set-?up|fixed) (cost|time|latency) .{0,30}(exposed|not amortised|dominat\w*)",
            r"latency[ -]bound (collective|all-?reduce|comm)",
            (
                r"(synchroni[sz]ations?|syncs|barriers?|round[ -]?trips?|hops?) (per|a|each|every) (token|layer|step"
                r"|block)"
            ),
            r"(thousands|hundreds|many) (of )?(synchroni[sz]ations?|barriers?|round[ -]?trips?)",
        ),
        "each collective moves so little that its latency decides",
    ),
    Cue(
        "strong scaling",
        "exposed_dp",
        2.0,
        (
            "scaling",
            "batch",
            "hsdp",
        ),
        (
            (
                r"(throughput|mfu|efficiency|speed|tflop\S*|per chip|per gpu) .{0,40}(falls?|drops?|declines?"
                r"|decreases?|goes down) .{0,40}(chips|gpus|nodes|pods?|devices|hosts|scale|slices)"
            ),
            r"(scal\w+|efficien\w+) .{0,30}(drops?|falls?|worse|poor\w*|sub-?linear|breaks?)",
            r"(slower|drops?|falls?|less) .{0,20}(with|at|on) more (nodes|gpus|chips)",
            r"more (nodes|gpus|chips|hosts)\W{0,3}.{0,15}(slow\w*|worse|less|no gain)",
            r"fewer tokens per (gpu|chip|device)",
            r"\d+ (nodes|gpus|chips)\b.{0,20}(worse|slower|no faster|less|lower)",
            r"(weak|strong|poor|bad) scaling|does not scale",
        ),
        "at a fixed batch every chip gets less work and the same traffic",
        timed=False,
    ),
    Cue(
        "bandwidth of collectives",
        "exposed_communication",
        2.0,
        (
            "collective_algo",
            "ep_dispatch",
            "overlap",
        ),
        (
            r"(bus|algorithm|achieved|effective) ?(bandwidth|bw)",
            r"nccl (algo|proto|tuning|min|max|ctas|channels)",
            r"\d+ ?(gb/s|gbps|gbyte/s) .{0,25}(of|against|instead|link|peak)",
        ),
        "collectives reach a fraction of what the link offers",
        unless=r"hbm|memory bandwidth|link \d+ gb/s",
        timed=False,
    ),
)
