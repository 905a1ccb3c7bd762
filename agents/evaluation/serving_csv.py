"""The CSV of in-flight serving points that aiconfigurator ships, mostly a dump of the public InferenceX database.

What the file does not say of itself and its rows show is settled here, once for all rows, and marked as assumed:

- The harness states tp and ep of an engine of tp devices, and whether attention is data-parallel over them; the dump
  multiplies them: a row of "tp 64, moe_tp 8, moe_ep 8" is an engine of 8 (the same points appear as "tp 8, moe_tp 1,
  moe_ep 8"), and so is "tp 8, attention dp 8, moe_ep 64".
- DeepSeek-R1 and V3 are one architecture, and runs of the harness without multi-token prediction are repeated under the
  name V3. Rows of R1 from the harness that have no such twin ran with it.
"""

import csv
import re
from collections.abc import Iterator, Mapping

from agents.evaluation.refusal import Refused
from agents.evaluation.rows import Unreadable
from agents.evaluation.serving_launches import Launch, Launched, launch_of
from agents.evaluation.serving_rows import ServingMeasured, ServingRow, StatedEngine, StatedPools

HEADER = ("id", "silicon_data_source", "backend", "model_path")
CONCURRENCY = re.compile(r"silicon_concurrency=(\d{1,7})")
IMAGE = re.compile(r"[:#/]v?(\d+\.\d+[\w.]*)(?:-cu\d+)?(?:-\w+)?$")
# rows of the harness, by where the file has them from
HARNESS = re.compile(r"^(?:db-dump/|source_file=20\d\d-)")
# its lengths are drawn between 80 % and all of the nominal ones (random range ratio 0.8)
RANDOM_RANGE = 0.8
ONE_ARCHITECTURE = {"deepseek-r1": "deepseek-v3", "deepseek-v3.1": "deepseek-v3"}
MOST_FAST_DEVICES = 16
AFFIXES = ("meta-", "-instruct", "-fp8", "-nvfp4")

# checkpoints whose routed experts alone are quantised, everything else in 16 bit (their config.json, `modules_to_not_
# convert` and `ignore`), whatever the dump writes of their other products
EXPERTS_ALONE = {"gpt-oss-120b": ("nvfp4",), "kimi-k2.5": ("int4_wo",)}

Line = Mapping[str, str]
Point = tuple[str, ...]


def is_serving_csv(header: str) -> bool:
    """Whether a file's first line is this CSV's."""
    return set(HEADER) <= set(header.strip().split(","))


def read_serving_csv(text: str, file: str) -> Iterator[ServingRow | Unreadable]:
    """Every line, in order; a point that was printed before under another id says of which row it is a repetition."""
    lines = list(csv.DictReader(text.splitlines()))
    plain = {_point(line) for line in lines if _model(line) == "deepseek-v3"}
    first: dict[Point, str] = {}
    for number, line in enumerate(lines, start=2):
        name = line.get("id") or f"{file}:{number}"
        try:
            repeats = first.setdefault(_point(line), name)
            yield _row(line, name, file, None if repeats == name else repeats, plain)
        except (Refused, ValueError, TypeError, KeyError) as reason:
            yield Unreadable(name, file, f"the line cannot be read: {reason}")


def _row(line: Line, name: str, file: str, repeats: str | None, plain: set[Point]) -> ServingRow:
    model, chip, source = _model(line), line["system"].replace("_", "-"), line["silicon_data_source"]
    from_harness = HARNESS.match(source) is not None
    assumed = ["TTFT and TPOT are means"]
    if from_harness:
        assumed.append("lengths between 80 % and all of the nominal ones")
    speculation = None
    if model == "deepseek-r1" and from_harness and _point(line) not in plain:
        speculation = "mtp"
        assumed.append("multi-token prediction: no twin without it under the name DeepSeek-V3")
    weights = line["gemm_quant_mode"]
    if weights in EXPERTS_ALONE.get(model, ()):
        weights = "bfloat16"
        assumed.append("the checkpoint quantises its experts alone")
    disaggregated = line["mode"] == "disagg"
    release = line["backend_version"] or _image_release(source)
    if disaggregated and line["backend"] == "trtllm":
        release = ""
        assumed.append("release of the engine: the dump writes that of Dynamo around it")
    layout, engines, ineligible = StatedEngine(1), 1, None
    if not disaggregated:
        layout, remark = _engine(line, "", from_harness)
        assumed += [remark] if remark else []
        engines = _engines(line, layout)
        if engines > 1:
            assumed.append("several engines share the requests: their number in flight over the batch of one")
        if layout.tp > MOST_FAST_DEVICES and layout.ep == 1:
            ineligible = "tp counts the chips of several engines"
    counted = bool(disaggregated and line["prefill_num_workers"] and line["decode_num_workers"])
    pools = _pools(line, from_harness and counted) if disaggregated else None
    if disaggregated and not counted:
        # rows that appear twice show the same line for 1 and for 9 decode engines, with and without attention_dp
        ineligible = "how many engines share the requests, and how each is laid out, is not stated"
    concurrency, launch = _concurrency(line, layout, pools), Launch()
    if from_harness and pools is None and concurrency is not None:
        launch = launch_of(
            Launched(
                engine=line["backend"],
                chip=chip,
                model=model,
                experts=line["moe_quant_mode"],
                tp=layout.tp * layout.attention_dp,
                concurrency=concurrency,
                input_len=int(line["isl"]),
                output_len=int(line["osl"]),
            )
        )
        assumed.append("launched as the harness's scripts of that engine, chip and model say")
    return ServingRow(
        id=name,
        file=file,
        source="InferenceX" if from_harness else "aiconfigurator",
        family=ONE_ARCHITECTURE.get(model, model),
        model=model,
        arch=None,
        engine=line["backend"],
        release=release,
        chip=chip,
        chips=engines * _chips(pools, layout),
        weights=weights,
        experts=line["moe_quant_mode"],
        kv=launch.kv,
        load="closed",
        input_len=float(line["isl"]),
        output_len=float(line["osl"]),
        concurrency=concurrency,
        random_range=RANDOM_RANGE if from_harness else None,
        layout=layout,
        replicas=engines,
        pools=pools,
        max_num_seqs=None,
        max_batched_tokens=launch.step_tokens,
        dataset="random",
        in_process=False,
        measured=ServingMeasured(
            ttft_s=float(line["silicon_ttft_ms"]) / 1e3,
            ttft_is="not stated",
            tpot_s=float(line["silicon_tpot_ms"]) / 1e3,
            tpot_is="not stated",
        ),
        assumed=tuple(assumed),
        repeats=repeats,
        speculation=speculation,
        hbm_frac=launch.hbm_frac,
        free_frac=launch.free_frac,
        wait_steps=launch.wait_steps,
        ineligible=ineligible,
    )


