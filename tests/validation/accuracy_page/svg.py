"""A small writer of SVG charts: plain text, no dependency, the same bytes for the same figures.

Charts carry their own background and follow the reader's light or dark scheme, so that they are readable on both. Each
series has a colour and a shape of its own.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

# colour in light and in dark, and a path drawn around a point; the set of Okabe and Ito (2008), darkened and lightened
SERIES: tuple[tuple[str, str, str], ...] = (
    ("#0b62a8", "#6cb6ff", "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z"),
    ("#b85c00", "#f0a04b", "m-2.6-2.6h5.2v5.2h-5.2z"),
    ("#0a7d5a", "#4cc9a0", "m0-3.4l3.4 5.9h-6.8z"),
    ("#a3378f", "#e28fd0", "m0-3.8l3.8 3.8l-3.8 3.8l-3.8-3.8z"),
    ("#7a6a00", "#d8c84a", "m0 3.4l3.4-5.9h-6.8z"),
    ("#5b6470", "#9aa4b1", "m-1.3-1.3h2.6v2.6h-2.6z"),
    ("#8c4a2f", "#d9967a", "m-1.2-3.2h2.4v2h2v2.4h-2v2h-2.4v-2h-2v-2.4h2z"),
)
DOTS = 5
"""The series for what comes in crowds."""
FONT = "system-ui,-apple-system,Segoe UI,Helvetica,Arial,sans-serif"


def number(value: float) -> str:
    """A coordinate: a tenth of a pixel is fine enough."""
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")


@dataclass(frozen=True)
class Scale:
    """From values of a domain to pixels, linear or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = (math.log10(x) if self.is_log else x for x in (self.low, self.high, value))
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    def back(self, pixel: float) -> float:
        """The value at a pixel."""
        part = (pixel - self.start) / (self.end - self.start)
        if self.is_log:
            return float(self.low * (self.high / self.low) ** part)
        return self.low + (self.high - self.low) * part

    def inside(self, value: float) -> float:
        """The pixel of the value, moved to the nearer end where it lies outside the domain."""
        return self(min(max(value, self.low), self.high))


