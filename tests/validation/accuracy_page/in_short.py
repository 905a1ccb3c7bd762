"""The page in a few lines, each made from the figures."""

from collections.abc import Iterator

from .figures import Figures, Peers
from .tables import percent

# names of folds as a part of a sentence
FITTED = {
    "own (family, chip) group left out": "fitted together without the row's own (family, chip) group",
    "own source left out": "fitted together without the row's own source",
}
# sources with fewer pairs are in the table
MANY_PAIRS = 90


def in_short(figures: Figures) -> Iterator[str]:
    """A line on each section."""
    first = figures.files[0]
    every, newest = first.all_rows, first.newest
    yield (
        f"Step time of {every.n} published pre-training runs: median error {percent(every.median_error)}, mean "
        f"{percent(every.mape)}; of the {newest.n} that no newer release supersedes {percent(newest.median_error)} and "
        f"{percent(newest.mape)}; {percent(every.coverage_80)} lie inside the 80 % intervals."
    )
    for fold in figures.folds[1:]:
        median, mean = percent(fold.errors.median_error), percent(fold.errors.mape)
        yield f"All constants {FITTED.get(fold.name, fold.name)}: median error {median}, mean {mean}."
    for sweep in figures.sweeps:
        if sweep.pairs >= MANY_PAIRS:
            yield (
                f"Sweeps of {sweep.value}: the configuration projected fastest was measured "
                f"{percent(sweep.top1_regret)} slower than the best in the mean of {sweep.groups}, "
                f"{percent(sweep.order_accuracy)} of {sweep.pairs:,} pairs are in the right order."
            )
    memory = next((one for one in figures.memory if one.value == "all" and one.n), None)
    if memory is not None:
        yield (
            f"Memory of {memory.n} runs that print it: median error {percent(memory.median_error)}; "
            f"{memory.ran_called_too_large} of {memory.ran} runs that ran are said not to fit, "
            f"{memory.out_of_memory_flagged} of {memory.out_of_memory} that failed are found."
        )
    for hits in figures.hits:
        if hits.framework == "named" and hits.stratum == "nontrivial":
            yield (
                f"Layouts of {hits.n} workloads that have a choice, framework named: published one first "
                f"{percent(hits.top1.rate)}, among three {percent(hits.top3.rate)}; the same model's layouts on other "
                f"chips reach {percent(hits.baseline_same_model_top3.rate)}."
            )
    if figures.peers is not None and figures.peers.as_they_are:
        yield _beside(figures.peers)


def _beside(peers: Peers) -> str:
    every = peers.as_they_are[0]
    errors = "; ".join(f"{one.tool} {percent(one.mape)}, median {percent(one.median)}" for one in every.tools)
    return f"Mean error on the {every.n:,} rows that all projectors model as they are: {errors}."
