"""Which notes are out of date, by rule: superseded, past their date, or older than a release they speak of."""

from datetime import date

from knowledge_base.note import Note


def outdated(note: Note) -> str:
    """Why the note is out of date whatever the day; empty where it is not.

    A note is stale if another supersedes it, or if all its sources are older than a release it names and nobody has
    reviewed it since that release. A source dated by its year counts as of the end of that year.
    """
    if note.superseded_by is not None:
        return f"superseded by {note.superseded_by}"
    newest = max(source.read or date(source.year or date.min.year, 12, 31) for source in note.sources)
    for release in sorted(note.releases, key=lambda one: (one.released, one.name)):
        seen = max(newest, note.reviewed or newest)
        if seen < release.released:
            return f"its sources end {newest}, before {release.name} of {release.released}"
    return ""


def stale_on(today: date | None, *, outdated: str, valid_until: str) -> str:
    """Why a stored note is stale; empty where it is not. today None: dates are not compared with the day."""
    if outdated or today is None or not valid_until:
        return outdated
    return f"valid until {valid_until}" if date.fromisoformat(valid_until) < today else ""
