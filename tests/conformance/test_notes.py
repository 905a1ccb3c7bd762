"""What every bundled note keeps to; a new note file is found by itself."""

import re

import pytest

from knowledge_base.chunk import chunk_note
from knowledge_base.note import NOTES_FOLDER, PHASES, Note, inequality_holds, read_notes, recompute
from projector.catalog import chip
from projector.levers import LEVERS
from projector.specs.bottleneck import CAUSES
from projector.specs.hardware import HardwareProfile
from projector.units import GIGA, TERA

NOTES = read_notes(NOTES_FOLDER)
every_note = pytest.mark.parametrize("note", NOTES, ids=lambda note: note.id)


def test_there_are_at_least_forty_seven_notes() -> None:
    assert len(NOTES) >= 47


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("cause", sorted(set(CAUSES) - {"unknown"}))
def test_every_cause_a_diagnosis_can_give_has_a_note_in_each_phase(cause: str, phase: str) -> None:
    assert [note.id for note in NOTES if cause in note.causes and phase in note.phases]


@pytest.mark.parametrize("lever", LEVERS, ids=lambda lever: lever.name)
def test_every_lever_has_a_note_in_each_of_its_phases(lever: object) -> None:
    name, phases = lever.name, lever.phases  # type: ignore[attr-defined]
    covered = {phase for note in NOTES if name in note.levers for phase in note.phases}
    assert set(phases) <= covered


@every_note
def test_the_worked_number_and_the_inequality_recompute(note: Note) -> None:
    computed = recompute(note)
    for step in note.worked:
        assert step.value == pytest.approx(computed[step.name], rel=0.005)
    assert inequality_holds(note) is note.holds


@every_note
def test_the_text_states_every_worked_number(note: Note) -> None:
    text = " ".join(section.text for section in note.sections)
    stated = {number.replace(",", "") for number in re.findall(r"\d[\d,]*(?:\.\d+)?", text)}
    missing = [step.name for step in note.worked if f"{step.value:.10g}" not in stated]
    assert missing == []


@every_note
def test_the_text_states_the_inequality(note: Note) -> None:
    section = next(section for section in note.sections if section.slug == "the-inequality-that-decides")
    assert f"`{note.inequality}`" in " ".join(section.text.split())


@every_note
def test_symbols_in_the_text_are_defined_or_plan_fields(note: Note) -> None:
    plan_fields = {"tp", "pp", "vp", "cp", "ep", "etp", "dp"}
    known = plan_fields | note.variables.keys() | {step.name for step in note.worked}
    for section in note.sections:
        for quoted in re.findall(r"`([^`]+)`", section.text):
            assert set(re.findall(r"[a-z_]{2,}", quoted)) <= known


@every_note
def test_reports_the_text_names_are_among_the_sources(note: Note) -> None:
    titles = {source.title for source in note.sources}
    text = " ".join(" ".join(section.text for section in note.sections).split())
    for cited in re.findall(r"\(([^()]*(?:issue|pull request|discussion) \d+)\)", text):
        assert cited in titles


@every_note
def test_names_of_figures_carry_their_unit(note: Note) -> None:
    for symbol in [*note.variables, *(step.name for step in note.worked)]:
        assert "flops" not in symbol
        if "bandwidth" in symbol or re.search(r"(link|nic|network)", symbol):
            assert symbol.endswith("one_way") or not symbol.endswith("per_s")


@every_note
def test_a_passage_is_short_enough_to_quote(note: Note) -> None:
    assert len(chunk_note(note)) <= 10


def _figures(profile: HardwareProfile) -> dict[str, float]:
    """Datasheet figures by the names notes use for them."""
    figures = {
        "peak_tflop_per_s": profile.peak_flop_per_s["bf16"].value / TERA,
        "hbm_gb": profile.hbm_bytes.value / GIGA,
        "hbm_tb_per_s": profile.hbm_bytes_per_s.value / TERA,
        "link_gb_per_s_one_way": profile.intra.bytes_per_s_one_way.value / GIGA,
    }
    if profile.inter.bytes_per_s_one_way is not None:
        figures["nic_gb_per_s_one_way"] = profile.inter.bytes_per_s_one_way.value / GIGA
    if profile.intra.links_per_chip is not None:
        per_link = profile.intra.bytes_per_s_one_way.value / profile.intra.links_per_chip
        figures["ici_link_gb_per_s_one_way"] = per_link / GIGA
    return figures


@every_note
def test_hardware_figures_are_those_of_the_catalogue(note: Note) -> None:
    for name in note.chips:
        figures = _figures(chip(name))
        for symbol in note.variables.keys() & figures.keys():
            assert note.variables[symbol].value == pytest.approx(figures[symbol], rel=0.005), symbol