@dataclass
class Drawing:
    """A chart that grows by elements."""

    width: float
    height: float
    title: str
    parts: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, words: str, style: str = "t", anchor: str = "start", turn: bool = False) -> None:
        """Words at a baseline. style: h heading, t text, s small, m small and pale."""
        turned = f' transform="rotate(-90 {number(x)} {number(y)})"' if turn else ""
        where = f'x="{number(x)}" y="{number(y)}" text-anchor="{anchor}"{turned}'
        self.parts.append(f'<text class="{style}" {where}>{escape(words, quote=False)}</text>')

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str = "g") -> None:
        """style: g grid, a axis, d diagonal, w whisker, k tick."""
        ends = f'x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"'
        self.parts.append(f'<line class="{style}" {ends}/>')

    def area(self, corners: Iterable[tuple[float, float]], style: str = "b") -> None:
        """A filled polygon. style: b band, c0 ... of a series."""
        shape = " ".join(f"{number(x)},{number(y)}" for x, y in corners)
        self.parts.append(f'<polygon class="{style}" points="{shape}"/>')

    def bar(self, x: float, y: float, width: float, height: float, style: str) -> None:
        """A filled rectangle."""
        size = f'x="{number(x)}" y="{number(y)}" width="{number(max(width, 0))}" height="{number(height)}"'
        self.parts.append(f'<rect class="{style}" {size}/>')

    def marks(self, points: Iterable[tuple[float, float]], series: int, style: str = "") -> None:
        """One shape at every point, as one path."""
        shape = SERIES[series % len(SERIES)][2]
        path = "".join(f"M{number(x)} {number(y)}{shape}" for x, y in points)
        if path:
            styles = " ".join(filter(None, ("p", f"c{series % len(SERIES)}", style)))
            self.parts.append(f'<path class="{styles}" d="{path}"/>')

    def ring(self, x: float, y: float, series: int) -> None:
        """A circle around a point."""
        self.parts.append(f'<circle class="c{series} ring" cx="{number(x)}" cy="{number(y)}" r="6"/>')

    def legend(self, x: float, y: float, names: Sequence[tuple[str, int]], wraps: float | None = None) -> None:
        """Shape and name of series: one below the other, or in lines where it says at which x they wrap."""
        at_x, at_y = x, y
        for name, series in names:
            # what a word takes is not known without its font: 7 px a character is on the safe side
            length = 26 + 7 * len(name)
            if wraps is not None and at_x > x and at_x + length > wraps:
                at_x, at_y = x, at_y + 18
            self.marks([(at_x, at_y - 4)], series, "full")
            self.text(at_x + 9, at_y, name, "s")
            at_x, at_y = (at_x + length, at_y) if wraps is not None else (at_x, at_y + 20)

    def document(self) -> str:
        """The file."""
        size = f'width="{number(self.width)}" height="{number(self.height)}"'
        box = f'viewBox="0 0 {number(self.width)} {number(self.height)}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} role="img" aria-label="{escape(self.title)}">'
        back = f'<rect class="back" width="{number(self.width)}" height="{number(self.height)}" rx="8"/>'
        return "\n".join((head, f"<style>{_style()}</style>", back, *self.parts, "</svg>\n"))


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten within a domain; with less than two decades 1, 2 and 5 of each."""
    steps = (1.0,) if math.log10(high / low) > 2 else (1.0, 2.0, 5.0)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = (step * 10.0**power for power in decades for step in steps)
    return [tick for tick in ticks if low <= tick <= high]


def linear_ticks(most: float) -> list[float]:
    """Round steps from 0, at most eight of them."""
    step = next(step for step in (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0) if most / step <= 8)
    return [step * place for place in range(int(most / step) + 1)]


def source_name(name: str) -> str:
    """A source by its last name: a repository without its owner. Tables have it whole."""
    return name.removeprefix("github:").rsplit("/", 1)[-1]


def log_domain(values: Iterable[float]) -> tuple[float, float]:
    """A little more than the values span."""
    given = list(values)
    return min(given) / 1.25, max(given) * 1.25


def spread(values: Sequence[float], reach: float, distance: float = 5.0) -> list[float]:
    """Offsets across a strip that keep points apart where they are dense: those near each other take turns."""
    order = sorted(range(len(values)), key=lambda place: values[place])
    offsets = [0.0] * len(values)
    run = 0
    for before, place in pairwise(order):
        run = run + 1 if values[place] - values[before] < distance else 0
        level = (run + 1) // 2 * (1 if run % 2 else -1)
        offsets[place] = (level * 2.4 + reach) % (2 * reach) - reach if abs(level * 2.4) > reach else level * 2.4
    return offsets


def _style() -> str:
    light = "".join(f".c{place}{{fill:{one[0]};color:{one[0]}}}" for place, one in enumerate(SERIES))
    dark = "".join(f".c{place}{{fill:{one[1]};color:{one[1]}}}" for place, one in enumerate(SERIES))
    return (
        f"text{{font-family:{FONT};fill:#1f2328}}.h{{font-size:15px;font-weight:600}}.t{{font-size:12.5px}}"
        ".s{font-size:11.5px}.m{font-size:11px;fill:#59636e}.back{fill:#fff;stroke:#d1d9e0}"
        ".g{stroke:#e4e8ed}.a{stroke:#8c959f}.d{stroke:#1f2328;stroke-dasharray:4 3}.w{stroke:#1f2328;stroke-width:1.4}"
        ".k{stroke:#1f2328;stroke-width:2.2}.b{fill:#59636e;fill-opacity:.2}.p{fill-opacity:.62}.full{fill-opacity:1}"
        f".pale{{fill-opacity:.3}}{light}.ring{{fill:none;stroke:currentColor;stroke-width:2}}"
        "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.m{fill:#9198a1}.back{fill:#0d1117;stroke:#3d444d}"
        ".g{stroke:#262c36}.a{stroke:#656c76}.d{stroke:#e6edf3}.w,.k{stroke:#e6edf3}.b{fill:#9198a1;fill-opacity:.26}"
        f"{dark}.ring{{fill:none}}}}"
    )
