"""Parts of tables for people, on stdout: untrusted text made plain and never read as markup."""

import shutil
import sys
from collections.abc import Iterable, Sequence
from textwrap import wrap

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from app.wording import plain

WIDTH = 120
LEFT, RIGHT = "left", "right"
WHOLE = ("chips", "chip", "layout", "model", "lever", "objective", "figure")  # columns of names that are not cut


def console() -> Console:
    """stdout, as wide as the terminal and never narrower than the tables need."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
    return Console(width=max(columns, 80), markup=False, highlight=False, emoji=False, file=sys.stdout)


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], sides: Sequence[str]) -> Table:
    """Rows under headers, each column set to its side."""
    grid = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for header, side in zip(headers, sides, strict=True):
        grid.add_column(header, justify="right" if side == RIGHT else "left", overflow="fold", no_wrap=header in WHOLE)
    for row in rows:
        grid.add_row(*row)
    return grid


def heading(out: Console, text: str) -> None:
    """A bold line of our own text."""
    out.print(text, style="bold")


def section(out: Console, title: str) -> None:
    """A bold line after an empty one."""
    out.print()
    out.print(title, style="bold")


def paragraph(out: Console, text: str, indent: str = "  ") -> None:
    """Foreign text, made plain and wrapped."""
    _filled(out, text, indent, indent)


def bullets(out: Console, title: str, items: Sequence[str]) -> None:
    """A section of plain, wrapped items; nothing where there are none."""
    if items:
        section(out, title)
        for item in items:
            bullet(out, item)


def bullet(out: Console, text: str) -> None:
    """One plain, wrapped item."""
    _filled(out, text, "  - ", "    ")


def _filled(out: Console, text: str, first: str, rest: str) -> None:
    lines = wrap(plain(text), out.width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    out.print("\n".join(lines), soft_wrap=True)
