"""Pareto sets: plans that no other plan beats in one figure without losing in another."""

import numpy as np
from numpy.typing import NDArray


def pareto_rows(losses: NDArray[np.float64]) -> NDArray[np.intp]:
    """Rows of [n, k] figures, all to be small, that no other row equals or beats in all of them; by the first figure.

    Of equal rows the first stays. In lexicographic order no row is beaten by a later one. Two figures take one pass
    over the running minimum of the second, O(n log n); more take one pass a member, each over what is not beaten yet.
    """
    rest: NDArray[np.intp] = np.lexsort(losses.T[::-1])
    if losses.shape[1] == 2:
        second = losses[rest, 1]
        before = np.concatenate(([np.inf], np.minimum.accumulate(second)[:-1]))
        return np.asarray(rest[second < before], dtype=np.intp)
    members = []
    while rest.size:
        members.append(rest[0])
        rest = rest[(losses[rest] < losses[rest[0]]).any(axis=1)]
    return np.array(members, dtype=np.intp)


def thinned(losses: NDArray[np.float64], frac: float) -> NDArray[np.intp]:
    """Of Pareto rows [n, k], as ordered, those that no kept row comes within `frac` of in every figure.

    Every row left out is at most `frac` better than some kept one, in any figure.
    """
    kept: list[int] = []
    for row in range(len(losses)):
        if not kept or not (losses[kept] <= losses[row] * (1 + frac)).all(axis=1).any():
            kept.append(row)
    return np.array(kept, dtype=np.intp)


def fronts_of_groups(
    group: NDArray[np.int64], first: NDArray[np.float64], second: NDArray[np.float64]
) -> NDArray[np.intp]:
    """Rows of every group that no other row of it equals or beats in both figures, both to be small; by group.

    Of equal rows the first stays. With a constant first figure that is the best row of each group.
    """
    order = np.lexsort((second, first, group))
    _, number = np.unique(group[order], return_inverse=True)
    height = np.unique(second[order], return_inverse=True)[1]
    # each group below all groups before it: one running minimum serves them all
    level = height - number * (len(group) + 1)
    before = np.concatenate(([np.iinfo(np.int64).max], np.minimum.accumulate(level)[:-1]))
    return order[level < before]
