"""Note: one piece of sharding knowledge, as a markdown file with typed front matter.

    ---
    id: pipeline-bubble              the file name without .md
    title: ...
    levers: [pipeline_parallelism]   names of projector.levers; may be empty
    causes: [pipeline_bubble]        projector.specs.bottleneck.Cause, at least one, never "unknown"
    phases: [training]
    hardware: [gpu, tpu]
    chips: [h100-sxm]                chips whose figures the worked number uses; may be left out
    variables:                       the notation: name -> value at the worked number, unit, meaning
      stages: {value: 8, unit: stages, meaning: pipeline stages}
    worked:                          steps in order; a step may read variables and earlier steps
      - {name: bubble_frac, expression: (stages - 1) / micro_batches, value: 0.22, unit: fraction, meaning: ...}
    inequality: bubble_frac < 0.1    what decides whether the lever helps
    holds: false                     its truth at the worked number
    decides: plan                    may be left out; plan: the inequality is true of the plans this note speaks for,
                                     advice (the default): it decides something that is no field of a plan
    aliases: [HSDP, HYBRID_SHARD]    other names of the subject, for keyword search only; may be left out, as may
    releases:                        releases of software the note speaks of
      - {name: vllm 0.9, released: 2025-05-28}
    reviewed: 2026-11-30             when somebody last held the note against the newest release
    valid_until: 2027-06-30          after this day the note is marked stale
    superseded_by: other-note        the note ranks behind all others and is marked stale
    sources:
      - {title: ..., url: "https://...", year: 2021}      or read: 2026-11-30
    ---
    ## Claim / ## When it helps / ## When it hurts / ## The inequality that decides / ## Worked number

Reading recomputes every worked step and the inequality; a note whose numbers do not add up is refused.
Text and titles are untrusted data: nothing here renders, follows or executes them.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from knowledge_base import front_matter
from knowledge_base.expression import FUNCTIONS, evaluate, holds, names
from projector.catalog import chip, chips
from projector.errors import InvalidDescription, UnknownName
from projector.levers import LEVERS
from projector.specs.bottleneck import CAUSES, Cause
from projector.specs.plan import Phase
from projector.specs.record import Record

NOTES_FOLDER = Path(__file__).parent / "notes"
HardwareKind = Literal["gpu", "tpu"]
Decides = Literal["plan", "advice"]
PHASES: tuple[str, ...] = ("training", "serving")
HARDWARE_KINDS: tuple[str, ...] = ("gpu", "tpu")
SECTIONS = ("Claim", "When it helps", "When it hurts", "The inequality that decides", "Worked number")

MAX_NOTE_BYTES = 32_000
# stated values are rounded by their author; a wrong formula is off by far more
WORKED_TOLERANCE_FRAC = 0.005
MAX_ALIASES = 12
# controls besides tab and newline, marks that make text read in another order than it is stored, half characters
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_NAME = r"^[a-z][a-z0-9_]*$"
_ID = r"^[a-z0-9]+(-[a-z0-9]+)*$"


def _not_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError(f"{value} is not a number")
    return value


Number = Annotated[float, BeforeValidator(_not_bool)]


class Variable(Record):
    """One symbol of the note's notation, at the worked number."""

    value: Number
    unit: str = Field(min_length=1, max_length=60)
    meaning: str = Field(min_length=1, max_length=200)


class WorkedStep(Record):
    """One recomputed number: `expression` over variables and earlier steps gives `value` within rounding."""

    name: str = Field(pattern=_NAME, max_length=60)
    expression: str
    value: Number
    unit: str = Field(min_length=1, max_length=60)
    meaning: str = Field(min_length=1, max_length=200)


class Source(Record):
    """A public work, with its year or the date it was read."""

    title: str = Field(min_length=1, max_length=200)
    url: str = Field(pattern=r"^https?://[^\s<>\"']+$", max_length=300)
    year: int | None = Field(None, ge=1950, le=2100)
    read: date | None = None

    @model_validator(mode="after")
    def _dated(self) -> Self:
        if self.year is None and self.read is None:
            raise ValueError("a source needs its year or the date it was read")
        return self

    @property
    def text(self) -> str:
        """The source in one line: title, year or reading date, address."""
        when = str(self.year) if self.year is not None else f"read {self.read}"
        return f"{self.title}, {when}, {self.url}"


