"""Measured serving points of a rows file (JSON lines): which engines ran, under which load, at which rate."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agents.evaluation.fields import Fields
from agents.evaluation.refusal import Refused
from agents.evaluation.rows import Unreadable, json_object


@dataclass(frozen=True, order=True)
class ServedLayout:
    """What makes two layouts of a fleet distinct, in the terms of a plan: tp is that of attention beside attention_dp
    ranks, replicas are independent engines."""

    tp: int = 1
    pp: int = 1
    ep: int = 1
    attention_dp: int = 1
    replicas: int = 1

    @property
    def engine(self) -> tuple[int, int, int, int]:
        """The layout of one engine."""
        return (self.tp, self.pp, self.ep, self.attention_dp)

    @property
    def devices(self) -> int:
        """Devices of the fleet."""
        return self.tp * self.pp * self.attention_dp * self.replicas

    @property
    def text(self) -> str:
        """The degrees above one."""
        degrees = [f"{name} {degree}" for name, degree in vars(self).items() if degree > 1]
        return " ".join(degrees).replace("_", " ") or "one device"


@dataclass(frozen=True)
class ServedRow:
    """One measured point. input_len, output_len, concurrency: None where the row states none."""

    id: str
    workload_id: str
    family: str
    model: str
    chip: str
    chips: int
    engine: str
    precision: str | None
    arch: Mapping[str, object]
    source: str
    layout: ServedLayout
    disaggregated: bool
    input_len: int | None
    output_len: int | None
    concurrency: int | None
    dataset: str
    scenario: str
    output_tokens_per_s_per_chip: float | None
    suspect: str | None


def read_served_rows(text: str, file: str) -> Iterator[ServedRow | Unreadable]:
    """Every line of a file of serving rows; rows of another phase are skipped."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        name = f"{file}:{number}"
        try:
            values = json_object(line)
            name = str(values.get("id") or name)
            row = Fields(values)
            if row.text("phase") == "serving":
                yield _row(row, name)
        except Refused as reason:
            yield Unreadable(name, file, str(reason))


def _row(row: Fields, name: str) -> ServedRow:
    hardware, load, adopted, measured = (row.part(part) for part in ("hardware", "load", "adopted", "measured"))
    chip, chips = hardware.text("chip"), hardware.whole("count")
    if chip is None or chips is None or chips < 1:
        raise Refused("chip or number of chips not stated")
    model = row.text("model") or ""
    arch = row.values.get("arch")
    return ServedRow(
        id=name,
        workload_id=row.text("workload_id") or name,
        family=row.text("family") or model,
        model=model,
        chip=chip,
        chips=chips,
        engine=row.text("engine") or "",
        precision=row.text("precision_class"),
        arch=arch if isinstance(arch, dict) else {},
        source=row.text("source") or "",
        layout=_layout(adopted),
        disaggregated=bool(adopted.switch("disaggregated")),
        input_len=load.whole("isl"),
        output_len=load.whole("osl"),
        concurrency=load.whole("concurrency"),
        dataset=load.text("dataset") or "",
        scenario=load.text("scenario") or "",
        output_tokens_per_s_per_chip=measured.positive("output_tokens_per_s_per_chip"),
        suspect=row.text("suspect"),
    )


def _layout(adopted: Fields) -> ServedLayout:
    """The layout in the terms of a plan.

    Engines that give every rank whole requests count those ranks as their tensor-parallel size (TensorRT-LLM, SGLang,
    vLLM on TPU), and dp is then replicas; without one, dp is those ranks themselves.
    """
    tp, pp, dp, ep = (adopted.whole(name) or 1 for name in ("tp", "pp", "dp", "ep"))
    if min(tp, pp, dp, ep) < 1:
        raise Refused("a degree below 1")
    if not adopted.switch("attention_dp"):
        return ServedLayout(tp=tp, pp=pp, ep=ep, replicas=dp)
    if tp == 1:
        return ServedLayout(pp=pp, ep=ep, attention_dp=dp)
    return ServedLayout(pp=pp, ep=ep, attention_dp=tp, replicas=dp)
