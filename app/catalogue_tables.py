"""The catalogue as tables for people: base SI figures in the units engineers use, each with source and date."""

from collections.abc import Iterable
from types import MappingProxyType

from app import catalogue
from app.schemas_catalogue import ChipList, LeverList, ModelAnswer, ModelList, ObjectiveEntry, ObjectiveList
from app.tables_parts import LEFT, RIGHT, bullets, console, heading, paragraph, section, table
from app.wording import UNKNOWN, number, percent, words
from projector.catalog_rows import ChipRow, ModelRow
from projector.levers import Lever

# base SI -> (unit for people, how many base units it is)
SHOWN_AS = MappingProxyType(
    {
        "FLOP/s": ("TFLOP/s", 1e12),
        "bytes": ("GB", 1e9),
        "bytes/s": ("GB/s", 1e9),
        "bytes/s one way": ("GB/s one way", 1e9),
        "s": ("us", 1e-6),
    }
)
NOT_READ = "unverified"


def show_counts() -> None:
    """`shardwise catalog`."""
    models = catalogue.model_list()
    rows = [
        ("chips", number(len(catalogue.chip_list().chips))),
        ("models", f"{len(models.models)} modelled, {len(models.refused)} refused by name"),
        ("levers", number(len(catalogue.lever_list().levers))),
        ("objectives", number(len(catalogue.objective_list().objectives))),
    ]
    console().print(table(("kind", "entries"), rows, (LEFT, RIGHT)))


def show_chips(answer: ChipList) -> None:
    """`shardwise catalog chips`."""
    headers = ("chip", "kind", "bf16 [TFLOP/s]", "HBM [GB]", "HBM [GB/s]", "fabric", "link [GB/s one way]", "figures")
    rows = [_chip_line(row) for row in answer.chips]
    out = console()
    out.print(table(headers, rows, (LEFT, LEFT, RIGHT, RIGHT, RIGHT, LEFT, RIGHT, LEFT)))
    paragraph(out, f"{NOT_READ}: recalled and not re-read by anybody. Sources and dates: shardwise catalog chips NAME")


def show_chip(row: ChipRow) -> None:
    """`shardwise catalog chips NAME`."""
    out = console()
    heading(out, f"{row.id}: {row.vendor} {row.kind.upper()}, {row.fabric_name}; {row.network_name}")
    paragraph(out, f"Also called: {', '.join(row.aliases) or 'nothing else'}")
    paragraph(out, f"Devices a chip: {row.devices_per_chip}")
    section(out, "Figures")
    figures = [(f.path, *_shown(f.value, f.unit), f.retrieved, _mark(f.unverified), f.source) for f in row.figures]
    headers = ("figure", "value", "unit", "read", "", "source")
    out.print(table(headers, figures, (LEFT, RIGHT, LEFT, LEFT, LEFT, LEFT)))
    section(out, "Counts and latencies")
    counts = [(c.path, *_shown(c.value, c.unit), c.source) for c in row.counts]
    out.print(table(("figure", "value", "unit", "source"), counts, (LEFT, RIGHT, LEFT, LEFT)))
    section(out, f"Calibration: {row.calibration_source}")
    values = [(c.name, number(c.value), c.unit, "assumed" if c.assumed else "measured") for c in row.calibration]
    out.print(table(("name", "value", "unit", "basis"), values, (LEFT, RIGHT, LEFT, LEFT)))
    bullets(out, "No source states", row.unknown)
    bullets(out, "Note", (row.note,) if row.note else ())


def show_models(answer: ModelList) -> None:
    """`shardwise catalog models`."""
    headers = ("model", "kind", "attention", "layers", "hidden", "parameters [1e9]", "active [1e9]", "count", "")
    rows = [
        (
            m.name,
            m.kind,
            m.attention,
            str(m.layers),
            str(m.hidden_size),
            number(m.parameters / 1e9),
            number(m.active_parameters / 1e9),
            _basis(m),
            _mark(m.unverified),
        )
        for m in answer.models
    ]
    out = console()
    out.print(table(headers, rows, (LEFT, LEFT, LEFT, RIGHT, RIGHT, RIGHT, RIGHT, LEFT, LEFT)))
    bullets(out, "Known and refused", [f"{model.name}: {model.reason}" for model in answer.refused])


