"""What `shardwise knowledge` prints for people."""

from app.schemas_knowledge import IndexReport, KnowledgeAnswer, NoteAdded
from app.tables_parts import console, heading, paragraph
from app.wording import plain, words


def show_found(answer: KnowledgeAnswer) -> None:
    """`shardwise knowledge search`."""
    out = console()
    if not answer.notes:
        paragraph(out, "No note passes the filters.")
    for note in answer.notes:
        heading(out, f"{plain(note.title)} [{note.note_id}, similarity {note.similarity:.2f}]")
        paragraph(out, note.quote)
        paragraph(out, f"Relieves {', '.join(map(words, note.causes))}; levers {', '.join(note.levers) or 'none'}")
        for source in note.sources:
            paragraph(out, source, indent="    ")


def show_added(added: NoteAdded) -> None:
    """`shardwise knowledge add`."""
    out = console()
    heading(out, f"{'Added' if added.created else 'Replaced'} {added.id}")
    if added.index is None:
        paragraph(
            out,
            "Another process owns the store and has not read the note yet: it does when it starts again. "
            "To have it at once, POST the note to /v1/knowledge of that service.",
        )
    else:
        show_index(added.index)


def show_index(report: IndexReport) -> None:
    """`shardwise knowledge rebuild`, and the index after an addition."""
    passages = (
        f"{report.embedded} embedded, {report.updated} updated, {report.deleted} deleted, {report.unchanged} kept"
    )
    beside = f"{report.past_cases:,} past optimisations beside them"
    paragraph(console(), f"{report.notes} notes, {report.chunks} passages: {passages}; {beside}")
