"""Fusing rankings by reciprocal rank (Cormack, Clarke and Buettcher, SIGIR 2009)."""

from collections.abc import Iterable, Mapping

# Cormack et al. take 60, for lists of thousands. Here lists hold some tens of notes, and the first places should weigh
# more: on the tuning part of tests/validation/retrieval_queries.jsonl 2 to 5 are alike and a little better than 60.
RANK_CONSTANT = 5
# sums of the same terms in another order are equal
_DIGITS = 12


def ranks(scores: Mapping[str, float]) -> dict[str, int]:
    """The place of each key, 1 for the highest score; equal scores share the better place."""
    places: dict[float, int] = {}
    for place, score in enumerate(sorted(scores.values(), reverse=True), start=1):
        places.setdefault(score, place)
    return {key: places[score] for key, score in scores.items()}


def reciprocal_rank(
    rankings: Iterable[tuple[float, Mapping[str, int]]], constant: int = RANK_CONSTANT
) -> dict[str, float]:
    """sum over (weight, ranking) of weight / (constant + place), for every key of any ranking."""
    found: dict[str, float] = {}
    for weight, ranking in rankings:
        for key, place in ranking.items():
            found[key] = found.get(key, 0.0) + weight / (constant + place)
    return {key: round(score, _DIGITS) for key, score in found.items()}
