"""The table of remedies and the cues that lead to it agree with each other, the notes and docs/remedies.md."""

from pathlib import Path
from typing import get_args

from agents.observed import Observed
from agents.remedies.facts import Facts
from agents.remedies.symptom import CUES
from agents.remedies.table import BY_LEVER, REMEDIES
from projector.specs.bottleneck import Cause

ROOT = Path(__file__).parents[3]
NOTES = {path.stem for path in (ROOT / "knowledge_base" / "notes").glob("*.md")}
DOCUMENT = ROOT / "docs" / "remedies.md"
HEADER = (
    "| lever | what to do | helps where | hurts where | usual gain | effort |\n| --- | --- | --- | --- | --- | --- |"
)


def table_text() -> str:
    """The table of docs/remedies.md, from the records; run this file to print it."""
    rows = [
        f"| {rule.lever}{' (layout)' if rule.layout else ''} | {rule.title} | {rule.helps} | {rule.hurts} | "
        f"{100 * rule.typical_gain_frac:+.0f} % | {rule.effort} |"
        for rule in REMEDIES
    ]
    return "\n".join([HEADER, *rows])


def test_every_lever_is_there_once() -> None:
    assert len(BY_LEVER) == len(REMEDIES)


def test_every_lever_of_a_cue_has_a_remedy_and_every_remedy_a_cue() -> None:
    of_cues = {lever for cue in CUES for lever in cue.levers}
    assert of_cues == set(BY_LEVER)


def test_every_sign_has_one_cue() -> None:
    names = [cue.sign for cue in CUES]
    assert len(names) == len(set(names))
    assert {cue.cause for cue in CUES} <= set(get_args(Cause))


def test_every_citation_is_a_note() -> None:
    assert {note for rule in REMEDIES for note in rule.notes} <= NOTES
    assert all(rule.notes for rule in REMEDIES)


def test_a_job_of_which_nothing_is_known_decides_no_gain() -> None:
    unknown = {rule.lever: rule.judge(Facts(setting="training")).direction for rule in REMEDIES}
    assert "helps" not in unknown.values()


def test_conditions_are_inequalities_with_two_sides() -> None:
    full = Facts(setting="training", observed=Observed(peak_memory_gb=79.0, memory_limit_gb=80.0))
    room = Facts(setting="training", observed=Observed(peak_memory_gb=40.0, memory_limit_gb=80.0))
    assert BY_LEVER["batch"].judge(full).direction == "hurts"
    assert BY_LEVER["recompute"].judge(room).direction == "helps"
    busy = Facts(setting="training", observed=Observed(exposed_communication_frac=0.3))
    host = Facts(setting="training", observed=Observed(exposed_communication_frac=0.3, host_frac=0.3))
    quiet = Facts(setting="training", observed=Observed(exposed_communication_frac=0.02))
    directions = [BY_LEVER["overlap"].judge(facts).direction for facts in (busy, host, quiet)]
    assert directions == ["helps", "hurts", "neutral"]


def test_the_document_shows_the_table() -> None:
    assert table_text() in DOCUMENT.read_text("utf-8"), "python tests/unit/agents/test_remedies_table.py prints it"


if __name__ == "__main__":
    print(table_text())
