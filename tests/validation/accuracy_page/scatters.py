"""Charts of single rows: projected against measured, and their ratio."""

import math
from collections.abc import Iterable, Sequence
from itertools import cycle

import numpy as np

from .figures import ChipCloud, Cloud, Point, Sweep
from .svg import DOTS, SERIES, Drawing, Scale, linear_ticks, log_domain, log_ticks, source_name, spread

WIDTH = 860.0
GIB = 2.0**30
RATIOS = (0.5, 2.0)
RATIO_TICKS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 1.75, 2.0)
# a family of more points is drawn as dots
DENSE = 600
# of so many points in a strip each is drawn paler
MANY = 200
Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


def families(chips: Sequence[ChipCloud]) -> list[tuple[Cloud, int]]:
    """Chips of one family as one cloud, in the order the families come first, with its series: dots for a dense one."""
    found, free = [], cycle(place for place in range(len(SERIES)) if place != DOTS)
    for name in dict.fromkeys(one.family for one in chips):
        points = tuple(point for one in chips if one.family == name for point in one.points)
        found.append((Cloud(name=name, points=points), DOTS if len(points) > DENSE else next(free)))
    return found


def step_time(chips: Sequence[ChipCloud]) -> str:
    """Projected against measured step time, and their ratio against the same, with the band of 80 % of the rows."""
    clouds = families(chips)
    ordered = sorted(clouds, key=lambda one: -len(one[0].points))
    points = [point for cloud, _ in clouds for point in cloud.points]
    band = _band(points)
    drawing = Drawing(WIDTH, 486, "Projected against measured step time")
    drawing.text(20, 28, f"Step time: projected against measured, n = {len(points)}", "h")
    drawing.text(20, 46, _band_words(band), "m")
    drawing.legend(26, 70, [(f"{cloud.name} ({len(cloud.points)})", series) for cloud, series in clouds], WIDTH - 20)
    left, right = (62.0, 106.0, 406.0, 436.0), (486.0, 106.0, 840.0, 436.0)
    low, high = log_domain(value for point in points for value in point)
    x, y = Scale(low, high, left[0], left[2], True), Scale(low, high, left[3], left[1], True)
    ticks = log_ticks(low, high)
    grid(drawing, left, [(x(at), _short(at)) for at in ticks], [(y(at), _short(at)) for at in ticks])
    _diagonal(drawing, x, y, (low, high), band)
    for cloud, series in ordered:
        drawing.marks(((x(a), y(b)) for a, b in cloud.points), series)
    drawing.text((left[0] + left[2]) / 2, 470, "measured [s]", "s", "middle")
    drawing.text(20, (left[1] + left[3]) / 2, "projected [s]", "s", "middle", turn=True)
    x, y = Scale(low, high, right[0], right[2], True), Scale(*RATIOS, right[3], right[1], True)
    grid(drawing, right, [(x(at), _short(at)) for at in ticks], [(y(at), _short(at)) for at in RATIO_TICKS])
    below, above = (y.inside(ratio) for ratio in band)
    drawing.area(((right[0], below), (right[2], below), (right[2], above), (right[0], above)))
    drawing.line(right[0], y(1), right[2], y(1), "d")
    for cloud, series in ordered:
        drawing.marks(((x(a), y.inside(b / a)) for a, b in cloud.points), series)
    drawing.text((right[0] + right[2]) / 2, 470, "measured [s]", "s", "middle")
    drawing.text(444, (right[1] + right[3]) / 2, "projected / measured", "s", "middle", turn=True)
    return drawing.document()


def memory(clouds: Sequence[Cloud]) -> str:
    """Projected against measured memory a device, by source."""
    scaled = [Cloud(name=one.name, points=tuple((a / GIB, b / GIB) for a, b in one.points)) for one in clouds]
    points = [point for cloud in scaled for point in cloud.points]
    band = _band(points)
    drawing = Drawing(WIDTH, 440, "Projected against measured memory of a device")
    drawing.text(20, 28, f"Memory of a device: projected against measured, n = {len(points)}", "h")
    drawing.text(20, 46, _band_words(band), "m")
    box = (70.0, 62.0, 560.0, 390.0)
    most = 1.08 * max(value for point in points for value in point)
    x, y = Scale(0, most, box[0], box[2]), Scale(0, most, box[3], box[1])
    ticks = linear_ticks(most)
    grid(drawing, box, [(x(at), _short(at)) for at in ticks], [(y(at), _short(at)) for at in ticks])
    _diagonal(drawing, x, y, (0, most), band)
    for place, cloud in enumerate(scaled):
        drawing.marks(((x(a), y(b)) for a, b in cloud.points), place)
    drawing.legend(590, 80, [(f"{source_name(one.name)} ({len(one.points)})", at) for at, one in enumerate(scaled)])
    drawing.text((box[0] + box[2]) / 2, 425, "measured [GiB]", "s", "middle")
    drawing.text(22, (box[1] + box[3]) / 2, "projected [GiB]", "s", "middle", turn=True)
    return drawing.document()