class Release(Record):
    """A release of software that changes what a note says."""

    name: str = Field(min_length=1, max_length=80)
    released: date


Alias = Annotated[str, Field(min_length=1, max_length=60)]


class Section(Record):
    """One part of the body."""

    heading: str
    text: str

    @property
    def slug(self) -> str:
        """The heading as an identifier."""
        return re.sub(r"[^a-z0-9]+", "-", self.heading.lower()).strip("-")


class Note(Record):
    """One note. `sections` holds exactly SECTIONS, in their order."""

    id: str = Field(pattern=_ID, max_length=80)
    title: str = Field(min_length=1, max_length=120)
    levers: tuple[str, ...]
    causes: tuple[Cause, ...] = Field(min_length=1)
    phases: tuple[Phase, ...] = Field(min_length=1)
    hardware: tuple[HardwareKind, ...] = Field(min_length=1)
    chips: tuple[str, ...] = ()
    variables: dict[str, Variable] = Field(min_length=1)
    worked: tuple[WorkedStep, ...] = Field(min_length=1)
    inequality: str
    holds: bool
    decides: Decides = "advice"
    aliases: tuple[Alias, ...] = Field((), max_length=MAX_ALIASES)
    releases: tuple[Release, ...] = ()
    reviewed: date | None = None
    valid_until: date | None = None
    superseded_by: str | None = Field(None, pattern=_ID, max_length=80)
    sources: tuple[Source, ...] = Field(min_length=1)
    sections: tuple[Section, ...]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if "unknown" in self.causes:
            raise ValueError("causes: a note cannot relieve an unknown cause")
        if self.superseded_by == self.id:
            raise ValueError("superseded_by: a note cannot supersede itself")
        for field in ("levers", "causes", "phases", "hardware", "chips", "aliases"):
            listed = getattr(self, field)
            if len(set(listed)) < len(listed):
                raise ValueError(f"{field}: a name is listed twice")
        symbols = [*self.variables, *(step.name for step in self.worked)]
        for symbol in symbols:
            if not re.fullmatch(_NAME, symbol) or symbol in FUNCTIONS:
                raise ValueError(f"variables: {symbol!r} cannot be the name of a variable")
        if len(set(symbols)) < len(symbols):
            raise ValueError("variables and worked: a name is defined twice")
        return self


def recompute(note: Note) -> dict[str, float]:
    """Every worked step from the variables, name -> value. InvalidDescription: an expression without a value."""
    values = {name: variable.value for name, variable in note.variables.items()}
    steps = {}
    for step in note.worked:
        values[step.name] = steps[step.name] = evaluate(step.expression, values)
    return steps


def inequality_holds(note: Note) -> bool:
    """Whether the deciding inequality is true at the worked number."""
    values = {name: variable.value for name, variable in note.variables.items()}
    return holds(note.inequality, values | recompute(note))


def parse_note(text: str, *, origin: str) -> Note:
    """The note a markdown text holds; `origin` (a file name) appears in errors.

    InvalidDescription: malformed, too large, or numbers that do not recompute. UnknownName: a key, lever, cause,
    phase, hardware kind or chip nobody knows.
    """
    text = _clean(text, origin)
    header, body = front_matter.split(text, origin=origin)
    fields = front_matter.load(header, origin=origin)
    _check_names(fields, origin)
    try:
        note = Note.model_validate({**fields, "sections": _sections(body, origin)})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        raise InvalidDescription(f"note {origin}: {field + ': ' if field else ''}{message}") from error
    _check_numbers(note, origin)
    return note


def read_notes(*folders: Path) -> tuple[Note, ...]:
    """Every *.md of the folders as a note, ordered by id.

    InvalidDescription: no such folder, a file not named for its id, an id in two folders; otherwise as `parse_note`.
    """
    found: dict[str, tuple[Note, Path]] = {}
    for folder in folders:
        if not folder.is_dir():
            raise InvalidDescription(f"no notes folder at {folder}")
        for path in sorted(folder.glob("*.md")):
            note = parse_note(_read(path), origin=path.name)
            if note.id != path.stem:
                raise InvalidDescription(f"note {path.name}: id is {note.id!r}", hint="name the file for its id")
            if note.id in found:
                raise InvalidDescription(f"note {note.id!r} is both {found[note.id][1]} and {path}")
            found[note.id] = (note, path)
    return tuple(found[note_id][0] for note_id in sorted(found))


