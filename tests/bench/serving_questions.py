"""What every projector of serving is asked: measured points of silicon_serving.csv, some of every kind, as printed.

Imports only the standard library: the processes of peers read the same questions.
"""

import csv
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

FILE = "silicon_serving.csv"


@dataclass(frozen=True)
class Question:
    """One point in the words of its file. batch: requests in flight an attention rank; pools: the columns of both.

    Times in milliseconds; an empty string or None is not stated.
    """

    id: str
    model_path: str
    system: str
    backend: str
    version: str
    mode: str
    isl: int
    osl: int
    batch: int | None
    concurrency: int
    tp: int
    pp: int
    attention_dp: int
    moe_tp: int
    moe_ep: int
    gemm_quant: str
    moe_quant: str
    pools: dict[str, int | None]
    ttft_ms: float
    tpot_ms: float

    @property
    def stratum(self) -> tuple[str, str, str, str]:
        """Points of one kind."""
        return (self.model_path, self.system, self.backend, self.mode)


def questions(folder: Path, each: int, *, modes: Sequence[str] = ("agg", "disagg")) -> tuple[Question, ...]:
    """At most `each` points of every (model, chip, backend, mode), evenly spaced in the file; 0: all of them."""
    with (folder / FILE).open(encoding="utf-8") as lines:
        found = [_question(row) for row in csv.DictReader(lines) if row["mode"] in modes]
    return tuple(found if each == 0 else _drawn(found, each))


def _drawn(every: Iterable[Question], each: int) -> Iterable[Question]:
    kinds = defaultdict(list)
    for one in every:
        kinds[one.stratum].append(one)
    for kind in sorted(kinds):
        points = kinds[kind]
        some = min(each, len(points))
        yield from (points[place * len(points) // some] for place in range(some))


def _question(row: dict[str, str]) -> Question:
    stated = re.search(r"silicon_concurrency=(\d+)", row["silicon_data_source"])
    attention_dp, batch = int(row["attention_dp_size"] or 1), _count(row["batch_size"])
    return Question(
        id=row["id"],
        model_path=row["model_path"],
        system=row["system"],
        backend=row["backend"],
        version=row["backend_version"],
        mode=row["mode"],
        isl=int(row["isl"]),
        osl=int(row["osl"]),
        batch=batch,
        concurrency=int(stated[1]) if stated else (batch or 0) * attention_dp,
        tp=int(row["tp_size"] or 1),
        pp=int(row["pp_size"] or 1),
        attention_dp=attention_dp,
        moe_tp=int(row["moe_tp_size"] or 1),
        moe_ep=int(row["moe_ep_size"] or 1),
        gemm_quant=row["gemm_quant_mode"],
        moe_quant=row["moe_quant_mode"],
        pools={name: _count(text) for name, text in row.items() if name.startswith(("prefill_", "decode_"))},
        ttft_ms=float(row["silicon_ttft_ms"]),
        tpot_ms=float(row["silicon_tpot_ms"]),
    )


def _count(text: str) -> int | None:
    return int(float(text)) if text else None
