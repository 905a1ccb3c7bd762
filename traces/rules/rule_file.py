"""A file of name rules: read, checked entry by entry, and refused with the entry and the reason."""

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from projector.errors import InvalidDescription
from traces.rules.names import comparable
from traces.rules.pattern import why_refused
from traces.rules.rule import MEANINGS, TABLES, Rule

LONGEST_FILE_BYTES: Final = 1_000_000
MOST_RULES: Final = 1_000
_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_TEXTS: Final = ("table", "meaning", "id", "pattern", "source")
_LISTS: Final = ("examples", "not_examples")
_NEEDED: Final = ("table", "meaning", "id", "pattern", "examples")


def read_rules(path: Path) -> tuple[Rule, ...]:
    """The rules of an operator's file, in its order; they go before the built-in ones (`rules_with`).

    Raises `InvalidDescription` naming file, entry and reason: a file that is missing, too large, or no TOML; a field
    that is missing, unknown or of the wrong type; a table or meaning that is not in the vocabulary; a pattern that does
    not compile or could take long (`why_refused`); an example that another entry or none decides.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LONGEST_FILE_BYTES + 1)
    except OSError as error:
        raise _refused(path.name, "", f"cannot be read: {error.strerror}") from error
    if len(content) > LONGEST_FILE_BYTES:
        raise _refused(path.name, "", f"has more than {LONGEST_FILE_BYTES:,} bytes")
    return parse_rules(content, path.name, own=True)


def parse_rules(content: bytes, file: str, *, own: bool) -> tuple[Rule, ...]:
    """Rules of a file's content. Examples are tried only of an operator's file; tests try those of the built-in one."""
    try:
        document = tomllib.loads(content.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _refused(file, "", f"is no TOML: {error}") from error
    unknown = sorted(set(document) - {"rule"})
    if unknown:
        raise _refused(file, "", f"has {unknown[0]!r}; only [[rule]] entries belong there")
    entries = document.get("rule", [])
    if not isinstance(entries, list):
        raise _refused(file, "", "has [rule]; entries are written [[rule]]")
    if len(entries) > MOST_RULES:
        raise _refused(file, "", f"has {len(entries):,} entries, {MOST_RULES:,} are allowed")
    rules = tuple(_rule(entry, f"entry {number}", file, own=own) for number, entry in enumerate(entries, 1))
    _check_ids(rules, file)
    if own:
        for rule in rules:
            why = misjudged(rule, rules)
            if why:
                raise _refused(file, f"entry {rule.id!r}", why)
    return rules


def misjudged(rule: Rule, rules: Iterable[Rule]) -> str:
    """Which example of a rule another rule of its table decides, or which counter-example it takes; '' if all hold."""
    before = [other for other in rules if other.table == rule.table]
    before = before[: before.index(rule)]
    for example in rule.examples:
        name = comparable(example, on_host=rule.on_host)
        if not rule.matches(name):
            return f"its example {example[:80]!r} is not found by its pattern"
        earlier = next((other for other in before if other.matches(name)), None)
        if earlier is not None:
            return f"its example {example[:80]!r} is decided by {earlier.id!r} before it"
    for example in rule.not_examples:
        if rule.matches(comparable(example, on_host=rule.on_host)):
            return f"its pattern finds {example[:80]!r}, which it must not"
    return ""


def _rule(entry: Any, where: str, file: str, *, own: bool) -> Rule:
    if not isinstance(entry, dict):
        raise _refused(file, where, "is no table of fields")
    where = f"entry {entry['id']!r}" if isinstance(entry.get("id"), str) else where
    unknown = sorted(set(entry) - {*_TEXTS, *_LISTS})
    missing = [name for name in _NEEDED if not entry.get(name)]
    if unknown or missing:
        raise _refused(file, where, f"has no field {unknown[0]!r}" if unknown else f"lacks {missing[0]!r}")
    for name in _TEXTS:
        if not isinstance(entry.get(name, ""), str):
            raise _refused(file, where, f"{name} is no text")
    for name in _LISTS:
        listed = entry.get(name, [])
        if not isinstance(listed, list) or not all(isinstance(one, str) and one for one in listed):
            raise _refused(file, where, f"{name} is no list of texts")
    _check_words(entry, where, file)
    return Rule(
        table=entry["table"],
        meaning=entry["meaning"],
        id=entry["id"],
        pattern=entry["pattern"],
        examples=tuple(entry["examples"]),
        not_examples=tuple(entry.get("not_examples", ())),
        source=entry.get("source", ""),
        own=own,
    )


def _check_words(entry: dict[str, Any], where: str, file: str) -> None:
    if entry["table"] not in TABLES:
        raise _refused(file, where, f"table {entry['table']!r} is none of {', '.join(TABLES)}")
    meanings = MEANINGS[entry["table"]]
    if entry["meaning"] not in meanings:
        raise _refused(file, where, f"meaning {entry['meaning']!r} is none of {', '.join(meanings)}")
    if not _ID.fullmatch(entry["id"]):
        raise _refused(file, where, "id is not up to 40 of a to z, 0 to 9 and hyphens")
    why = why_refused(entry["pattern"])
    if why:
        raise _refused(file, where, f"pattern {entry['pattern'][:80]!r} is refused: {why}")


def _check_ids(rules: tuple[Rule, ...], file: str) -> None:
    seen: set[tuple[str, str]] = set()
    for rule in rules:
        if (rule.label, rule.table) in seen:
            raise _refused(file, f"entry {rule.id!r}", f"another entry of table {rule.table} has its meaning and id")
        seen.add((rule.label, rule.table))


def _refused(file: str, where: str, why: str) -> InvalidDescription:
    subject = f"{file}, {where}:" if where else file
    return InvalidDescription(f"{subject} {why}", hint="kernel_rules.toml in the package shows the form")
