"""The clock of an export: its times count from the start of the session, unless the exporter was told otherwise."""

import re
from collections.abc import Mapping
from typing import Final

from traces.nsys.database import Database

_SHIFT: Final = re.compile(r"-?\d{1,18}", re.ASCII)


def base_time_ns(db: Database, facts: Mapping[str, str]) -> int | None:
    """What to add to times to get nanoseconds since 1970; None where the file does not say.

    `--ts-normalize` makes times absolute, `--ts-shift` moves them by a number of nanoseconds.
    """
    if facts.get("EXPORT_PARAM_TIME_NORMALIZE", "").lower() == "true":
        return 0
    shift = facts.get("EXPORT_PARAM_TIME_SHIFT", "0")
    if _SHIFT.fullmatch(shift) is None:
        return None
    for (started,) in db.numbers("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",)).tolist():
        if started > 0:
            return int(started) - int(shift)
    return None
