"""Who advised: whose order and words an answer has, what was left out of a model's words, where it leaves the rules."""

from collections.abc import Sequence

from rich.console import Console

from agents.findings import Disagreement, Proposal, Provenance
from app.tables_parts import bullet, paragraph, section
from app.wording import plain

NAMES = {"rules": "the rules", "llm": "the language model"}


def advice_lines(provenance: Provenance, proposals: Sequence[Proposal]) -> tuple[str, ...]:
    """The same as sentences, for text and page; nothing where only the rules were asked."""
    if provenance.usage is None and not provenance.fallback_reason:
        return ()
    lines = [f"Order by {NAMES[provenance.order_by]}."]
    for whose, name in NAMES.items():
        ranks = [str(proposal.rank) for proposal in proposals if proposal.written_by == whose]
        if ranks:
            lines.append(f"Words of {name}: proposal {', '.join(ranks)}.")
    if provenance.redacted:
        lines.append("Names were hidden from the language model.")
    if provenance.fallback_reason:
        lines.append(f"{provenance.fallback_reason[:1].upper()}{provenance.fallback_reason[1:]}.")
    left_out = [
        f"Left out, proposal {dropped.rank}, one {'sentence' if dropped.part == 'rationale' else 'risk'}: "
        f"{'; '.join(dropped.reasons)}."
        for dropped in provenance.dropped_sentences
    ]
    return (*lines, *left_out, *_parting(provenance.disagreement))


def _parting(apart: Disagreement | None) -> tuple[str, ...]:
    return () if apart is None else (apart.text,)


def show_advice(out: Console, provenance: Provenance, proposals: Sequence[Proposal]) -> None:
    """Part of `shardwise plan`."""
    lines = advice_lines(provenance, proposals)
    if lines:
        section(out, "Who advised")
        paragraph(out, plain(lines[0]))
        for line in lines[1:]:
            bullet(out, plain(line))
