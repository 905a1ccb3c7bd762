"""Small files of every format a reader takes, made with the builders of the tests: where hypothesis and fuzzer start.

Each gives whole, readable files and a few that are odd in a way profilers are.
"""

from collections.abc import Callable
from functools import cache
from typing import Final

from tests.fuzz.binary_seeds import archive_seeds, chakra_seeds, gzip_seeds, nsys_seeds, xplane_seeds
from tests.fuzz.text_seeds import (
    chakra_json_seeds,
    execution_trace_seeds,
    jax_chrome_seeds,
    kineto_seeds,
    rules_seeds,
    summary_seeds,
)
from tests.unit.jobs.job_examples import rank_document

Seeds = Callable[[], tuple[bytes, ...]]


def job_seeds() -> tuple[bytes, ...]:
    """One file each of every kind a caller may send."""
    return (
        rank_document(1, world=2),
        kineto_seeds()[0],
        gzip_seeds()[0],
        jax_chrome_seeds()[0],
        xplane_seeds()[0],
        chakra_seeds()[0],
        chakra_json_seeds()[0],
        execution_trace_seeds()[0],
        archive_seeds()[0],
        summary_seeds()[0],
        nsys_seeds()[0],
    )


SEEDS: Final[dict[str, Seeds]] = {
    "kineto": cache(kineto_seeds),
    "jax_chrome": cache(jax_chrome_seeds),
    "xplane": cache(xplane_seeds),
    "nsys": cache(nsys_seeds),
    "chakra": cache(chakra_seeds),
    "chakra_json": cache(chakra_json_seeds),
    "execution_trace": cache(execution_trace_seeds),
    "archive": cache(archive_seeds),
    "gzip": cache(gzip_seeds),
    "summary": cache(summary_seeds),
    "rules": cache(rules_seeds),
    "job": cache(job_seeds),
}
"""Makers of seeds by the target they are for; each makes them once."""
