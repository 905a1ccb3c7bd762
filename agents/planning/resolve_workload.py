"""Sizes of the job: from the request, from shapes in the trace, otherwise assumed aloud."""

from agents.planning.conflicts import LEAST_SURE
from agents.planning.origins import Origins
from agents.planning.serving_phases import decoding_requests, prompt_tokens
from agents.request import PlanRequest
from projector.errors import InvalidDescription
from projector.specs.architecture import ModelArchitecture
from projector.specs.plan import ParallelismPlan, Phase
from projector.specs.record import MOST_SEQUENCES
from projector.specs.workload import WorkloadSpec
from traces.measure_types import ServingPhase
from traces.summary_types import Inferred, ModelShapes, TraceSummary

ASSUMED_SEQ_LEN = 4096
ASSUMED_SEQUENCES_A_DEVICE = 8
ASSUMED_INPUT_LEN = 1024
ASSUMED_OUTPUT_LEN = 256
ASSUMED_REQUESTS_AN_ENGINE = 64
MOST_TOKENS_A_SEQUENCE = 131_072


def resolve_workload(
    request: PlanRequest,
    summary: TraceSummary | None,
    phase: Phase,
    architecture: ModelArchitecture | None,
    current: ParallelismPlan | None,
    source: str,
    devices: int,
    origins: Origins,
) -> tuple[WorkloadSpec, ParallelismPlan | None]:
    """A workload without gaps, and the current plan with the batch fields that follow from it."""
    stated = request.workload or WorkloadSpec(phase=phase)
    for key in ("seq_len", "global_batch", "input_len", "output_len", "concurrency"):
        if (value := getattr(stated, key)) is not None:
            origins.stated(f"workload.{key}", value, f"request.workload.{key}")
    for key in TRAFFIC:
        if (value := getattr(stated, key)) is not None:
            origins.stated(f"workload.{key}", value, f"request.workload.{key}")
    if stated.adapter is not None:
        origins.stated("workload.adapter", stated.adapter.text, "request.workload.adapter")
    if stated.lengths is not None:
        origins.stated("workload.lengths", stated.lengths.text, "request.workload.lengths")
    precision = _precision(stated, summary, phase, architecture, origins)
    shared = {"phase": phase, "model": architecture.name if architecture else None, "precision": precision}
    if phase == "training":
        shapes = summary.implied.shapes if summary is not None else ModelShapes()
        return _training(stated, shared, shapes, architecture, current, source, devices, origins, request)
    phases = summary.serving_phases if summary is not None else ()
    return _serving(stated, shared, phases, current, source, devices, origins)


def _precision(
    stated: WorkloadSpec,
    summary: TraceSummary | None,
    phase: Phase,
    architecture: ModelArchitecture | None,
    origins: Origins,
) -> str:
    implied = summary.implied.dtype if summary is not None else None
    if "precision" in stated.model_fields_set:
        origins.stated("workload.precision", stated.precision, "request.workload.precision")
        return stated.precision
    if implied is not None:
        origins.implied("dtype", implied, implied.value)
        stored_as = summary.implied.weight_dtype if summary is not None else None
        if stored_as is not None:
            origins.implied("weight_dtype", stored_as, stored_as.value)
        return implied.value
    matters = "narrower types shorten matrix work and weight reads, wider ones need more memory"
    stored = architecture.checkpoint_dtype if architecture is not None and phase == "serving" else None
    if stored is not None:
        origins.assumed(
            "workload.precision", stored, "no dtype is stated or seen: as the checkpoint is stored", matters
        )
        return stored
    origins.assumed("workload.precision", "bf16", "no dtype is stated or seen", matters)
    return "bf16"


