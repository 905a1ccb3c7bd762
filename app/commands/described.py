"""A job described by arguments: the workload, the cluster, a plan."""

import argparse
from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from projector.anchor.serving_point import MeasuredServing
from projector.errors import InvalidDescription, UnknownName
from projector.specs.cluster import ClusterSpec
from projector.specs.objective import Slo
from projector.specs.plan import ParallelismPlan
from projector.specs.workload import WorkloadSpec

TRAINING = ("seq_len", "global_batch")
SERVING = ("input_len", "output_len", "concurrency")
TRAFFIC = (
    "request_rate_per_s",
    "arrivals",
    "length_spread_frac",
    "prefix_hit_frac",
    "draft_acceptance_frac",
    "expert_imbalance",
    "requests_per_slot",
)
SWITCHES = {"true": True, "false": False}

R = TypeVar("R", bound=BaseModel)


def add_workload(parser: argparse.ArgumentParser, *, serving: bool = True) -> None:
    """--model, --precision, the sizes of the workload, and what a training step trains."""
    parser.add_argument("--model", required=True, help="model of the catalogue")
    parser.add_argument("--precision", default="bf16", help="precision of the workload (default bf16)")
    parser.add_argument("--seq-len", type=int, help="training: tokens a sequence")
    parser.add_argument("--global-batch", type=int, help="training: sequences a step over all devices")
    _add_training_content(parser)
    if serving:
        parser.add_argument("--input-len", type=int, help="serving: prompt tokens a request")
        parser.add_argument("--output-len", type=int, help="serving: generated tokens a request")
        parser.add_argument("--concurrency", type=int, help="serving: requests in flight over the fleet")
        parser.add_argument(
            "--traffic",
            metavar="KEY=VALUE,...",
            help=f"serving: what else is known of the requests, as request_rate_per_s=5; keys: {', '.join(TRAFFIC)}",
        )
        parser.add_argument(
            "--engine", help='serving: engine and release, for example "vllm 0.19" (default: none named)'
        )


def _add_training_content(parser: argparse.ArgumentParser) -> None:
    """--lora-rank, --lora-targets, --frozen-dtype, --packed, --padded."""
    parser.add_argument("--lora-rank", type=int, help="training: low-rank adapters of this rank on frozen weights")
    parser.add_argument("--lora-targets", metavar="A,B,...", help="projections with adapters (default: all linear)")
    parser.add_argument("--frozen-dtype", help="dtype of the frozen weights, fp4 for QLoRA (default bf16)")
    rows = parser.add_mutually_exclusive_group()
    meaning = "training: documents of this mean length (and 95th percentile)"
    rows.add_argument("--packed", metavar="MEAN[,P95]", help=f"{meaning} packed into the rows of seq-len tokens")
    rows.add_argument("--padded", metavar="MEAN[,P95]", help=f"{meaning} padded to seq-len tokens")


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """--chip, --chips, --topology, --slices."""
    parser.add_argument("--chip", required=True, help="chip of the catalogue, id or alias")
    parser.add_argument("--chips", type=int, required=True, help="number of chips")
    parser.add_argument("--topology", metavar="AxBxC", help="torus shape of one slice, for example 4x4x8")
    parser.add_argument("--slices", type=int, default=1, help="slices joined by DCN (default 1)")


def workload_of(arguments: argparse.Namespace, *, any_load: bool = False) -> WorkloadSpec:
    """The workload that the arguments of `add_workload` describe. InvalidDescription where sizes are missing.

    any_load: the load of a serving workload may be left open. A rate of arrivals is a load.
    """
    sizes = {name: getattr(arguments, name, None) for name in TRAINING + SERVING}
    given: dict[str, object] = {name: value for name, value in sizes.items() if value is not None}
    traffic = traffic_of(getattr(arguments, "traffic", None))
    serving = bool(traffic) or any(name in given for name in SERVING)
    open_load = any_load or "request_rate_per_s" in traffic or traffic.get("arrivals", "closed") != "closed"
    needed = (SERVING[:2] if open_load else SERVING) if serving else TRAINING
    missing = [f"--{name.replace('_', '-')}" for name in needed if name not in given]
    if missing:
        training = "--seq-len and --global-batch (training)"
        both = f"{training}, or --input-len, --output-len and --concurrency (serving)"
        raise InvalidDescription(
            f"{', '.join(missing)} missing", hint=f"give {both if 'concurrency' in vars(arguments) else training}"
        )
    phase = "serving" if serving else "training"
    shared = {"phase": phase, "model": arguments.model, "precision": arguments.precision}
    shared |= {"engine": getattr(arguments, "engine", None)}
    content = {"adapter": _adapter(arguments), "lengths": _lengths(arguments)}
    return described(WorkloadSpec, shared | given | traffic | content)


