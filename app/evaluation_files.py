"""Files of an evaluation, and the files beside them: workloads state strata and experts, rows what ran."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from agents.evaluation.case_rows import Case, are_cases, read_cases
from agents.evaluation.material import Material, TextFile, kind_of, read_material, rows_of
from agents.evaluation.rows import MeasuredRow, Unreadable
from agents.evaluation.served_rows import ServedRow, read_served_rows
from agents.evaluation.workloads import Workload, read_workloads
from app.commands.files import content_of, existing
from app.wording import plain
from projector.errors import InvalidDescription

WORKLOADS = "workloads.jsonl"
ROWS = ("training.jsonl", "posttraining.jsonl")
SERVED = "serving.jsonl"

Say = Callable[[str], None]


def for_accuracy(paths: Sequence[Path], say: Say) -> Material:
    """The rows of the files, those of the workloads where only workloads are named; strata from beside the files."""
    named = read_material(_read(existing(paths), say))
    if named.serving:
        if named.rows or named.workloads:
            raise InvalidDescription("rows of training and of serving are two evaluations", hint="name files of one")
        return named
    if not named.rows:
        beside = read_material(_read(_beside(paths, ROWS), say))
        workloads = [one for one in named.workloads if isinstance(one, Workload)]
        named = Material(rows_of(beside, workloads), named.workloads)
        if not named.rows:
            raise InvalidDescription("no row belongs to these workloads", hint=f"name a file of rows too ({ROWS[0]})")
    if named.workloads:
        return named
    index = read_material(_read(_beside(paths, (WORKLOADS,)), say))
    return Material(named.rows, index.workloads)


def for_topk(paths: Sequence[Path], say: Say) -> Material:
    """The workloads of the files with their rows, from beside the files where those named lack some.

    Where only rows are named, the workloads beside them that have one of these rows.
    """
    named = read_material(_read(existing(paths), say))
    if named.serving:
        raise InvalidDescription("rows of serving are no pre-training", hint="--phase serving")
    if not named.workloads:
        index = read_material(_read(_beside(paths, (WORKLOADS,)), say))
        at_hand = named.row_ids
        workloads = tuple(
            one for one in index.workloads if isinstance(one, Workload) and not at_hand.isdisjoint(one.rows)
        )
        if not workloads:
            raise InvalidDescription(f"no workload of a {WORKLOADS} beside the files has one of these rows")
        return Material(named.rows, workloads)
    if not named.missing_rows():
        return named
    beside = read_material(_read(_beside(paths, ROWS), say))
    missing = named.missing_rows()
    found = tuple(row for row in beside.rows if isinstance(row, MeasuredRow) and row.id in missing)
    return Material((*named.rows, *found), named.workloads)


def hold_cases(paths: Sequence[Path]) -> bool:
    """Whether some of the files hold before/after cases, by their first lines."""
    return any(are_cases(text.text) for text in _read(existing(paths), lambda _: None))


def for_cases(paths: Sequence[Path], say: Say) -> tuple[Case | Unreadable, ...]:
    """The before/after cases of the files. InvalidDescription for a file that holds none."""
    found: list[Case | Unreadable] = []
    for text in _read(existing(paths), say):
        if not are_cases(text.text):
            raise InvalidDescription(
                f"{text.name!r} holds no before/after cases", hint="rows have before, after, bottleneck and levers"
            )
        found.extend(read_cases(text.text, text.name))
    return tuple(found)


def for_served_topk(
    paths: Sequence[Path], say: Say
) -> tuple[tuple[Workload | Unreadable, ...], tuple[ServedRow | Unreadable, ...]]:
    """Workloads and serving rows of the files; of either kind that none of them holds, from beside them."""
    texts = tuple(_read(existing(paths), say))
    workloads = [text for text in texts if kind_of(text) == "workloads"]
    rows = [text for text in texts if kind_of(text) in ("rows", "serving")]
    workloads += [] if workloads else _read(_beside(paths, (WORKLOADS,)), say)
    rows += [] if rows else _read(_beside(paths, (SERVED,)), say)
    if not workloads or not rows:
        raise InvalidDescription(f"serving needs workloads and rows: name {WORKLOADS} and {SERVED}")
    return (
        tuple(one for text in workloads for one in read_workloads(text.text, text.name)),
        tuple(one for text in rows for one in read_served_rows(text.text, text.name)),
    )


def _beside(paths: Sequence[Path], names: Iterable[str]) -> list[Path]:
    """Existing files of these names in the folders of the paths, none that is one of the paths."""
    named = {path.resolve() for path in paths}
    candidates = [folder / name for folder in dict.fromkeys(path.parent for path in paths) for name in names]
    return [path for path in candidates if path.is_file() and path.resolve() not in named]


def _read(paths: Iterable[Path], say: Say) -> Iterable[TextFile]:
    for path in paths:
        say(f"reading {plain(path.name)}")
        try:
            yield TextFile(path.name, content_of(path).decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise InvalidDescription(f"{path.name} is not UTF-8 at byte {error.start}") from error
