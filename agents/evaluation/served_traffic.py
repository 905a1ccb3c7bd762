"""Requests of the MLPerf inference benchmarks, whose rows name a data set and a scenario in place of sizes and budgets.

Mean lengths and 99th-percentile budgets as MLCommons states them when it introduces a benchmark; a budget is held
against means, which no plan that keeps the percentile can pass. Neither is a measurement of a system. What has no
source here was recalled and not re-read.
"""

from dataclasses import dataclass

from projector.specs.objective import Slo


@dataclass(frozen=True)
class Traffic:
    """Mean tokens of a request of one data set, and the budgets of its scenarios."""

    dataset: str
    input_len: int
    output_len: int
    budgets: tuple[tuple[str, Slo], ...]
    source: str

    def slo(self, scenario: str) -> Slo:
        """The budgets of a scenario; none where requests are all there at the start."""
        return next((slo for name, slo in self.budgets if name == scenario.strip().lower()), Slo())


def _budget(ttft_ms: float, tpot_ms: float) -> Slo:
    return Slo(ttft_ms=ttft_ms, tpot_ms=tpot_ms)


TRAFFICS: tuple[Traffic, ...] = (
    Traffic(
        "llama2-70b",
        294,
        294,
        (("server", _budget(2000, 200)), ("interactive", _budget(450, 40))),
        "OpenOrca, 294 generated tokens a sample by the benchmark's accuracy target; prompt length recalled; "
        "https://mlcommons.org/2025/04/llm-inference-v5",
    ),
    Traffic(
        "mixtral-8x7b",
        290,
        145,
        (("server", _budget(2000, 200)),),
        "OpenOrca, GSM8K and MBXP, 145 generated tokens a sample by the benchmark's accuracy target; prompt recalled",
    ),
    Traffic(
        "llama3.1-405b",
        9400,
        680,
        (("server", _budget(6000, 175)), ("interactive", _budget(4500, 80))),
        "https://mlcommons.org/2025/04/llm-inference-v5; interactive budgets recalled",
    ),
    Traffic(
        "llama3.1-8b",
        778,
        73,
        (("server", _budget(2000, 100)), ("interactive", _budget(500, 30))),
        "CNN-DailyMail, https://mlcommons.org/2025/09/small-llm-inference-5-1",
    ),
    Traffic(
        "deepseek-r1",
        800,
        3880,
        (("server", _budget(2000, 80)),),
        "https://mlcommons.org/2025/09/deepseek-inference-5-1/",
    ),
)


def traffic_of(dataset: str) -> Traffic | None:
    """The traffic of "MLPerf <benchmark>", also with an accuracy level behind it ("-99"); None for any other name."""
    words = dataset.lower().split()
    if len(words) != 2 or words[0] != "mlperf":
        return None
    return next((one for one in TRAFFICS if words[1] in (one.dataset, *(f"{one.dataset}-{p}" for p in AIMS))), None)


# the share of the reference's accuracy a system has to reach, part of a benchmark's name
AIMS = ("99", "99.9")
