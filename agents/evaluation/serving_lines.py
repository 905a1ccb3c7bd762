"""Measured serving points as lines of JSON: published tables, benchmark submissions, recipes."""

import re
from collections.abc import Iterator, Mapping

from agents.evaluation.fields import Fields
from agents.evaluation.refusal import Refused
from agents.evaluation.rows import Unreadable, json_object, source_name
from agents.evaluation.serving_rows import Load, ServingMeasured, ServingRow, StatedEngine

SERVING = "serving"
# mean tokens of a prompt of benchmark sets, as their task descriptions state them (MLCommons; recalled, not re-read)
PROMPT_TOKENS = {
    "mlperf llama2-70b": 294.0,
    "mlperf llama3.1-405b": 9400.0,
    "mlperf llama3.1-8b": 778.0,
    "mlperf deepseek-r1": 800.0,
}
RANGE = re.compile(r"range ratio (0\.\d{1,3})")
PROMPTS = re.compile(r"^(\d{1,6}) prompts")
QUEUED, STATIC, OFFERED = (
    ("max throughput, all requests queued", "Offline"),
    ("static batch",),
    ("Server", "Interactive"),
)
ONE_REQUEST = "first token latency, batch 1"
KV_IN = re.compile(r"\bkv (fp8|int8|bf16|fp16)\b", re.IGNORECASE)


def read_serving_lines(text: str, file: str) -> Iterator[ServingRow | Unreadable]:
    """Every line of a file of serving rows; lines without content are skipped."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield _read(line, f"{file}:{number}", file)


def _read(line: str, name: str, file: str) -> ServingRow | Unreadable:
    try:
        values = json_object(line)
        name = str(values.get("id") or name)
        return _row(Fields(values), name, file)
    except Refused as reason:
        return Unreadable(name, file, str(reason))


def _row(row: Fields, name: str, file: str) -> ServingRow:
    hardware, load, adopted, measured = (row.part(key) for key in ("hardware", "load", "adopted", "measured"))
    chip, chips = hardware.text("chip"), hardware.whole("count")
    if chip is None or not chips or chips < 1:
        raise Refused("chip or number of chips not stated")
    printed = _measured(measured)
    kind, scenario, dataset = _load(load, row.text("note") or ""), load.text("scenario") or "", load.text("dataset")
    layout, replicas, assumed = _layout(adopted, row.part("arch").values)
    output_len = load.positive("osl")
    input_len = load.positive("isl")
    if output_len is None and printed.output_tokens_per_s_per_chip is not None and printed.request_per_s is not None:
        output_len = printed.output_tokens_per_s_per_chip * chips / printed.request_per_s
        assumed.append("tokens a response: output tokens over requests")
    if input_len is None and dataset is not None:
        input_len = next((tokens for set_, tokens in PROMPT_TOKENS.items() if dataset.lower().startswith(set_)), None)
        if input_len is not None:
            assumed.append("tokens a prompt: mean of the benchmark's set")
    quantisation = adopted.text("quantisation") or ""
    kv_in = KV_IN.search(quantisation)
    ranged = RANGE.search(dataset or "")
    prompts = PROMPTS.match(scenario)
    return ServingRow(
        id=name,
        file=file,
        source=source_name(row.text("source") or ""),
        family=row.text("family") or row.text("model") or "",
        model=row.text("model") or "",
        arch=row.part("arch").values or None,
        engine=row.text("engine") or "",
        release=row.text("release") or "",
        chip=chip.lower(),
        chips=chips,
        weights=quantisation or row.text("precision") or "",
        experts=None,
        kv=adopted.text("kv_cache_dtype") or (kv_in[1] if kv_in else None),
        load="closed" if scenario == ONE_REQUEST else kind,
        input_len=input_len,
        output_len=output_len,
        concurrency=1 if scenario == ONE_REQUEST else _concurrency(load, prompts),
        random_range=float(ranged[1]) if ranged else None,
        layout=layout,
        replicas=replicas,
        pools=None,
        max_num_seqs=_count(adopted, "max_num_seqs"),
        max_batched_tokens=_count(adopted, "max_num_batched_tokens"),
        dataset=dataset,
        in_process=kind in ("static", "queued") or scenario == ONE_REQUEST,
        measured=printed,
        assumed=tuple(assumed),
        ineligible=_ineligible(row, adopted),
    )


def _load(load: Fields, note: str) -> Load:
    scenario = load.text("scenario") or ""
    if scenario in OFFERED:
        return "offered"
    if scenario in STATIC or (scenario in QUEUED and load.whole("batch") is not None) or note.startswith("static"):
        return "static"
    if scenario in QUEUED or PROMPTS.match(scenario):
        return "queued"
    return "closed" if load.whole("concurrency") is not None else "unknown"


def _concurrency(load: Fields, prompts: re.Match[str] | None) -> int | None:
    return _count(load, "concurrency") or _count(load, "batch") or (int(prompts[1]) if prompts else None)


def _layout(adopted: Fields, arch: Mapping[str, object]) -> tuple[StatedEngine, int, list[str]]:
    """(one engine, replicas, what was taken for granted): with attention data parallelism on, tp counts its ranks."""
    tp, pp, ep = (_count(adopted, key) or 1 for key in ("tp", "pp", "ep"))
    replicas, assumed = _count(adopted, "dp") or 1, []
    experts = any(key in arch for key in ("num_experts", "num_local_experts", "n_routed_experts"))
    attention_dp = adopted.switch("attention_dp") or adopted.part("extra").switch("attention_dp") or False
    if experts and attention_dp and tp > 1:
        if ep == 1:
            assumed.append("experts over the ranks of attention data parallelism")
        return StatedEngine(1, pp, tp, tp, 1), replicas, assumed
    if ep > 1:
        if tp % ep:
            raise Refused(f"ep {ep} does not divide the {tp} devices of an engine")
        return StatedEngine(tp, pp, 1, ep, tp // ep), replicas, assumed
    return StatedEngine(tp, pp, 1, 1, tp if experts else 1), replicas, assumed


def _measured(measured: Fields) -> ServingMeasured:
    def seconds(*names: str) -> tuple[float | None, bool]:
        for name in names:
            value = measured.positive(name)
            if value is not None:
                return value / 1e3, name.endswith("p50")
        return None, False

    ttft_s, ttft_median = seconds("ttft_ms_mean", "ttft_ms_p50")
    tpot_s, tpot_median = seconds("tpot_ms_mean", "tpot_ms_p50")
    return ServingMeasured(
        ttft_s=ttft_s,
        ttft_is="median" if ttft_median else "mean",
        tpot_s=tpot_s,
        tpot_is="median" if tpot_median else "mean",
        output_tokens_per_s_per_chip=measured.positive("output_tokens_per_s_per_chip"),
        request_per_s=measured.positive("request_per_s"),
    )


def _ineligible(row: Fields, adopted: Fields) -> str | None:
    if row.switch("arch_complete") is False:
        return "the file marks its architecture as incomplete"
    if row.switch("hardware_known") is False:
        return "the file marks its chip as unknown"
    if adopted.switch("disaggregated"):
        return "disaggregated, and the layout of the other pool is not printed"
    return None


def _count(fields: Fields, name: str) -> int | None:
    value = fields.whole(name)
    if value is not None and value < 1:
        raise Refused(f"{name} is {value}, not a positive number")
    return value
