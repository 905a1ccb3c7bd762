"""Rows of measured runs as they stand in a file: what was configured and what was measured, typed, nothing derived."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agents.evaluation.fields import Fields
from agents.evaluation.refusal import Refused
from agents.evaluation.rollouts import StatedRollout, rollout_of

DEGREES = ("tp", "pp", "cp", "ep")
Degrees = tuple[int, int, int, int]
# "4 slice(s) of 256 chips" and "4 x v6e-256" are four slices, "4x8x8" is the shape of one
SLICES = re.compile(r"^\s*(\d{1,5}) (?:x |slice)", re.IGNORECASE)
SHAPE = re.compile(r"\d{1,5}(?:x\d{1,5}){1,2}")
# a plain decimal number in words
NUMBER = re.compile(r"-?\d{1,6}(?:\.\d{1,6})?")
# switches with which a row says that the optimizer lives in host memory
OFFLOADS = ("cpu_offload_optimizer", "offload_optimizer")
# frameworks whose log prints memory in units of 2^30 bytes
BINARY_COUNTERS = ("torchtitan", "torchtune")
# "LoRA rank 16 on attention": adapters as a remark tells them
ADAPTER = re.compile(r"\blora rank (\d{1,5})(?: on (attention|all linear)\b)?", re.IGNORECASE)
# words of a JAX mesh axis and the degree they mean; data and fsdp make up the rest
MESH_WORDS = {"tensor": "tp", "pipeline": "pp", "context": "cp", "sequence": "cp", "expert": "ep"}


@dataclass(frozen=True)
class StatedPlan:
    """The layout a row prints; None: not stated. fsdp 0 is plain data parallelism. slices: of the mesh's DCN axes."""

    fsdp: int | None
    zero_stage: int | None
    tp: int | None
    pp: int | None
    vp: int | None
    cp: int | None
    ep: int | None
    etp: int | None
    sp: bool | None
    recompute: str | None
    schedule: str | None
    slices: int
    overlap_tp: bool | None
    dispatcher: str | None
    capacity_factor: float | None
    method: str | None
    offloads_optimizer: bool
    notes: str
    optimizer_shard: int | None = None
    offloads_inputs: bool | None = False
    adapter_rank: int | None = None
    adapter_scope: str | None = None
    router: str | None = None

    @property
    def degrees(self) -> Degrees:
        """(tp, pp, cp, ep), what is not stated being 1: how published layouts are compared."""
        return (self.tp or 1, self.pp or 1, self.cp or 1, self.ep or 1)


@dataclass(frozen=True)
class Measured:
    """What the source prints, in base SI; None: not printed. `derived_*` was computed from other printed figures."""

    step_time_s: float | None
    tokens_per_s_per_chip: float | None
    derived_step_time_s: float | None
    derived_tokens_per_s_per_chip: float | None
    mfu_frac: float | None
    flop_per_s_per_chip: float | None
    memory_bytes: float | None
    out_of_memory: bool


@dataclass(frozen=True)
class MeasuredRow:
    """One measured run. arch: the model in the terms of its config.json. configuration: equal where nothing differs."""

    id: str
    file: str
    workload_id: str
    group: str
    family: str
    model: str
    phase: str
    source: str
    framework: str
    release: str | None
    superseded: bool
    suspect: str | None
    ineligible: str | None
    arch: Mapping[str, object]
    chip: str
    chips: int
    slices: int
    slice_shape: tuple[int, ...] | None
    precision: str | None
    seq_len: int | None
    global_batch: int | None
    micro_batch: float | None
    plan: StatedPlan
    measured: Measured
    flop_convention: str | None
    configuration: str
    document: str = ""
    precision_printed: str | None = None
    rollout: StatedRollout | None = None


@dataclass(frozen=True)
class Unreadable:
    """A line that is no row, and why."""

    id: str
    file: str
    reason: str