def _read(path: Path) -> str:
    size = path.stat().st_size
    if size > MAX_NOTE_BYTES:
        raise InvalidDescription(f"note {path.name}: {size} bytes > {MAX_NOTE_BYTES}", hint="split it into notes")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidDescription(f"note {path.name}: not UTF-8 at byte {error.start}") from error


def _clean(text: str, origin: str) -> str:
    size = len(text.encode("utf-8", errors="surrogatepass"))
    if size > MAX_NOTE_BYTES:
        raise InvalidDescription(f"note {origin}: {size} bytes > {MAX_NOTE_BYTES}", hint="split it into notes")
    text = text.replace("\r\n", "\n")
    if bad := _FORBIDDEN.search(text):
        line = text.count("\n", 0, bad.start()) + 1
        raise InvalidDescription(f"note {origin}: control character {bad.group()!r} in line {line}")
    return text


def _check_names(fields: Mapping[str, Any], origin: str) -> None:
    """Names first, so that a typo is answered with its nearest neighbour."""
    where = f"of note {origin}"
    known_fields = set(Note.model_fields) - {"sections"}
    for key in fields:
        if key not in known_fields:
            raise UnknownName(f"key {where}", str(key), known_fields)
    kinds: tuple[tuple[str, Sequence[str]], ...] = (
        ("levers", [lever.name for lever in LEVERS]),
        ("causes", CAUSES),
        ("phases", PHASES),
        ("hardware", HARDWARE_KINDS),
    )
    for field, known in kinds:
        for name in _names_in(fields, field):
            if name not in known:
                raise UnknownName(f"{field} entry {where}", name, known)
    for name in _names_in(fields, "chips"):
        try:
            chip(name)
        except UnknownName as error:
            raise UnknownName(f"chips entry {where}", name, (profile.id for profile in chips())) from error


def _names_in(fields: Mapping[str, Any], field: str) -> list[str]:
    """The strings of a list field; anything else is left for the typed record to refuse."""
    listed = fields.get(field)
    return [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []


def _sections(body: str, origin: str) -> tuple[Section, ...]:
    preamble, *parts = re.split(r"^## +(.+)$", body, flags=re.MULTILINE)
    if preamble.strip():
        raise InvalidDescription(f"note {origin}: text before the first section")
    headings = tuple(heading.strip() for heading in parts[::2])
    if headings != SECTIONS:
        raise InvalidDescription(
            f"note {origin}: sections are {', '.join(headings) or 'none'}",
            hint=f"wanted, in order: {', '.join(SECTIONS)}",
        )
    sections = tuple(Section(heading=h, text=t.strip()) for h, t in zip(headings, parts[1::2], strict=True))
    for section in sections:
        if not section.text:
            raise InvalidDescription(f"note {origin}: section {section.heading!r} is empty")
    return sections


def _check_numbers(note: Note, origin: str) -> None:
    """Refuse a note whose worked number or verdict differs from what its own formulas give."""
    try:
        computed = recompute(note)
        verdict = inequality_holds(note)
    except InvalidDescription as error:
        raise InvalidDescription(f"note {origin}: {error.message}", hint=error.hint) from error
    for step in note.worked:
        actual = computed[step.name]
        if abs(actual - step.value) > WORKED_TOLERANCE_FRAC * abs(actual):
            raise InvalidDescription(
                f"note {origin}: worked {step.name} says {step.value:g}, its formula gives {actual:g}"
            )
    if verdict != note.holds:
        raise InvalidDescription(f"note {origin}: holds says {note.holds}, the inequality gives {verdict}")
    read = names(note.inequality).union(*(names(step.expression) for step in note.worked))
    if unused := sorted(note.variables.keys() - read):
        raise InvalidDescription(f"note {origin}: no formula reads {', '.join(unused)}")
