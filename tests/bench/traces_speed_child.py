"""Runs one tool on one file, in its own process and environment: `python traces_speed_child.py TOOL FILE`.

Prints as JSON the CPU seconds spent before the work began (interpreter and imports) and what the tool found.
"""

import json
import resource
import sys
from collections.abc import Callable
from pathlib import Path

Work = Callable[[str], object]


def shardwise_trace() -> Work:
    from traces.content import Limits, open_content
    from traces.reader import all_readers, find_reader

    all_readers()

    def work(path: str) -> object:
        content = open_content(Path(path), Limits())
        traces = find_reader(content).read(content, Limits())
        return {"rows": sum(map(len, traces))}

    return work


def shardwise_breakdown() -> Work:
    from traces.content import Limits, open_content
    from traces.naming import classify
    from traces.reader import all_readers, find_reader
    from traces.shares import device_cover, time_shares

    all_readers()

    def work(path: str) -> object:
        content = open_content(Path(path), Limits())
        (trace,) = find_reader(content).read(content, Limits())
        return time_shares(device_cover(trace, classify(trace))).model_dump()

    return work


def shardwise_summary() -> Work:
    from traces.reader import all_readers
    from traces.summary import read_summary

    all_readers()
    return lambda path: {"idle_ns": read_summary([Path(path)]).idle_ns}


def hta_breakdown() -> Work:
    from hta.trace_analysis import TraceAnalysis

    def work(path: str) -> object:
        analysis = TraceAnalysis(trace_files={0: path}, trace_dir=str(Path(path).parent))
        return analysis.get_temporal_breakdown(visualize=False).to_dict("records")

    return work


def isal_gunzip() -> Work:
    from isal import igzip

    def work(path: str) -> object:
        with igzip.open(path) as file:
            return {"bytes": len(file.read())}

    return work


def simdjson_parse() -> Work:
    import simdjson

    return lambda path: {"events": len(simdjson.Parser().load(path)["traceEvents"])}


def orjson_load() -> Work:
    import orjson

    return lambda path: {"events": len(orjson.loads(Path(path).read_bytes())["traceEvents"])}


def json_load() -> Work:
    return lambda path: {"events": len(json.loads(Path(path).read_bytes())["traceEvents"])}


def main(tool: str, path: str) -> None:
    """Import, tell what that cost, work."""
    work = globals()[tool]()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    found = work(path)
    print(json.dumps({"start_cpu_s": usage.ru_utime + usage.ru_stime, "found": found}, default=str))


if __name__ == "__main__":
    main(*sys.argv[1:])
