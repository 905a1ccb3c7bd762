"""Rule: the inequality of a note with its notation, to be evaluated at other numbers than the worked ones."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from knowledge_base.expression import evaluate, holds, names
from knowledge_base.note import Decides, Note


@dataclass(frozen=True)
class Symbol:
    """One variable of a note: its value at the worked number, its unit and its meaning. Texts are the author's."""

    name: str
    value: float
    unit: str
    meaning: str


@dataclass(frozen=True)
class NoteRule:
    """decides "plan": the inequality is true of the plans the note speaks for; "advice": it is about something else.

    symbols: only those the inequality rests on, directly or through steps. steps: (name, expression) in order.
    """

    decides: Decides
    inequality: str
    symbols: tuple[Symbol, ...]
    steps: tuple[tuple[str, str], ...]

    @property
    def sides(self) -> tuple[str, ...]:
        """The names the inequality compares, in alphabetical order."""
        return tuple(sorted(names(self.inequality)))

    def values_at(self, values: Mapping[str, float]) -> dict[str, float]:
        """Symbols and steps at `values`, which has every symbol. InvalidDescription: a step has no value there."""
        known = dict(values)
        for name, expression in self.steps:
            known[name] = evaluate(expression, known)
        return known

    def holds_at(self, values: Mapping[str, float]) -> bool:
        """Whether the inequality is true there. InvalidDescription as `values_at`."""
        return holds(self.inequality, self.values_at(values))


def rule_of(note: Note) -> NoteRule:
    """The rule of a note, without the variables and steps its inequality does not rest on."""
    expressions = {step.name: step.expression for step in note.worked}
    needed: set[str] = set()
    waiting = list(names(note.inequality))
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += names(expressions[name]) if name in expressions else ()
    return NoteRule(
        decides=note.decides,
        inequality=note.inequality,
        symbols=tuple(
            Symbol(name, variable.value, variable.unit, variable.meaning)
            for name, variable in note.variables.items()
            if name in needed
        ),
        steps=tuple((step.name, step.expression) for step in note.worked if step.name in needed),
    )


def to_text(rule: NoteRule) -> str:
    """The rule as one line of JSON, the same for equal rules."""
    symbols = [[symbol.name, symbol.value, symbol.unit, symbol.meaning] for symbol in rule.symbols]
    return json.dumps([rule.decides, rule.inequality, symbols, rule.steps], separators=(",", ":"))


def from_text(text: str) -> NoteRule:
    """The rule that `to_text` wrote."""
    decides, inequality, symbols, steps = json.loads(text)
    return NoteRule(
        decides=decides,
        inequality=inequality,
        symbols=tuple(Symbol(name, value, unit, meaning) for name, value, unit, meaning in symbols),
        steps=tuple((name, expression) for name, expression in steps),
    )
