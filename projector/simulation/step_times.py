"""StepTimes: what a step of an engine costs, tabulated once from the cost model and interpolated in microseconds."""

from array import array
from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from projector.graph.columns import Column
from projector.graph.serving_graph import StepWork

# Neighbouring grid points differ by this factor, and by one where that is more: with it the table is within a per cent
# of the cost model between the points (tests/unit/simulation/test_step_times.py).
DECODING_RATIO = 1.12
TOKENS_RATIO = 1.1
CONTEXT_RATIO = 1.25
MIXED_CONTEXT_RATIO = 1.8


@dataclass(frozen=True)
class Ranges:
    """What steps can hold: decoding requests of a rank, tokens behind each, prefill tokens, length of a prompt."""

    most_decoding: int
    least_context: float
    most_context: float
    most_tokens: float
    least_prompt: float
    windows: tuple[int, ...] = ()

    def decoding(self) -> Column:
        """Grid of decoding requests, from 0."""
        return np.concatenate([[0.0], grid(1.0, self.most_decoding, DECODING_RATIO)])

    def context(self) -> Column:
        """Grid of the mean context of the decoding requests."""
        return grid(self.least_context, self.most_context, CONTEXT_RATIO, self.windows)

    def mixed_context(self) -> Column:
        """The same for steps with prefill, where it matters less."""
        return grid(self.least_context, self.most_context, MIXED_CONTEXT_RATIO, self.windows)

    def tokens(self) -> Column:
        """Grid of prefill tokens a step."""
        return grid(1.0, self.most_tokens, TOKENS_RATIO)

    def prompt(self) -> Column:
        """Grid of twice the mean tokens a prefill token attends to: a whole prompt's length (`prefill_work`)."""
        return grid(self.least_prompt, 2 * self.most_context, MIXED_CONTEXT_RATIO, self.windows)


def grid(low: float, high: float, ratio: float, extra: tuple[float, ...] = ()) -> Column:
    """Rising points from low to high, each at most `ratio` times the one before or one more; extra ones in between."""
    points = [low]
    while points[-1] < high:
        points.append(min(max(points[-1] * ratio, points[-1] + 1.0), high))
    return np.unique([*points, *(x for x in extra if low < x < high)])


def prefill_work(decoding: Column, context: Column, tokens: Column, prompt: Column, rows: int = 1) -> StepWork:
    """A step that prefills `tokens` tokens which attend to prompt / 2 others in the mean; rows: of who decodes.

    A chunk of c tokens behind o others has c (o + c / 2) pairs; `prompt` is 2 o + c, the length itself of a whole
    prompt. Several whole prompts in one step have those of one prompt of their length. So one number stands for the
    places of all chunks of a step.
    """
    chunk = np.minimum(tokens, prompt)
    before = (prompt - chunk) / 2
    return StepWork(decoding, context, tokens / chunk, chunk, before + chunk, np.ones_like(chunk), before, rows)


