"""Sequences that cost time as people read them."""

from rich.console import Console

from app.tables_patterns import show_patterns, show_unknown_patterns
from traces.summary_types import PatternUnknown, SequencePattern

ONE = SequencePattern(
    kind="relayout_copies",
    occurrences=1_200,
    total_ns=3_000_000,
    exposed_ns=2_000_000,
    exposed_frac=0.021,
    certain=True,
    basis="names of kernels",
    examples=("[bold]batched_transpose[/bold]\x1b[31m",),
)


def shown(capsys) -> list[str]:
    show_patterns(Console(width=120, markup=False), (ONE,))
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_a_row_says_count_time_bound_and_example_and_markup_stays_text(capsys) -> None:
    assert "relayout copies 1,200 3 2 2.1 % yes [bold]batched_transpose[/bold]\N{REPLACEMENT CHARACTER}[31m" in shown(
        capsys
    )


def test_what_was_not_looked_for_is_told_by_reason(capsys) -> None:
    why = "no call of the host can be joined to a device event"
    show_unknown_patterns(
        Console(width=120), [PatternUnknown(kind=kind, why=why) for kind in ("host_syncs", "tiny_kernels")]
    )
    assert f"host syncs and tiny kernels: {why}" in capsys.readouterr().out


def test_nothing_found_and_nothing_unknown_is_nothing_shown(capsys) -> None:
    show_patterns(Console(), ())
    show_unknown_patterns(Console(), ())
    assert capsys.readouterr().out == ""