def traffic_of(text: str | None) -> dict[str, str]:
    """Keys of the workload from "arrivals=poisson,request_rate_per_s=5". UnknownName, InvalidDescription."""
    found: dict[str, str] = {}
    for item in () if text is None else listed(text):
        key, separator, value = item.partition("=")
        if key not in TRAFFIC:
            raise UnknownName("property of the traffic", key, TRAFFIC)
        if not separator or key in found:
            raise InvalidDescription(f"--traffic: {item!r}", hint="each once, as KEY=VALUE")
        found[key] = value
    return found


def _adapter(arguments: argparse.Namespace) -> dict[str, object] | None:
    """The adapters as the request's `workload.adapter`; None where no rank is given."""
    stated: dict[str, object] = {"rank": arguments.lora_rank, "frozen_dtype": arguments.frozen_dtype}
    if arguments.lora_targets is not None:
        stated["targets"] = tuple(arguments.lora_targets.split(","))
    given = {key: value for key, value in stated.items() if value is not None}
    if given and arguments.lora_rank is None:
        raise InvalidDescription("--lora-targets and --frozen-dtype without --lora-rank")
    return given or None


def _lengths(arguments: argparse.Namespace) -> dict[str, object] | None:
    """--packed or --padded as the request's `workload.lengths`."""
    for rows in ("packed", "padded"):
        text: str | None = getattr(arguments, rows)
        if text is not None:
            mean, _, p95 = text.partition(",")
            return {"rows": rows, "mean_tokens": mean, "p95_tokens": p95 or None}
    return None


def cluster_of(arguments: argparse.Namespace, chip_id: str) -> ClusterSpec:
    """The cluster of chips `chip_id` that the arguments of `add_cluster` describe."""
    topology = None if arguments.topology is None else tuple(arguments.topology.lower().split("x"))
    values = {"chip": chip_id, "chips": arguments.chips, "topology": topology, "slices": arguments.slices}
    return described(ClusterSpec, values)


def plan_of(text: str, phase: str, option: str = "--plan") -> ParallelismPlan:
    """A plan from "dp=8,tp=4,sp=true". UnknownName, InvalidDescription. option: the argument it was given as."""
    values: dict[str, object] = dict(fields_of(text, option))
    if values.setdefault("phase", phase) != phase:
        raise InvalidDescription(f"{option} says phase={values['phase']}, the sizes say {phase}")
    return described(ParallelismPlan, values)


def slo_of(text: str | None) -> Slo:
    """Budgets from "ttft_ms=500,tpot_ms=25"; none for None. UnknownName, InvalidDescription."""
    return described(Slo, {} if text is None else _numbers_of(text, "--slo", "latency budget", Slo))


def measured_of(text: str) -> MeasuredServing:
    """What was measured, from "tpot_ms=21,ttft_ms=240". UnknownName, InvalidDescription."""
    return described(MeasuredServing, _numbers_of(text, "--measured", "measured figure", MeasuredServing))


def _numbers_of(text: str, option: str, kind: str, record: type[BaseModel]) -> dict[str, str]:
    values: dict[str, str] = {}
    for item in listed(text):
        key, separator, value = item.partition("=")
        if key not in record.model_fields:
            raise UnknownName(kind, key, record.model_fields)
        if not separator or key in values:
            raise InvalidDescription(
                f"{option}: {item!r}", hint=f"each once, for example {option} tpot_ms=25,ttft_ms=500"
            )
        values[key] = value
    return values


def fields_of(text: str, option: str) -> dict[str, int | bool | str]:
    """Plan fields with their values from "dp=8,sp=true": numbers and switches as such, all else as words."""
    values: dict[str, int | bool | str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        key, separator, value = item.partition("=")
        if key not in ParallelismPlan.model_fields:
            raise UnknownName("plan field", key, ParallelismPlan.model_fields)
        if not separator or key in values:
            raise InvalidDescription(f"{option}: {item!r}", hint="each field once, as KEY=VALUE")
        values[key] = int(value) if value.isdecimal() else SWITCHES.get(value.lower(), value)
    if not values:
        raise InvalidDescription(f"{option} names no field", hint=f"for example {option} dp=8,tp=4")
    return values


def listed(text: str) -> tuple[str, ...]:
    """The parts of "a, b"."""
    return tuple(part.strip() for part in text.split(","))


def described(record: type[R], values: Mapping[str, object]) -> R:
    """The record; InvalidRequest with one entry a wrong value."""
    from app.validation import InvalidRequest, field_problems

    try:
        return record.model_validate(values)
    except ValidationError as error:
        raise InvalidRequest(tuple(field_problems(error, record))) from error