def _model(line: Line) -> str:
    name = line["model_path"].split("/")[-1].lower()
    for affix in AFFIXES:
        name = name.replace(affix, "")
    return name


def _point(line: Line) -> Point:
    keys = ("backend", "system", "mode", "isl", "osl", "silicon_ttft_ms", "silicon_tpot_ms")
    return (ONE_ARCHITECTURE.get(_model(line), _model(line)), *(line[key] for key in keys))


def _engine(line: Line, pool: str, from_harness: bool) -> tuple[StatedEngine, str]:
    """(layout of one engine, what was taken for granted). pool: prefix of the columns."""
    sizes = ("tp_size", "pp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")
    tp, pp, attention_dp, etp, ep = (int(line[pool + key] or 1) for key in sizes)
    devices = _devices_counted_twice(tp, attention_dp, etp, ep) if from_harness and not pool else None
    if devices is not None:
        remark = "tp, attention dp and experts count the same devices twice"
        of_each = min(ep, devices)
        if devices % of_each:
            raise Refused(f"ep {ep} does not divide the {devices} devices of an engine")
        own = (1, devices) if attention_dp > 1 else (devices, 1)
        return StatedEngine(own[0], pp, own[1], of_each, devices // of_each), remark
    if not line[pool + "attention_dp_size"] and etp * ep > tp and (etp * ep) % tp == 0:
        remark = "attention data parallelism over the devices that hold experts"
        return StatedEngine(tp, pp, etp * ep // tp, ep, etp), remark
    return StatedEngine(tp, pp, attention_dp, ep, etp), ""


def _devices_counted_twice(tp: int, attention_dp: int, etp: int, ep: int) -> int | None:
    """Devices of an engine whose degrees the dump multiplied once too often; None where they are as they should be.

    The harness states tp (devices), ep (at most as many) and whether attention is data-parallel over them.
    """
    if tp * attention_dp != etp * ep:
        return None
    if tp > 1 and tp == attention_dp:
        return tp
    if ep > 1 and etp > 1 and (tp == 1 or attention_dp == 1):
        return etp
    return None


def _pools(line: Line, from_harness: bool) -> StatedPools:
    return StatedPools(
        prefill=_engine(line, "prefill_", from_harness)[0],
        prefill_engines=int(line["prefill_num_workers"] or 1),
        decode=_engine(line, "decode_", from_harness)[0],
        decode_engines=int(line["decode_num_workers"] or 1),
    )


def _chips(pools: StatedPools | None, layout: StatedEngine) -> int:
    def devices(one: StatedEngine) -> int:
        return one.tp * one.pp * one.attention_dp

    if pools is None:
        return devices(layout)
    return pools.prefill_engines * devices(pools.prefill) + pools.decode_engines * devices(pools.decode)


def _concurrency(line: Line, layout: StatedEngine, pools: StatedPools | None) -> int | None:
    stated = CONCURRENCY.search(line["silicon_data_source"])
    if stated is not None:
        return int(stated[1])
    if pools is not None:
        each = int(line["decode_batch_size"] or 0) * pools.decode.attention_dp * pools.decode_engines
        return each or None
    return int(line["batch_size"]) * layout.attention_dp


def _engines(line: Line, layout: StatedEngine) -> int:
    """Engines of an aggregated row: requests in flight over those of one engine, where that is a whole number."""
    requests, batch = _concurrency(line, layout, None), int(line["batch_size"]) * layout.attention_dp
    return requests // batch if requests is not None and requests % batch == 0 else 1


def _image_release(source: str) -> str:
    """The version of a container image the source ends with; empty where it names none."""
    found = IMAGE.search(source.strip())
    return found[1] if found else ""
