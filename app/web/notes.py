"""The page of a note. Its text is whoever wrote it: markdown becomes markup, everything else in it stays text."""

from functools import cache

from markdown_it import MarkdownIt
from markupsafe import Markup

from app.notes import StoredNote
from app.web.pages import render

WEB = ("https://", "http://")


def note_page(stored: StoredNote) -> str:
    """The note with its sections, worked number and sources."""
    sections = [(section.heading, _markup(section.text)) for section in stored.note.sections]
    return render("note.html", note=stored.note, origin=stored.origin, sections=sections)


def _markup(text: str) -> Markup:
    """Markdown as markup of a few known tags: raw HTML is escaped, images are not shown, links lead to the web."""
    return Markup(_markdown().render(text))  # noqa: S704 (html is off: the renderer escapes all text)


@cache
def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table").disable("image")
    markdown.validateLink = lambda url: url.lower().startswith(WEB)  # type: ignore[method-assign]
    markdown.add_render_rule("link_open", _link_open)
    return markdown


def _link_open(self, tokens, index, options, env) -> str:  # type: ignore[no-untyped-def]
    tokens[index].attrSet("rel", "noopener noreferrer")
    return str(self.renderToken(tokens, index, options, env))