def show_model(answer: ModelAnswer) -> None:
    """`shardwise catalog models NAME`."""
    out = console()
    heading(out, answer.name)
    if answer.refused is not None:
        paragraph(out, f"Not modelled: {answer.refused.reason}")
        paragraph(out, f"Configuration: {answer.refused.source}, read {answer.refused.retrieved}")
        return
    if answer.model is None:
        raise AssertionError("a model answer is either modelled or refused")
    row = answer.model
    hidden = {"name", "source", "retrieved", "unverified", "note", "published_parameters_source", "deviation_frac"}
    fields = [(words(name), _cell(value)) for name, value in row.model_dump().items() if name not in hidden]
    out.print(table(("field", "value"), fields, (LEFT, RIGHT)))
    if row.deviation_frac is not None:
        paragraph(out, f"Against the published count: {percent(row.deviation_frac)}, {row.published_parameters_source}")
    paragraph(out, f"Source: {row.source}, read {row.retrieved or UNKNOWN} {_mark(row.unverified)}")
    bullets(out, "Note", (row.note,) if row.note else ())


def show_levers(answer: LeverList) -> None:
    """`shardwise catalog levers`."""
    headers = ("lever", "phases", "relieves", "numerics", "effort", "what it does")
    rows = [
        (
            lever.name,
            _listed(lever.phases),
            _listed(lever.relieves),
            _numerics(lever),
            lever.effort,
            lever.summary,
        )
        for lever in answer.levers
    ]
    console().print(table(headers, rows, (LEFT,) * len(headers)))


def show_lever(lever: Lever) -> None:
    """`shardwise catalog levers NAME`."""
    out = console()
    heading(out, lever.name)
    paragraph(out, lever.summary)
    paragraph(out, lever.mechanism)
    rows = [
        ("relieves", _listed(lever.relieves)),
        ("phases", _listed(lever.phases)),
        ("plan fields", _listed(lever.fields)),
        ("numerics", _numerics(lever)),
        ("adopting it takes", lever.effort),
    ]
    out.print(table(("", ""), rows, (LEFT, LEFT)))


def show_objectives(answer: ObjectiveList) -> None:
    """`shardwise catalog objectives`."""
    headers = ("objective", "unit", "direction", "phases", "default of", "meaning")
    rows = [_objective_line(entry) for entry in answer.objectives]
    console().print(table(headers, rows, (LEFT,) * len(headers)))


def show_objective(entry: ObjectiveEntry) -> None:
    """`shardwise catalog objectives NAME`."""
    show_objectives(ObjectiveList(objectives=(entry,)))


def _chip_line(row: ChipRow) -> tuple[str, ...]:
    figures = {figure.path: figure for figure in row.figures}

    def value(path: str) -> str:
        return _shown(figures[path].value, figures[path].unit)[0] if path in figures else UNKNOWN

    unread = sum(figure.unverified for figure in row.figures)
    known = f"{len(row.figures)}, {unread} {NOT_READ}" if unread else f"{len(row.figures)}"
    paths = ("peak_flop_per_s.bf16", "hbm_bytes", "hbm_bytes_per_s")
    return row.id, row.kind, *map(value, paths), row.fabric, value("intra.bytes_per_s_one_way"), known


def _objective_line(entry: ObjectiveEntry) -> tuple[str, ...]:
    default = _listed(entry.default_of) or "-"
    return entry.name, entry.unit, entry.direction, _listed(entry.phases), default, entry.meaning


def _shown(value: float, unit: str) -> tuple[str, str]:
    shown_unit, scale = SHOWN_AS.get(unit, (unit, 1.0))
    return number(value / scale), shown_unit


def _basis(row: ModelRow) -> str:
    return "derived" if row.deviation_frac is None else f"{100 * row.deviation_frac:+.2f} % of published"


def _cell(value: object) -> str:
    if value is None:
        return "none stated"
    return f"{value:,.0f}" if isinstance(value, int | float) else str(value)


def _mark(unverified: bool) -> str:
    return NOT_READ if unverified else ""


def _numerics(lever: Lever) -> str:
    return "changes results" if lever.numerics else "same results"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