def read_rows(text: str, file: str) -> Iterator[MeasuredRow | Unreadable]:
    """Every line of a file of rows; lines without content are skipped."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield _read(line, file, number)


def json_object(line: str) -> dict[str, object]:
    """One line as a JSON object. Refused for anything else, NaN and infinities included."""
    try:
        value = json.loads(line, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Refused("the line is not JSON") from error
    if not isinstance(value, dict):
        raise Refused("the line is not a JSON object")
    return value


def source_name(source: str) -> str:
    """The document of a source without revision, line and remarks: what rows of one publication share."""
    return source.split("@")[0].split(" ")[0].rstrip(",;:") or "not stated"


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


def _read(line: str, file: str, number: int) -> MeasuredRow | Unreadable:
    name = f"{file}:{number}"
    try:
        values = json_object(line)
        name = str(values.get("id") or name)
        return _row(Fields(values), name, file)
    except Refused as reason:
        return Unreadable(name, file, str(reason))


def _row(row: Fields, name: str, file: str) -> MeasuredRow:
    hardware, measured, derived = row.part("hardware"), row.part("measured"), row.part("derived")
    chip, chips = hardware.text("chip"), hardware.whole("count")
    if chip is None or not chips or chips < 1:
        raise Refused("chip or number of chips not stated")
    family, model = row.text("family") or row.text("model") or "", row.text("model") or ""
    printed = measured.positive("tflops_per_chip")
    memory_gb = measured.positive("mem_gb_per_chip")
    return MeasuredRow(
        id=name,
        file=file,
        workload_id=row.text("workload_id") or name,
        group=f"{family}|{chip.lower()}",
        family=family,
        model=model,
        phase=row.text("phase") or "pretrain",
        source=source_name(row.text("source") or ""),
        framework=row.text("framework") or "",
        release=row.text("release"),
        superseded=bool(row.switch("superseded")),
        suspect=row.text("suspect"),
        ineligible=_ineligible(row),
        arch=row.part("arch").values,
        chip=chip,
        chips=chips,
        slices=_stated_slices(hardware.text("topology")),
        slice_shape=_slice_shape(hardware.text("topology")),
        precision=row.text("precision_class"),
        seq_len=_count(row, "seq_len"),
        global_batch=_count(row, "global_batch"),
        micro_batch=row.positive("micro_batch"),
        plan=_plan(row.part("adopted"), row.text("note") or ""),
        measured=Measured(
            step_time_s=measured.positive("step_time_s"),
            tokens_per_s_per_chip=measured.positive("tokens_per_s_per_chip"),
            derived_step_time_s=derived.positive("step_time_s"),
            derived_tokens_per_s_per_chip=derived.positive("tokens_per_s_per_chip"),
            mfu_frac=measured.positive("mfu"),
            flop_per_s_per_chip=None if printed is None else printed * 1e12,
            memory_bytes=None if memory_gb is None else memory_gb * _memory_unit(row.text("framework")),
            out_of_memory=bool(derived.switch("oom")),
        ),
        flop_convention=row.text("flops_convention"),
        configuration=_configuration(row),
        document=row.text("source") or "",
        precision_printed=row.text("precision"),
        rollout=rollout_of(row.part("adopted").part("extra")) if row.text("phase") == "rl" else None,
    )


def _memory_unit(framework: str | None) -> float:
    binary = any(name in (framework or "").lower() for name in BINARY_COUNTERS)
    return 2.0**30 if binary else 1e9


def _ineligible(row: Fields) -> str | None:
    """Why the row's own annotations keep it out of error figures, suspicion apart."""
    if row.switch("arch_complete") is False:
        return "the file marks its architecture as incomplete"
    if row.switch("hardware_known") is False:
        return "the file marks its chip as unknown"
    return None