def by_chip(clouds: Sequence[ChipCloud]) -> str:
    """Projected over measured step time of every row, a strip for each chip."""
    pitch, top, left, right = 36.0, 72.0, 170.0, WIDTH - 30
    bottom = top + pitch * len(clouds)
    drawing = Drawing(WIDTH, bottom + 50, "Projected over measured step time by chip")
    drawing.text(20, 28, "Step time: projected / measured, by chip", "h")
    words = "mark: a row, at an edge: beyond it; line: 10th to 90th percentile; tick: median; (n)"
    drawing.text(20, 46, words, "m")
    x = Scale(*RATIOS, left, right, is_log=True)
    grid(drawing, (left, top, right, bottom), [(x(at), _short(at)) for at in RATIO_TICKS], [])
    drawing.line(x(1), top, x(1), bottom, "d")
    series = {family.name: place for family, place in families(clouds)}
    drawing.text((left + right) / 2, bottom + 38, "projected / measured (left of 1: projected too fast)", "s", "middle")
    for place, cloud in enumerate(clouds):
        y = top + pitch * (place + 0.5) - 3
        ratios = [projected / measured for measured, projected in cloud.points]
        at = [x.inside(ratio) for ratio in ratios]
        style = "pale" if len(ratios) > MANY else ""
        drawing.text(left - 10, y + 5, f"{cloud.name} ({len(ratios)})", "s", "end")
        drawing.marks(((a, y + off) for a, off in zip(at, spread(at, 9.0), strict=True)), series[cloud.family], style)
        low, middle, high = (x.inside(float(value)) for value in np.quantile(ratios, [0.1, 0.5, 0.9]))
        drawing.line(low, y + 15, high, y + 15, "w")
        drawing.line(middle, y + 10.5, middle, y + 19.5, "k")
    return drawing.document()


def sweeps(found: Sequence[Sweep]) -> str:
    """Small plots of projected against measured, both relative to their best; the pick is ringed."""
    columns, side, across, down, top = 4, 158.0, 208.0, 240.0, 108.0
    drawing = Drawing(WIDTH, top + down * math.ceil(len(found) / columns) - 48, "Sweeps: projected against measured")
    drawing.text(
        20, 28, "Sweeps: time over the best of the sweep, projected (upward) against measured (rightward)", "h"
    )
    words = "ringed: projected fastest that fits; regret: how much slower it was measured than the best; dashed: equal"
    drawing.text(20, 46, words, "m")
    for place, one in enumerate(found):
        left, above = 48 + (place % columns) * across, top + (place // columns) * down
        box = (left, above, left + side, above + side)
        best = min(measured for measured, _ in one.points), min(projected for _, projected in one.points)
        points = [(measured / best[0], projected / best[1]) for measured, projected in one.points]
        most = max(value for point in points for value in point) * 1.06
        x, y = Scale(0.97, most, box[0], box[2], is_log=True), Scale(0.97, most, box[3], box[1], is_log=True)
        rho = "" if one.spearman is None else f", Spearman {one.spearman:.2f}"
        drawing.text(left - 28, above - 35, one.title, "s")
        drawing.text(left - 28, above - 21, f"batch {one.global_batch}, {len(points)} configurations", "m")
        drawing.text(left - 28, above - 8, f"regret {100 * one.top1_regret:.1f} %{rho}", "m")
        ticks = _relative_ticks(most)
        grid(drawing, box, [(x(at), _short(at)) for at in ticks], [(y(at), _short(at)) for at in ticks])
        drawing.line(x(1), y(1), x(most), y(most), "d")
        drawing.marks(((x(a), y(b)) for a, b in points), 0)
        drawing.ring(x(points[one.picked][0]), y(points[one.picked][1]), 1)
    return drawing.document()


def grid(drawing: Drawing, box: Box, across: Iterable[tuple[float, str]], up: Iterable[tuple[float, str]]) -> None:
    """Lines at (pixel, words) of both axes, the words below and to the left."""
    left, top, right, bottom = box
    for at, words in across:
        drawing.line(at, top, at, bottom)
        drawing.text(at, bottom + 16, words, "s", "middle")
    for at, words in up:
        drawing.line(left, at, right, at)
        drawing.text(left - 6, at + 4, words, "s", "end")


def _diagonal(drawing: Drawing, x: Scale, y: Scale, ends: tuple[float, float], band: tuple[float, float]) -> None:
    """The line of equal values, and the band between two multiples of it, cut at the edges."""
    low, high = ends
    steps = [x.back(x.start + (x.end - x.start) * part / 40) for part in range(41)]
    lower, upper = ([(x(at), y.inside(at * ratio)) for at in steps] for ratio in band)
    drawing.area((*lower, *reversed(upper)))
    drawing.line(x(low), y(low), x(high), y(high), "d")


def _band(points: Sequence[Point]) -> tuple[float, float]:
    """10th and 90th percentile of projected over measured."""
    low, high = np.quantile([projected / measured for measured, projected in points], (0.1, 0.9))
    return float(low), float(high)


def _band_words(band: tuple[float, float]) -> str:
    return f"band: the middle 80 % of the rows, {band[0]:.2f} to {band[1]:.2f} of measured; dashed: equal"


def _short(value: float) -> str:
    return f"{value:g}"


def _relative_ticks(most: float) -> tuple[float, ...]:
    if most < 1.7:
        return tuple(at for at in (1.0, 1.1, 1.2, 1.3, 1.5) if at <= most)
    return tuple(at for at in (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0) if at <= most)