def _training(
    stated: WorkloadSpec,
    shared: dict[str, str | None],
    shapes: ModelShapes,
    architecture: ModelArchitecture | None,
    current: ParallelismPlan | None,
    source: str,
    devices: int,
    origins: Origins,
    request: PlanRequest,
) -> tuple[WorkloadSpec, ParallelismPlan | None]:
    parts = current.cp if current is not None else 1
    seq_len = stated.seq_len or _seen_seq_len(shapes, parts, origins) or _assume_seq_len(shapes, architecture, origins)
    if current is not None and source != "stated":
        current = current.model_copy(update={"micro_batch": _micro_batch(shapes, parts, seq_len)})
    if stated.global_batch is not None:
        global_batch = stated.global_batch
        current = _with_accumulation(current, global_batch, request, source)
    elif current is not None:
        global_batch = current.dp * current.micro_batch * current.grad_accum
        origins.assumed(
            "workload.global_batch",
            global_batch,
            f"dp {current.dp} x micro-batch {current.micro_batch} x accumulation {current.grad_accum} now",
            "a larger batch hides more communication and leaves room for pipeline stages",
        )
    else:
        global_batch = devices * ASSUMED_SEQUENCES_A_DEVICE
        origins.assumed(
            "workload.global_batch",
            global_batch,
            f"{ASSUMED_SEQUENCES_A_DEVICE} sequences a device",
            "a larger batch hides more communication and feeds pipelines, a smaller one limits data parallelism",
        )
    if global_batch > MOST_SEQUENCES:
        raise InvalidDescription(
            f"a step of {global_batch:,} sequences on {devices:,} devices is beyond {MOST_SEQUENCES:,}",
            hint="state workload.global_batch",
        )
    sizes = {"seq_len": seq_len, "global_batch": global_batch}
    content = {"adapter": stated.adapter, "lengths": stated.lengths}
    return WorkloadSpec.model_validate(shared | sizes | content), current


def _seen_seq_len(shapes: ModelShapes, parts: int, origins: Origins) -> int | None:
    """The length the trace shows, on all ranks that share a sequence; None where it does not, or only hints at it."""
    sure = dict(shapes.confidences).get("sequence_length", 0.0)
    if shapes.sequence_length is None or sure <= LEAST_SURE or shapes.sequence_length * parts > MOST_TOKENS_A_SEQUENCE:
        return None
    seen = shapes.sequence_length * parts
    basis = dict(shapes.basis).get("sequence_length", "")
    on_ranks = f", {parts} ranks to a sequence" if parts > 1 else ""
    origins.implied("seq_len", Inferred(value=seen, confidence=sure, basis=f"{basis}{on_ranks}"), str(seen))
    return seen


