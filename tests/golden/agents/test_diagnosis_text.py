"""The diagnosis of each bundled trace as a reader sees it. After a wanted change, run this file to write it anew."""

from pathlib import Path

import pytest

from agents.planning.analyzer import diagnose
from traces.summary import read_summary

HERE = Path(__file__).parent
TRACES = HERE.parents[1] / "data" / "traces"
NAMES = ("b200_vllm_eager", "a100_ddp_resnet")


def text_of(name: str) -> str:
    diagnosis = diagnose(read_summary([TRACES / f"{name}.json.gz"]))
    lines = [
        f"bottleneck {diagnosis.bottleneck}, cause {diagnosis.cause}, hypothesis {diagnosis.hypothesis}",
        f"margin {diagnosis.margin:.3f}, ambiguous {diagnosis.ambiguous}",
        "",
        diagnosis.summary,
        "",
        *(f"{entry.id} [{entry.source}] {entry.claim} <- {entry.ref}" for entry in diagnosis.evidence),
        "",
        *(f"limit: {limit}" for limit in diagnosis.limits),
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", NAMES)
def test_diagnosis_text(name):
    assert text_of(name) == (HERE / f"{name}.txt").read_text(encoding="utf-8")


if __name__ == "__main__":
    for trace_name in NAMES:
        (HERE / f"{trace_name}.txt").write_text(text_of(trace_name), encoding="utf-8")
