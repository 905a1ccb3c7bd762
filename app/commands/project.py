"""`shardwise project`: the projector's figures for one plan on one cluster."""

import argparse
from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from app.commands.files import print_document
from projector.errors import InvalidDescription, UnknownName
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ParallelismPlan
from projector.specs.workload import WorkloadSpec

HELP = "project one plan of one model on one cluster"
TRAINING = ("seq_len", "global_batch")
SERVING = ("input_len", "output_len", "concurrency")

R = TypeVar("R", bound=BaseModel)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--model, --chip, --chips, --topology, --slices, --plan, workload sizes, --json."""
    parser.add_argument("--model", required=True, help="model of the catalogue")
    parser.add_argument("--chip", required=True, help="chip of the catalogue, id or alias")
    parser.add_argument("--chips", type=int, required=True, help="number of chips")
    parser.add_argument("--topology", metavar="AxBxC", help="torus shape of one slice, for example 4x4x8")
    parser.add_argument("--slices", type=int, default=1, help="slices joined by DCN (default 1)")
    parser.add_argument("--plan", required=True, metavar="KEY=VALUE,...", help="plan fields, for example dp=8,tp=4")
    parser.add_argument("--precision", default="bf16", help="precision of the workload (default bf16)")
    parser.add_argument("--seq-len", type=int, help="training: tokens a sequence")
    parser.add_argument("--global-batch", type=int, help="training: sequences a step over all devices")
    parser.add_argument("--input-len", type=int, help="serving: prompt tokens a request")
    parser.add_argument("--output-len", type=int, help="serving: generated tokens a request")
    parser.add_argument("--concurrency", type=int, help="serving: requests in flight over the fleet")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Check, project, print."""
    from app.schemas import ProjectAnswer
    from app.tables import show_projection
    from projector.catalog import architecture, chip
    from projector.legality import check
    from projector.project import project

    workload = _workload(arguments)
    plan = plan_of(arguments.plan, workload.phase)
    hardware = chip(arguments.chip)
    model = architecture(arguments.model)
    cluster = _record(
        ClusterSpec,
        {
            "chip": hardware.id,
            "chips": arguments.chips,
            "topology": _topology(arguments.topology),
            "slices": arguments.slices,
        },
    )
    rejections = check(plan, workload, model, cluster, hardware)
    projection = None if rejections else project(plan, workload, model, cluster, hardware)
    answer = ProjectAnswer(
        plan=plan, workload=workload, cluster=cluster, legal=not rejections, illegal=rejections, projection=projection
    )
    if arguments.json:
        print_document(answer)
    else:
        show_projection(answer)
    return 0


def plan_of(text: str, phase: str) -> ParallelismPlan:
    """A plan from "dp=8,tp=4,sp=true". UnknownName, InvalidDescription."""
    values: dict[str, object] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        key, separator, value = item.partition("=")
        if key not in ParallelismPlan.model_fields:
            raise UnknownName("plan field", key, ParallelismPlan.model_fields)
        if not separator or key in values:
            raise InvalidDescription(f"--plan: {item!r}", hint="each field once, as KEY=VALUE")
        values[key] = int(value) if value.isdecimal() else value
    if not values:
        raise InvalidDescription("--plan names no field", hint="for example --plan dp=8,tp=4")
    if values.setdefault("phase", phase) != phase:
        raise InvalidDescription(f"--plan says phase={values['phase']}, the sizes say {phase}")
    return _record(ParallelismPlan, values)


def _workload(arguments: argparse.Namespace) -> WorkloadSpec:
    given = {name: getattr(arguments, name) for name in TRAINING + SERVING if getattr(arguments, name) is not None}
    serving = any(name in given for name in SERVING)
    needed = SERVING if serving else TRAINING
    missing = [f"--{name.replace('_', '-')}" for name in needed if name not in given]
    if missing:
        both = "--seq-len and --global-batch (training), or --input-len, --output-len and --concurrency (serving)"
        raise InvalidDescription(f"{', '.join(missing)} missing", hint=f"give {both}")
    phase = "serving" if serving else "training"
    return _record(WorkloadSpec, {"phase": phase, "model": arguments.model, "precision": arguments.precision, **given})


def _topology(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(text.lower().split("x"))


def _record(model: type[R], values: Mapping[str, object]) -> R:
    from app.validation import InvalidRequest, field_problems

    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise InvalidRequest(tuple(field_problems(error, model))) from error
