"""The sweeps of vTrain (VIA-Research, `data/`): GPT models on A100 80 GB, Megatron-LM with full recompute, fp16.

The columns state sizes, degrees, batch and the iteration time; the stack, the chip and 51,200 vocabulary entries are
those of the publication.
"""

import csv
import io
import itertools
from collections.abc import Iterator, Mapping

from agents.evaluation.fields import LARGEST, SMALLEST
from agents.evaluation.refusal import Refused
from agents.evaluation.rows import Measured, MeasuredRow, StatedPlan, Unreadable

CHIP, VOCABULARY, SOURCE = "a100-80-sxm", 51_200, "vTrain"
SIZES = ("# layers", "hidden size", "attention heads", "sequence length")
DEGREES = ("tensor parallelism", "data parallelism", "pipeline parallelism")
TIME = "iteration time (ms)"
COLUMNS = frozenset({*SIZES, *DEGREES, "# GPUs", "global batch", "micro batch", TIME})


def is_vtrain(head: str) -> bool:
    """Whether the first line of a file names the columns of a vTrain sweep."""
    try:
        return frozenset(next(csv.reader([head]), [])) >= COLUMNS
    except csv.Error:  # a field beyond the reader's limit: a long line of another format
        return False


def read_vtrain(text: str, file: str) -> Iterator[MeasuredRow | Unreadable]:
    """Every row of one sweep; rows are named by their place in the file, from 0.

    After a row that is no CSV nothing can be told apart any more: it is the last one, unreadable.
    """
    lines = csv.DictReader(io.StringIO(text))
    for number in itertools.count():
        name = f"{file}:{number}"
        try:
            yield _row(next(lines), name, file)
        except StopIteration:
            return
        except csv.Error as error:
            yield Unreadable(name, file, f"neither this row nor what follows is CSV: {error}")
            return
        except Refused as reason:
            yield Unreadable(name, file, str(reason))


def _row(row: Mapping[str, str], name: str, file: str) -> MeasuredRow:
    layers, hidden, heads, seq_len = (_count(row, column) for column in SIZES)
    tp, dp, pp = (_count(row, column) for column in DEGREES)
    gpus, batch, micro = (_count(row, column) for column in ("# GPUs", "global batch", "micro batch"))
    if tp * dp * pp != gpus:
        raise Refused(f"tp * dp * pp = {tp * dp * pp}, the row has {gpus} GPUs")
    model = f"gpt-{hidden}x{layers}"
    return MeasuredRow(
        id=name,
        file=file,
        workload_id=f"{model} s{seq_len} b{batch} on {gpus}",
        group=f"{model}|{CHIP}",
        family=model,
        model=model,
        phase="pretrain",
        source=SOURCE if "_node" not in file else f"{SOURCE} {'multi' if 'multi' in file else 'single'}-node",
        framework="Megatron-LM of 2022",
        release=None,
        superseded=False,
        suspect=None,
        ineligible=None,
        arch={
            "model_type": "gpt2",
            "n_layer": layers,
            "n_embd": hidden,
            "n_head": heads,
            "n_positions": seq_len,
            "vocab_size": VOCABULARY,
        },
        chip=CHIP,
        chips=gpus,
        slices=1,
        slice_shape=None,
        precision="fp16",
        seq_len=seq_len,
        global_batch=batch,
        micro_batch=float(micro),
        plan=_plan(tp, pp),
        measured=Measured(_time_s(row), None, None, None, None, None, None, out_of_memory=False),
        flop_convention=None,
        configuration=f"tp {tp} dp {dp} pp {pp} micro {micro}",
    )


def _plan(tp: int, pp: int) -> StatedPlan:
    return StatedPlan(
        fsdp=None,
        zero_stage=0,
        tp=tp,
        pp=pp,
        vp=1,
        cp=1,
        ep=1,
        etp=1,
        sp=False,
        recompute="full",
        schedule=None,
        slices=1,
        overlap_tp=False,
        dispatcher=None,
        capacity_factor=None,
        method=None,
        offloads_optimizer=False,
        notes="",
    )


def _count(row: Mapping[str, str], column: str) -> int:
    value = _number(row, column)
    if not value.is_integer() or value < 1:
        raise Refused(f"{column} is {value:g}, not a count")
    return int(value)


def _time_s(row: Mapping[str, str]) -> float:
    value = _number(row, TIME)
    if value < SMALLEST:
        raise Refused(f"{TIME} is {value:g}")
    return value / 1e3


def _number(row: Mapping[str, str], column: str) -> float:
    try:
        value = float(row[column])
    except (TypeError, ValueError) as error:
        raise Refused(f"{column} is not a number") from error
    if not abs(value) <= LARGEST:
        raise Refused(f"{column} is {value:g}")
    return value