def _micro_batch(shapes: ModelShapes, parts: int, seq_len: int) -> int:
    """Sequences the trace shows at once, else the tokens of a pass in sequences of that length; at least one."""
    if shapes.micro_batch is not None and (shapes.sequence_length or 0) * parts == seq_len:
        return shapes.micro_batch
    return max((shapes.tokens or 0) * parts // seq_len, 1)


def _assume_seq_len(shapes: ModelShapes, architecture: ModelArchitecture | None, origins: Origins) -> int:
    tokens = shapes.tokens
    matters = "longer sequences favour context parallelism and recompute, shorter ones data parallelism"
    if tokens is not None and tokens <= MOST_TOKENS_A_SEQUENCE:
        reason = f"the trace shows {tokens} tokens a pass on one rank, taken as one sequence"
        origins.assumed("workload.seq_len", tokens, reason, matters)
        return tokens
    longest = architecture.max_positions if architecture and architecture.max_positions else ASSUMED_SEQ_LEN
    seq_len = min(ASSUMED_SEQ_LEN, longest)
    origins.assumed("workload.seq_len", seq_len, "no sequence length is stated or seen", matters)
    return seq_len


def _with_accumulation(
    current: ParallelismPlan | None, global_batch: int, request: PlanRequest, source: str
) -> ParallelismPlan | None:
    """The current plan with the accumulation the global batch asks for; a stated one that disagrees is refused."""
    if current is None:
        return None
    a_pass = current.dp * current.micro_batch
    stated = request.current_plan is not None and "grad_accum" in request.current_plan.model_fields_set
    if stated and a_pass * current.grad_accum != global_batch:
        raise InvalidDescription(
            f"workload.global_batch is {global_batch}, current_plan makes dp {current.dp} x micro_batch "
            f"{current.micro_batch} x grad_accum {current.grad_accum} = {a_pass * current.grad_accum}",
            hint="leave grad_accum out to have it derived",
        )
    if global_batch % a_pass == 0:
        return current.model_copy(update={"grad_accum": global_batch // a_pass})
    if source == "stated":
        raise InvalidDescription(
            f"current_plan pushes {a_pass} sequences at once (dp x micro_batch), "
            f"which does not divide workload.global_batch {global_batch}"
        )
    if global_batch % current.dp == 0:
        return current.model_copy(update={"micro_batch": 1, "grad_accum": global_batch // current.dp})
    return None


# the engine and properties of the traffic, which are taken as they are stated
TRAFFIC = (
    "engine",
    "request_rate_per_s",
    "arrivals",
    "length_spread_frac",
    "prefix_hit_frac",
    "draft_acceptance_frac",
    "expert_imbalance",
    "requests_per_slot",
)


def _serving(
    stated: WorkloadSpec,
    shared: dict[str, str | None],
    phases: tuple[ServingPhase, ...],
    current: ParallelismPlan | None,
    source: str,
    devices: int,
    origins: Origins,
) -> tuple[WorkloadSpec, ParallelismPlan | None]:
    input_len, output_len = stated.input_len, stated.output_len
    if input_len is None:
        seen = prompt_tokens(phases)
        input_len = seen or ASSUMED_INPUT_LEN
        reason = "mean length of the prompts the trace prefills" if seen else "no prompt length is stated or seen"
        matters = "longer prompts make prefill and KV cache the cost, and favour chunked prefill"
        origins.assumed("workload.input_len", input_len, reason, matters)
    if output_len is None:
        output_len = ASSUMED_OUTPUT_LEN
        matters = "longer answers make decode, so HBM bandwidth, the cost"
        origins.assumed("workload.output_len", output_len, "no answer length is stated or seen", matters)
    concurrency = stated.concurrency
    if concurrency is None and stated.request_rate_per_s is None:
        concurrency = _assume_concurrency(decoding_requests(phases), current, devices, origins)
    if current is not None and source != "stated" and concurrency is not None:
        seats = -(-concurrency // current.dp)
        current = current.model_copy(update={"max_num_seqs": seats})
        origins.assumed(
            "current_plan.max_num_seqs",
            seats,
            "the trace does not show the engine's batch limit; as many as run in one engine were taken",
            "a lower limit queues requests, a higher one asks for more KV cache",
        )
    sizes = {"input_len": input_len, "output_len": output_len, "concurrency": concurrency}
    traffic = {name: getattr(stated, name) for name in TRAFFIC}
    return WorkloadSpec.model_validate(shared | traffic | sizes), current


def _assume_concurrency(decoding: int | None, current: ParallelismPlan | None, devices: int, origins: Origins) -> int:
    matters = "few requests favour latency layouts (tensor parallelism), many favour replicas and expert parallelism"
    engines = current.dp if current is not None else 1
    if decoding is not None:
        concurrency = decoding * engines
        reason = f"the trace shows {decoding} requests decoding at once in each of {engines} engines"
    elif current is not None:
        concurrency = ASSUMED_REQUESTS_AN_ENGINE * engines
        reason = f"{ASSUMED_REQUESTS_AN_ENGINE} requests for each of {engines} engines"
    else:
        concurrency = ASSUMED_REQUESTS_AN_ENGINE * devices
        reason = f"{ASSUMED_REQUESTS_AN_ENGINE} requests for each of {devices} devices"
    origins.assumed("workload.concurrency", concurrency, reason, matters)
    return concurrency
