"""Votes: layouts that published runs of similar jobs adopted, each with a weight, as figures of a job's layouts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from agents.frameworks import framework_of
from agents.practice.table import DEGREES, Column, LayoutTable, Setting

if TYPE_CHECKING:
    from knowledge_base.past import PastCase, PastMatch

# How fast a vote fades: exp(-sum of these times the squared doublings between the two jobs). Chosen among factors of
# three about equal weights by the likelihood of adopted layouts out of fold: size of the model and memory of a chip
# decide a layout, the size of the machine and of the batch hardly do.
FADING = {
    "parameters": 1.5,
    "active_parameters": 1.5,
    "devices": 0.1,
    "seq_len": 0.3,
    "batch_tokens": 0.02,
    "domain": 0.1,
    "memory_bytes": 2.0,
}
# a figure that the source does not state counts as a factor of two away
UNSTATED_DOUBLINGS_SQUARED = 2.0
# what is left of a vote from another stack, kind of chip or task; what the same model's counts more than another's
OTHER_STACK, OTHER_KIND, OTHER_TASK, SAME_MODEL = 0.2, 0.2, 0.5, 3.0
# the share of votes that a degree nobody voted for counts with, and the weight of what no source tells
UNSEEN_SHARE, UNTOLD_WEIGHT = 0.05, 0.02
VOTE_NAMES = tuple(f"past_{name}" for name in DEGREES)


@dataclass(frozen=True)
class Votes:
    """degrees [votes, 4] as (tp, pp, cp, ep), weight [votes], texts: what ran, one a vote."""

    degrees: Column
    weight: Column
    texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def share(self) -> Column:
        """Weight over all weight, what no source tells included; shape [votes]."""
        return np.asarray(self.weight / (self.weight.sum() + UNTOLD_WEIGHT), dtype=np.float64)


NO_VOTES = Votes(np.zeros((0, len(DEGREES))), np.zeros(0), ())


def votes_of(matches: "Sequence[PastMatch]", setting: Setting, framework: str | None) -> Votes:
    """The layouts that were adopted among past training runs, by how alike the jobs are; runs of one model family on
    one kind of chip with one layout share a vote.

    framework: the stack as the request names it; None where it does not.
    """
    adopted = [one for one in matches if _is_adopted(one.case)]
    if not adopted:
        return NO_VOTES
    alike = Counter((one.case.group, one.case.layout.degrees) for one in adopted)
    weight = [_likeness(one, setting, framework) / alike[one.case.group, one.case.layout.degrees] for one in adopted]
    return Votes(
        degrees=np.array([one.case.layout.degrees for one in adopted], dtype=np.float64),
        weight=np.array(weight),
        texts=tuple(one.case.text for one in adopted),
    )


def vote_figures(table: LayoutTable, votes: Votes) -> Column:
    """For every layout and axis ln(UNSEEN_SHARE + share of the votes with this degree), shape [n, 4]."""
    same = table.degrees[:, None, :] == votes.degrees[None, :, :]
    return np.asarray(np.log(UNSEEN_SHARE + np.einsum("nva,v->na", same, votes.share)), dtype=np.float64)


def support_of(table: LayoutTable, votes: Votes) -> Column:
    """Share of the votes for exactly this layout, shape [n]."""
    same = (table.degrees[:, None, :] == votes.degrees[None, :, :]).all(axis=2)
    return np.asarray(same @ votes.share, dtype=np.float64)


def _is_adopted(case: "PastCase") -> bool:
    """A layout that experts recommend, or a change that a user of ours made and found better."""
    if case.kind == "published":
        return case.role == "adopted"
    return case.origin == "user" and case.effect.outcome == "improved"


def _likeness(match: "PastMatch", setting: Setting, framework: str | None) -> float:
    case, hardware = match.case, match.case.hardware
    apart = np.log2(_figures_of_case(case)) - np.log2(_figures_of(setting))
    squared = np.where(np.isnan(apart), UNSTATED_DOUBLINGS_SQUARED, apart**2)
    weight = float(np.exp(-(squared @ np.array(list(FADING.values())))))
    if case.framework is not None and framework is not None and framework_of(case.framework) != framework_of(framework):
        weight *= OTHER_STACK
    if hardware is not None and hardware.kind != setting.hardware.kind:
        weight *= OTHER_KIND
    if case.task not in (None, _task(setting)):
        weight *= OTHER_TASK
    return weight * (SAME_MODEL if match.match in ("exact", "same model") else 1.0)


def _task(setting: Setting) -> str:
    return "pretrain" if setting.workload.adapter is None else "lora"


def _figures_of(setting: Setting) -> Column:
    model, workload, hardware = setting.architecture, setting.workload, setting.hardware
    return np.array(
        [
            model.parameters,
            model.active_parameters,
            setting.devices,
            workload.seq_len,
            (workload.seq_len or 0) * (workload.global_batch or 0),
            setting.domain,
            hardware.hbm_bytes.value,
        ],
        dtype=np.float64,
    )


def _figures_of_case(case: "PastCase") -> Column:
    """NaN where a source does not state them."""
    model, hardware, chips = case.architecture, case.hardware, case.chips
    batch = case.seq_len * case.global_batch if case.seq_len is not None and case.global_batch is not None else None
    devices = chips * hardware.devices_per_chip if chips is not None and hardware is not None else None
    reach = None if hardware is None else hardware.intra.max_domain_chips * hardware.devices_per_chip
    values = (
        model.parameters,
        model.active_parameters,
        devices,
        case.seq_len,
        batch,
        min(reach, devices) if reach is not None and devices is not None else None,
        None if hardware is None else hardware.hbm_bytes.value,
    )
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
