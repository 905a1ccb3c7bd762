"""`shardwise rl FILE`: one step of reinforcement learning, phase by phase."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from app.commands.files import content_of, print_document

if TYPE_CHECKING:
    from app.schemas_rl import RlAnswer, RlRequest

HELP = "project one step of reinforcement learning: rollout, forward passes, updates, hand-over"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """FILE, --json."""
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="the step as JSON, - for stdin (keys: docs/post-training.md)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Check, project, print."""
    from app.schemas_rl import RlRequest
    from app.tables_rl import show_rl
    from app.validation import parse

    answer = answer_of(parse(RlRequest, content_of(arguments.file)))
    if arguments.json:
        print_document(answer)
    else:
        show_rl(answer)
    return 0


def answer_of(request: "RlRequest") -> "RlAnswer":
    """The projection, or the rules the two plans break. UnknownName, InvalidDescription."""
    from agents.frameworks import framework_named
    from app.schemas_rl import RlAnswer
    from projector.catalog import architecture, chip
    from projector.legality import check
    from projector.project_rl import project_rl
    from projector.specs.cluster import ClusterSpec
    from projector.specs.software import CURRENT
    from projector.specs.workload import WorkloadSpec

    hardware, model = chip(request.cluster.chip), architecture(request.model)
    training = request.plan.training
    if "grad_accum" not in training.model_fields_set:
        needed = request.step.micro_batches(training, request.step.responses // request.step.updates)
        training = training.model_copy(update={"grad_accum": needed})
    plan = request.plan.model_copy(update={"training": training})
    request = request.model_copy(update={"plan": plan})
    generates = WorkloadSpec(phase="serving", precision=request.step.precision)
    pools = [
        ClusterSpec(chip=hardware.id, chips=max(1, one.devices // hardware.devices_per_chip))
        for one in (training, plan.rollout)
    ]
    illegal = (
        *check(training, request.step.rows_of(training), model, pools[0], hardware),
        *(
            broken.model_copy(update={"quantity": f"engines: {broken.quantity}"})
            for broken in check(plan.rollout, generates, model, pools[1], hardware)
        ),
    )
    if illegal:
        return RlAnswer(request=request, legal=False, illegal=illegal, projection=None)
    software = CURRENT if request.framework is None else framework_named(request.framework).software
    found = project_rl(plan, request.step, model, request.cluster, hardware, software=software)
    return RlAnswer(request=request, legal=True, illegal=(), projection=found)