@dataclass
class StepTimes:
    """Seconds of a step of one rank, piecewise linear between grid points.

    decode_s    shape [decoding, context], steps without prefill (the row of 0 decoding requests is not used)
    mixed_s     shape [decoding, mixed_context, tokens, prompt], steps with prefill
    decode_host_s, mixed_host_s   no step of the kind takes less: its launches (mixed: with nobody decoding, and with
                somebody). Kept apart, as the bend where the host lets go lies across all axes
    """

    decoding: Column
    context: Column
    mixed_context: Column
    tokens: Column
    prompt: Column
    decode_s: NDArray[np.float64]
    mixed_s: NDArray[np.float64]
    decode_host_s: float = 0.0
    mixed_host_s: tuple[float, float] = (0.0, 0.0)
    _rows: dict[int, tuple[list[float], list[float]]] = field(default_factory=dict)
    _blocks: "dict[int, list[array[float]]]" = field(default_factory=dict)
    _mixed_knots: tuple[list[float], list[float], list[float]] = field(init=False)

    def __post_init__(self) -> None:
        self._mixed_knots = self.mixed_context.tolist(), self.tokens.tolist(), self.prompt.tolist()

    def decode(self, decoding: int, context: float) -> float:
        """Seconds of a step of `decoding` requests with `context` tokens behind each in the mean."""
        knots, row = self._row(decoding)
        i, w = _place(knots, context)
        return row[i] + w * (row[i + 1] - row[i]) if w else row[i]

    def decode_many(self, decoding: int, context: float, growth: float, steps: int) -> float:
        """Seconds of so many steps in a row, the mean context growing by `growth` in each: the exact sum of `decode`.

        Between two grid points of the context the steps are an arithmetic series.
        """
        (knots, _), total, left = self._row(decoding), 0.0, steps
        while left > 0:
            inside = left
            if growth > 0 and context < knots[-1]:
                knot = knots[bisect_right(knots, context)]
                inside = min(left, int((knot - context) / growth) + 1)
            last = context + (inside - 1) * growth
            total += inside * (self.decode(decoding, context) + self.decode(decoding, last)) / 2
            context = last + growth
            left -= inside
        return total

    def mixed(self, decoding: int, context: float, tokens: float, prompt: float) -> float:
        """Seconds of a step with a prefill of `tokens` tokens beside `decoding` requests; prompt: `prefill_work`."""
        block = self._block(decoding)
        i, u = _place(self._mixed_knots[0], context)
        j, v = _place(self._mixed_knots[1], tokens)
        k, w = _place(self._mixed_knots[2], prompt)
        width = len(self._mixed_knots[2])
        found = _plane(block[i], j * width + k, v, w, width)
        if u:
            found += u * (_plane(block[i + 1], j * width + k, v, w, width) - found)
        return max(found, self.mixed_host_s[decoding > 0])

    def _row(self, decoding: int) -> tuple[list[float], list[float]]:
        """(contexts, seconds) of pure decode steps; where the host lets go lies one more point."""
        row = self._rows.get(decoding)
        if row is None:
            knots, seconds, host_s = self.context, _between(self.decoding, self.decode_s, decoding), self.decode_host_s
            crosses = np.flatnonzero((seconds[:-1] < host_s) != (seconds[1:] < host_s))
            share = (host_s - seconds[crosses]) / (seconds[crosses + 1] - seconds[crosses])
            extra = knots[crosses] + share * (knots[crosses + 1] - knots[crosses])
            points = np.union1d(knots, extra)
            held = np.maximum(np.interp(points, knots, seconds), host_s)
            row = self._rows[decoding] = points.tolist(), held.tolist()
        return row

    def _block(self, decoding: int) -> "list[array[float]]":
        """By context, planes over tokens and prompt as flat arrays: an eighth of what nested lists of them take."""
        block = self._blocks.get(decoding)
        if block is None:
            planes = _between(self.decoding, self.mixed_s, decoding)
            block = self._blocks[decoding] = [array("d", plane.ravel().tolist()) for plane in planes]
        return block


def _between(knots: Column, values: NDArray[np.float64], at: float) -> NDArray[np.float64]:
    i, w = _place(knots.tolist(), at)
    found: NDArray[np.float64] = values[i] if w == 0 else values[i] + w * (values[i + 1] - values[i])
    return found


def _place(knots: list[float], at: float) -> tuple[int, float]:
    """(index of the knot at or below, share of the way to the next); the ends hold beyond them."""
    if at <= knots[0]:
        return 0, 0.0
    if at >= knots[-1]:
        return len(knots) - 1, 0.0
    i = bisect_right(knots, at) - 1
    return i, (at - knots[i]) / (knots[i + 1] - knots[i])


def _plane(plane: "array[float]", at: int, v: float, w: float, width: int) -> float:
    """Between the point `at` and its neighbours along both axes of a flat plane."""
    lower = plane[at] + w * (plane[at + 1] - plane[at]) if w else plane[at]
    if not v:
        return lower
    at += width
    upper = plane[at] + w * (plane[at + 1] - plane[at]) if w else plane[at]
    return lower + v * (upper - lower)
