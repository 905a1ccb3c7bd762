"""Pages: every one is complete in itself (its style inline, no script, nothing loaded from anywhere).

All text is escaped by the template engine. The content policy forbids scripts and everything that is not the page's
own style, so a string of a trace that looked like markup could do nothing even if it got through.
"""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse

from agents.findings import Evidence, Shares
from app import wording
from app.history_tables import remarks
from app.schemas import PlanAnswer, PlanPending, Problem
from app.schemas_launch import ProposalLaunch
from app.tables_advisor import advice_lines
from projector.units import bytes_to_gb

REPORT_NAMES = {
    "compute": "compute",
    "exposed_communication": "exposed communication",
    "exposed_copy": "exposed copies",
    "idle": "idle",
}


@dataclass(frozen=True)
class Segment:
    """One part of the stacked bar; start and width as fractions of the bar."""

    key: str
    label: str
    start_frac: float
    width_frac: float


def report_page(answer: PlanAnswer, launch: Sequence[ProposalLaunch]) -> str:
    """The whole answer as a page, with how each proposal is launched."""
    return render(
        "report.html",
        answer=answer,
        bar=segments(answer.diagnosis.shares),
        evidence=evidence_of(answer),
        launch={each.rank: each.configs for each in launch},
        advice=advice_lines(answer.provenance, answer.proposals),
    )


def pending_page(pending: PlanPending) -> str:
    """A page that asks again by itself."""
    return render("pending.html", pending=pending)


def failed_page(problem: Problem) -> str:
    """Why there is no report."""
    return render("problem.html", problem=problem)


def start_page(max_upload_bytes: int) -> str:
    """What the service does, and a form."""
    return render("start.html", max_upload_gb=wording.number(bytes_to_gb(max_upload_bytes)))


def page_response(html: str, status: int = 200) -> HTMLResponse:
    """The page with the policy that fits it."""
    policy = (
        f"default-src 'none'; style-src 'sha256-{_style_digest()}'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    )
    return HTMLResponse(html, status, {"Content-Security-Policy": policy})


def segments(shares: Shares | None) -> tuple[Segment, ...]:
    """The stacked bar of the window; nothing where nothing was measured or projected."""
    start, parts = 0.0, []
    if shares is None:
        return ()
    for key, label in REPORT_NAMES.items():
        width = getattr(shares, key)
        parts.append(Segment(key, label, start, width))
        start += width
    return tuple(parts)


def evidence_of(answer: PlanAnswer) -> tuple[Evidence, ...]:
    """All evidence once, what the diagnosis rests on first."""
    return tuple({item.id: item for item in (*answer.diagnosis.evidence, *answer.evidence)}.values())


def render(template: str, **context: object) -> str:
    """A page of the templates; every value is escaped unless it is Markup."""
    return _environment().get_template(template).render(style=_style(), **context)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("app", "web/templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name in (
        "number",
        "ms",
        "ns_as_ms",
        "gb",
        "percent",
        "change",
        "words",
        "plain",
        "plan_text",
        "memory_text",
        "aim_text",
    ):
        environment.filters[name] = getattr(wording, name)
    environment.globals |= {"headline": wording.headline, "figure": wording.figure, "grouped": wording.grouped_changes}
    environment.filters |= {
        "remarks": remarks,
        "verdict": wording.verdict,
        "figures": wording.figures,
        "split_source": wording.split_source,
        "gain_text": wording.gain_text,
    }
    return environment


@cache
def _style() -> Markup:
    return Markup(files("app").joinpath("web/static/page.css").read_text("utf-8"))  # noqa: S704 (our own file)


@cache
def _style_digest() -> str:
    return b64encode(sha256(_style().encode()).digest()).decode()
