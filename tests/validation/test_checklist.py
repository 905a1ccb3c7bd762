"""The checklist page names a test for every item, and every test it names exists."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "checklist.md"
ROW = re.compile(r"^\| (\d+) \| (.+?) \| (.+?) \|$", re.MULTILINE)
REFERENCE = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


def rows() -> dict[int, list[tuple[str, str]]]:
    return {int(number): REFERENCE.findall(shown) for number, _, shown in ROW.findall(PAGE.read_text())}


def test_every_item_has_a_test() -> None:
    found = rows()
    assert sorted(found) == list(range(1, 43))
    assert [number for number, references in found.items() if not references] == []


def test_every_test_that_is_named_exists() -> None:
    named = {reference for references in rows().values() for reference in references}
    missing = [
        f"{path}::{name}"
        for path, name in sorted(named)
        if not (TESTS / path).exists() or f"def {name}(" not in (TESTS / path).read_text()
    ]
    assert missing == []
