"""docs/serving.md holds the tables of levers and objectives as they are."""

from tests.validation.write_serving_tables import PAGE, page


def test_the_tables_are_those_of_the_code():
    text = PAGE.read_text()
    assert "<!-- levers -->" in text
    assert "<!-- objectives -->" in text
    assert page(text) == text, "run python -m tests.validation.write_serving_tables"