def _plan(adopted: Fields, note: str) -> StatedPlan:
    mesh, extra = adopted.part("mesh"), adopted.part("extra")
    adapter = ADAPTER.search(note)
    stated = {name: _count(adopted, name) for name in (*DEGREES, "vp", "etp")}
    meshed = _degrees_of_mesh(mesh)
    overlap = extra.switch("tp_comm_overlap") if "tp_comm_overlap" in extra.values else extra.switch("async_tp")
    return StatedPlan(
        fsdp=adopted.whole("fsdp"),
        zero_stage=adopted.whole("zero_stage"),
        **{name: meshed.get(name) if value is None else value for name, value in stated.items()},
        sp=adopted.switch("sp"),
        recompute=adopted.text("recompute"),
        schedule=adopted.text("schedule"),
        slices=_slices(mesh),
        overlap_tp=overlap,
        dispatcher=extra.text("dispatcher"),
        capacity_factor=_capacity_factor(extra),
        method=extra.text("method"),
        offloads_optimizer=any(bool(extra.switch(name)) for name in OFFLOADS),
        notes=extra.text("notes") or "",
        optimizer_shard=_count(adopted, "zero1_group"),
        router=extra.text("router"),
        offloads_inputs=_offloads_inputs(adopted.text("recompute"), extra.text("decoder_layer_input")),
        adapter_rank=_count(extra, "lora_rank") or (int(adapter[1]) if adapter else None),
        adapter_scope=extra.text("lora_scope") or (adapter[2] if adapter else None),
    )


def _capacity_factor(extra: Fields) -> float | None:
    """Rows an expert is padded to over its even share; MaxText prints it as text, and -1 where nothing is dropped."""
    text = extra.values.get("capacity_factor")
    numbers = Fields({"capacity_factor": float(text)}) if isinstance(text, str) and NUMBER.fullmatch(text) else extra
    return numbers.number("capacity_factor")


def _offloads_inputs(policy: str | None, place: str | None) -> bool | None:
    """Whether layer inputs wait in host memory; None: a policy of the user's own that does not say."""
    if place is not None:
        return place.lower() == "offload"
    policy = (policy or "").lower()
    if "decoder_layer_input" in policy:
        return "offload" in policy
    return None if policy == "custom" else False


def _degrees_of_mesh(mesh: Fields) -> dict[str, int]:
    """Degrees that the axes of a mesh spell out, over chips of a slice and slices; -1 (the rest) says nothing."""
    found: dict[str, int] = {}
    for axis in mesh.values:
        size = _axis_size(mesh, axis)
        degree = next((degree for word, degree in MESH_WORDS.items() if word in axis), None)
        if degree is not None and size > 0:
            found[degree] = found.get(degree, 1) * size
    return found


def _slices(mesh: Fields) -> int:
    slices = 1
    for axis in mesh.values:
        if axis.startswith("dcn"):
            slices *= max(1, _axis_size(mesh, axis))
    return slices


def _stated_slices(topology: str | None) -> int:
    """Slices a topology counts; one where it counts none."""
    found = SLICES.search(topology or "")
    return max(1, int(found[1])) if found else 1


def _slice_shape(topology: str | None) -> tuple[int, ...] | None:
    """The torus shape of one slice; None where the text is no shape."""
    if topology is None or not SHAPE.fullmatch(topology.strip()):
        return None
    return tuple(int(size) for size in topology.strip().split("x"))


def _axis_size(mesh: Fields, axis: str) -> int:
    """Sizes are numbers, or numbers that a script wrote as text."""
    value = mesh.values[axis]
    if isinstance(value, str) and value.lstrip("-").isascii() and value.lstrip("-").isdecimal() and len(value) < 8:
        return int(value)
    return mesh.whole(axis) or 1


def _count(row: Fields, name: str) -> int | None:
    value = row.whole(name)
    if value is not None and value < 1:
        raise Refused(f"{name} is {value}, not a positive number")
    return value


def _configuration(row: Fields) -> str:
    """Everything a row configures, as one text: rows of one workload that share it are repetitions, not choices."""
    named = ("framework", "precision", "seq_len", "global_batch", "micro_batch", "adopted")
    return json.dumps({name: row.values.get(name) for name in named}, sort_keys=True, default=str)
