"""The host plane: step marks of the program, calls that launched device work, and operators of the CPU backend."""

from typing import Final

import numpy as np

from traces.trace import ABSENT, Category, Ints, Mask
from traces.xplane.rows import Rows
from traces.xplane.space import NO_TEXT, Line, Plane, Texts

JAX_STEP_PREFIX: Final = "JAX step "


def step_marks(host: Plane, rows: Rows) -> None:
    """Add what the program marked with StepTraceAnnotation, as "JAX step <name> <number>"."""
    for thread, line in enumerate(host.lines):
        numbers = line.ints.get("step_num")
        if numbers is None:
            continue
        marked = np.flatnonzero(numbers != ABSENT)
        names = [
            f"{JAX_STEP_PREFIX}{host.kinds[kind].title} {number}"
            for kind, number in zip(line.kind[marked].tolist(), numbers[marked].tolist(), strict=True)
        ]
        _add(rows, line.take(marked), rows.name_ids(names), Category.ANNOTATION, thread)


def launch_calls(host: Plane, rows: Rows, correlations: Ints) -> None:
    """Add the calls that launched the device events with the given correlation ids."""
    titles = rows.name_ids([kind.title for kind in host.kinds])
    for thread, line in enumerate(host.lines):
        ids = line.ints.get("correlation_id")
        if ids is not None:
            calls = line.where((ids != ABSENT) & np.isin(ids, correlations))
            _add(rows, calls, titles[calls.kind], Category.RUNTIME, thread, calls.ints["correlation_id"])


def cpu_devices(host: Plane) -> list[int]:
    """Ordinals of the virtual devices whose operators ran on the host; [ABSENT] where they are not numbered."""
    found: set[int] = set()
    for line in host.lines:
        ordinals = line.ints.get("device_ordinal", np.full(len(line), ABSENT))
        found.update(np.unique(ordinals[_is_operator(line)]).tolist())
    return sorted(found)


def cpu_operators(host: Plane, rows: Rows, device: int) -> None:
    """Add the HLO operators of one virtual device."""
    titles = rows.name_ids([kind.title for kind in host.kinds])
    for thread, line in enumerate(host.lines):
        ordinals = line.ints.get("device_ordinal", np.full(len(line), ABSENT))
        mine = line.where(_is_operator(line) & (ordinals == device))
        _add(rows, mine, titles[mine.kind], Category.CPU_OP, thread)


def _is_operator(line: Line) -> Mask:
    texts = line.texts.get("hlo_op", Texts(np.full(len(line), NO_TEXT), ()))
    ran: Mask = (texts.ids != NO_TEXT) & (line.duration_ps > 0)
    return ran


def _add(
    rows: Rows, line: Line, name_ids: Ints, category: Category, thread: int, correlation: Ints | int = ABSENT
) -> None:
    rows.add(line.begin_ps, line.end_ps, name_ids, category, thread=thread, correlation=correlation)
