"""Frameworks of published rows: which age of a stack, and which kernels, a row's release and source mean."""

import re

from agents.evaluation.rows import MeasuredRow
from agents.frameworks import MAXTEXT_SOFTWARE, MEGATRON, MEGATRON_BEFORE_FLASH, OLD_MEGATRON, Framework, framework_of
from projector.specs.software import (
    MEGATRON_RECIPES,
    NATURAL_IMBALANCE,
    TORCHTITAN,
    TORCHTITAN_2024,
    TORCHTITAN_2024_EAGER,
    Software,
    megatron_recipes,
)

LAST_OLD_YEAR, FLASH_YEAR = 2022, 2024
ARXIV = re.compile(r"arxiv:(\d\d)\d\d\.\d{4,5}", re.IGNORECASE)
# a benchmark file with its month in its name
DATED = re.compile(r"[_/](20\d\d)-?(?:0[1-9]|1[0-2])(?=[_.])")
RELEASE = re.compile(r"\b(\d\d)\.(\d\d)\b")
BLOCK_SCALED = ("mxfp8", "nvfp4")


def framework_of_row(name: str, source: str) -> Framework:
    """As `framework_of`, with the age of the publication: a Megatron of 2022 or before is another stack."""
    found = framework_of(name)
    published = ARXIV.search(source)
    if published is None or found != MEGATRON or "megascale" in name.lower():
        return found
    year = 2000 + int(published[1])
    if year <= LAST_OLD_YEAR:
        return OLD_MEGATRON
    return MEGATRON_BEFORE_FLASH if year <= FLASH_YEAR else found


def software_of(framework: Framework, row: MeasuredRow) -> Software:
    """The stack's kernels in the release a row names, with what the row says of its memory and its experts."""
    plan, software = row.plan, framework.software
    changed: dict[str, object] = {}
    if software == MEGATRON_RECIPES:
        found = RELEASE.search(row.release or "")
        release = None if found is None else (int(found[1]), int(found[2]))
        software = megatron_recipes(release, block_scaled=row.precision in BLOCK_SCALED)
    if plan.capacity_factor is not None and plan.capacity_factor > 0:
        # experts of a fixed capacity take their tokens by dense products: no permutation by index kernels around them
        changed |= {"expert_load": max(plan.capacity_factor, 1.0), "expert_passes": 1.0}
    if plan.router is not None and "dropless" in plan.router.lower():
        changed["expert_imbalance"] = NATURAL_IMBALANCE
    dated = DATED.search(row.document)
    if software == TORCHTITAN and dated is not None and int(dated[1]) < 2025:
        # that year's report names the compiler wherever it was used
        compiled = "compile" in (row.precision_printed or "").lower()
        software = TORCHTITAN_2024 if compiled else TORCHTITAN_2024_EAGER
    if "bf16 optimizer" in (row.release or "").lower():
        changed["gradient_bytes"] = 6
    if software == MAXTEXT_SOFTWARE and plan.offloads_inputs is False:
        changed["offloads_inputs"] = False
    return software.model_copy(update=changed)
