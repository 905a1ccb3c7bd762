"""Legality before trials, as data: what a search may try of each plan field, and where a field cannot matter.

What is illegal say the rules, what cannot matter says `projector.rules.inert`, what is worth trying
`projector.rules.menus`; here they are asked.
"""

from typing import Any, get_args

import numpy as np
from pydantic import Field

from projector.errors import UnknownName
from projector.graph.columns import Switch
from projector.levers import LEVERS
from projector.rules import RULES, Setting
from projector.rules.inert import INERT
from projector.rules.menus import JUDGES, MENUS
from projector.rules.serving_rules import TRAINING_FIELDS
from projector.rules.training_rules import SERVING_FIELDS
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ParallelismPlan, Phase
from projector.specs.plan_batch import PlanBatch
from projector.specs.record import Record
from projector.specs.workload import WorkloadSpec

Value = bool | int | float | str


class Choices(Record):
    """What a search may try of one plan field.

    values: the default among them; it alone where the field is inert.
    inert_because: why no value changes any figure of any plan here; "" where one may.
    """

    field: str
    lever: str = Field(description="lever that moves the field; empty where none does")
    default: Value
    values: tuple[Value, ...]
    numerics: bool = Field(description="other values than the default may change what the model answers")
    inert_because: str = Field("", description="why the field cannot matter here; empty where it can")


def admissible(
    field: str,
    architecture: ModelArchitecture | None,
    cluster: ClusterSpec,
    hardware: HardwareProfile | None,
    workload: WorkloadSpec,
) -> Choices:
    """The values of one plan field that some legal plan of this model on this cluster may have.

    Degrees are divisors of the devices that the rules about the model allow by themselves; words are those the chip and
    the model have; sizes are a ladder of usual values. Whether a whole plan is legal is `projector.legality`'s to say.
    An unknown model or chip (None) rules nothing out. UnknownName with the nearest fields where no lever of the phase
    moves a field of this name.
    """
    setting = Setting(workload, architecture, cluster, hardware)
    fields = lever_fields(workload.phase)
    if field not in fields:
        raise UnknownName(f"{workload.phase} plan field", field, fields)
    lever = next(one for one in LEVERS if field in one.fields and workload.phase in one.phases)
    default: Value = ParallelismPlan.model_fields[field].default
    because = next((one.because for one in INERT if field in one.fields and one.always(setting)), "")
    return Choices(
        field=field,
        lever=lever.name,
        default=default,
        values=(default,) if because else _judged(field, _menu(field, setting), setting),
        numerics=lever.numerics,
        inert_because=because,
    )


def admissible_fields(
    architecture: ModelArchitecture | None,
    cluster: ClusterSpec,
    hardware: HardwareProfile | None,
    workload: WorkloadSpec,
) -> tuple[Choices, ...]:
    """`admissible` of every field a lever of the phase moves, in the order of LEVERS."""
    fields = lever_fields(workload.phase)
    return tuple(admissible(field, architecture, cluster, hardware, workload) for field in fields)


def lever_fields(phase: Phase) -> tuple[str, ...]:
    """Plan fields that levers of the phase move, in the order of LEVERS, each once."""
    foreign = TRAINING_FIELDS if phase == "serving" else SERVING_FIELDS
    moved = (field for lever in LEVERS if phase in lever.phases for field in lever.fields if field not in foreign)
    return tuple(dict.fromkeys(moved))


def inert(
    field: str,
    plans: PlanBatch,
    architecture: ModelArchitecture | None,
    cluster: ClusterSpec,
    hardware: HardwareProfile | None,
    workload: WorkloadSpec,
) -> Switch:
    """Shape [n]: True where no value of the field changes any figure of the plan, its other fields as they are.

    Plans that differ in such fields alone are one plan: a search keeps the one at the default.
    """
    setting = Setting(workload, architecture, cluster, hardware)
    found = np.zeros(len(plans), dtype=np.bool_)
    for one in INERT:
        if field in one.fields:
            found |= one.at(plans, setting)
    return found


def inert_reasons(
    plan: ParallelismPlan,
    architecture: ModelArchitecture | None,
    cluster: ClusterSpec,
    hardware: HardwareProfile | None,
    workload: WorkloadSpec,
) -> dict[str, str]:
    """Field -> why it cannot matter in this plan, of the fields levers of its phase move."""
    setting, plans = Setting(workload, architecture, cluster, hardware), PlanBatch.from_plans([plan])
    found: dict[str, str] = {}
    for one in INERT:
        if one.at(plans, setting)[0]:
            found.update({field: one.because for field in one.fields if field not in found})
    return {field: found[field] for field in lever_fields(workload.phase) if field in found}


def _menu(field: str, setting: Setting) -> tuple[Value, ...]:
    """Values of the field's menu, or of its type; the default first where the menu leaves it out."""
    info = ParallelismPlan.model_fields[field]
    if field in MENUS:
        values = MENUS[field](setting)
        return values if info.default in values else (info.default, *values)
    if isinstance(info.default, bool):
        return (info.default, not info.default)
    return tuple(dict.fromkeys((info.default, *_words(info.annotation))))


def _words(annotation: Any) -> tuple[Value, ...]:
    """Members of a Literal, those of Literals inside it included."""
    found: list[Value] = []
    for member in get_args(annotation):
        found += [member] if isinstance(member, bool | int | float | str) else _words(member)
    return tuple(found)


def _judged(field: str, values: tuple[Value, ...], setting: Setting) -> tuple[Value, ...]:
    """Values that the rules which judge this field by itself allow."""
    if field not in JUDGES:
        return values
    judged_as, names = JUDGES[field]
    plans = PlanBatch.from_columns(len(values), **{"phase": setting.workload.phase, judged_as: np.array(values)})
    legal = np.ones(len(values), dtype=np.bool_)
    for rule in RULES:
        found = rule.find(plans, setting) if rule.name in names and rule.applies(setting) else None
        if found is not None:
            legal &= ~found.broken
    return tuple(value for value, keep in zip(values, legal.tolist(), strict=True) if keep)
