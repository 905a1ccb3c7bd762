"""Rows, workloads and sweeps as they stand in files: typed, or unreadable with a reason."""

import pytest
from evaluation_examples import VTRAIN_HEADER, read, row, row_values, text_of, workload_values

from agents.evaluation.material import TextFile, kind_of, read_material
from agents.evaluation.rows import MeasuredRow, Unreadable, read_rows
from agents.evaluation.vtrain import read_vtrain
from agents.evaluation.workloads import Workload, read_workloads
from projector.errors import InvalidDescription


def test_a_row_keeps_what_it_states_in_base_si():
    one = row(measured={"mem_gb_per_chip": 70, "tflops_per_chip": 400}, source="arXiv:2104.04473 Table 1 (read twice)")
    assert (one.chip, one.chips, one.seq_len) == ("H100-SXM", 8, 4096)
    assert one.measured.memory_bytes == 70e9
    assert one.measured.flop_per_s_per_chip == 400e12
    assert one.source == "arXiv:2104.04473"
    assert one.group == "small|h100-sxm"


def test_memory_is_read_in_the_unit_the_framework_prints():
    assert row(measured={"mem_gb_per_chip": 70}, framework="torchtitan").measured.memory_bytes == 70 * 2**30


@pytest.mark.parametrize(
    ("recompute", "extra", "waits"),
    [
        ("custom", None, None),
        ("custom (decoder_layer_input,out_proj offload)", None, True),
        ("custom", {"decoder_layer_input": "device"}, False),
        ("full", {"decoder_layer_input": "offload"}, True),
        ("full", None, False),
        (None, None, False),
    ],
)
def test_where_layer_inputs_wait_is_read_or_left_open(recompute, extra, waits):
    assert row(adopted={"recompute": recompute, "extra": extra}).plan.offloads_inputs is waits


def test_what_is_not_stated_is_unknown_and_counts_as_one_only_among_degrees():
    one = row(adopted={"tp": None, "vp": None, "ep": 4}, micro_batch=None)
    assert one.plan.tp is None
    assert one.plan.degrees == (1, 1, 1, 4)
    assert one.plan.vp is None
    assert one.micro_batch is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"seq_len": "long"}, "seq_len is 'long', not a number"),
        ({"seq_len": 4096.5}, "seq_len is 4096.5, not a whole number"),
        ({"global_batch": -8}, "global_batch is -8, not a positive number"),
        ({"adopted": {"tp": [2]}}, "adopted.tp is [2], not a number"),
        ({"adopted": "dp 8"}, "adopted is 'dp 8', not an object"),
        ({"measured": {"tokens_per_s_per_chip": 10**400}}, "not a number"),
        ({"measured": {"step_time_s": True}}, "measured.step_time_s is True, not a number"),
        ({"measured": {"step_time_s": 1e-300}}, "measured.step_time_s is 1e-300, not a positive number"),
        ({"hardware": {"count": 0}}, "chip or number of chips not stated"),
    ],
)
def test_an_odd_value_refuses_its_row_alone(changes, reason):
    odd, good = read(row_values("odd", **changes), row_values("good"))
    assert isinstance(odd, Unreadable)
    assert odd.id == "odd"
    assert reason in odd.reason
    assert isinstance(good, MeasuredRow)


@pytest.mark.parametrize("line", ["{not json", "[1, 2]", '{"seq_len": NaN}', "[" * 100_000])
def test_a_line_that_is_no_object_is_named_by_its_place(line):
    found = list(read_rows("\n" + line + "\n", "rows.jsonl"))
    assert [type(one) for one in found] == [Unreadable]
    assert found[0].id == "rows.jsonl:2"


def test_a_mesh_spells_out_degrees_that_the_row_leaves_open():
    mesh = {"ici_fsdp_parallelism": "-1", "ici_tensor_parallelism": "4", "ici_expert": 2, "dcn_data": 3}
    one = row(adopted={"tp": None, "ep": None, "mesh": mesh})
    assert one.plan.degrees == (4, 1, 1, 2)
    assert one.plan.slices == 3


@pytest.mark.parametrize(
    ("topology", "slices", "shape"),
    [
        ("4 slice(s) of 256 chips", 4, None),
        ("2 x v6e-256", 2, None),
        ("4x8x8", 1, (4, 8, 8)),
        ("Grand Teton", 1, None),
        (None, 1, None),
    ],
)
def test_topologies_as_sources_write_them(topology, slices, shape):
    one = row(hardware={"topology": topology})
    assert (one.slices, one.slice_shape) == (slices, shape)


def test_rows_that_differ_in_nothing_are_one_configuration():
    assert row("a").configuration == row("b").configuration
    assert row("a").configuration != row("a", adopted={"extra": {"dispatcher": "DeepEP"}}).configuration


def test_a_workload_states_its_experts_and_one_number_of_chips():
    several = workload_values("serving", phase="serving", count=[1, 2, 4])
    first, second, broken = read_workloads(text_of(workload_values(), several, {"chip": "x"}), "workloads.jsonl")
    assert isinstance(first, Workload)
    assert first.expert_rows == ("row-1",)
    assert first.chips == 8
    assert isinstance(second, Workload)
    assert second.chips is None
    assert isinstance(broken, Unreadable)


def test_a_sweep_of_vtrain_becomes_rows_of_one_workload():
    text = (
        VTRAIN_HEADER + "8,64,2,1024,16,24,2048,2,2,2,1500.5\n8,64,2,1024,16,24,2048,2,3,2,1\nx,1,1,1,1,1,1,1,1,1,1\n"
    )
    good, wrong, broken = read_vtrain(text, "vtrain_a100_single_node.csv")
    assert isinstance(good, MeasuredRow)
    assert good.measured.step_time_s == 1.5005
    assert good.plan.degrees == (2, 2, 1, 1)
    assert good.source == "vTrain single-node"
    assert isinstance(wrong, Unreadable)
    assert wrong.reason == "tp * dp * pp = 12, the row has 8 GPUs"
    assert isinstance(broken, Unreadable)


def test_files_are_told_apart_by_what_they_hold():
    files = {
        "rows": text_of(row_values()),
        "workloads": "\n{broken\n" + text_of(workload_values()),
        "vtrain": VTRAIN_HEADER,
    }
    for kind, text in files.items():
        assert kind_of(TextFile("any-name", text)) == kind
    material = read_material(TextFile(kind, text) for kind, text in files.items())
    assert material.row_ids == {"row-1"}
    assert material.strata == {"small|h100|8": "modern"}
    assert material.missing_rows() == frozenset()


def test_a_sweep_ends_where_its_text_is_no_table_any_more():
    line = "8,64,2,1024,16,24,2048,2,2,2,1500.5"
    good, broken = read_vtrain(f'{VTRAIN_HEADER}{line}\n"{"9" * 200_000}', "sweep.csv")
    assert isinstance(good, MeasuredRow)
    assert isinstance(broken, Unreadable)
    assert "field larger than field limit" in broken.reason


def test_a_long_first_line_does_not_hide_the_rows_behind_it():
    text = '{"note": "' + "x" * 200_000 + '"}\n' + text_of(row_values())
    assert kind_of(TextFile("rows.jsonl", text)) == "rows"


@pytest.mark.parametrize("text", ["", "chip,price\nh100,2\n", '{"hidden_size": 4096}\n'])
def test_a_file_of_another_kind_is_wrong_input(text):
    with pytest.raises(InvalidDescription, match="neither measured rows nor workloads"):
        kind_of(TextFile("other.txt", text))
