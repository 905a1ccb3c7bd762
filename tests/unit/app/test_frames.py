"""Projections as a table for other programs."""

import sys
from pathlib import Path

import pandas as pd
import pytest

sys.path.append(str(Path(__file__).parents[2] / "api"))
import sample_answer

from app.commands.plan import _write_csv
from app.frames import projections_to_frame
from projector.errors import InvalidDescription


def test_one_row_a_projection_with_units_in_the_names():
    result = sample_answer.result()
    frame = projections_to_frame(result)
    assert len(frame) == 1 + sum(len(proposal.projections) for proposal in result.proposals)
    assert frame["proposal"].tolist()[:2] == ["current", "1"]
    assert {"step_time_s", "memory_bytes", "fit", "plan.tp"} <= set(frame.columns)
    assert frame["ttft_s"].isna().all(), "a figure nobody knows is missing"


def test_a_written_file_reads_back(tmp_path):
    result = sample_answer.result()
    _write_csv(result, tmp_path / "plan.csv")
    assert (
        pd.read_csv(tmp_path / "plan.csv")["step_time_s"].tolist()
        == projections_to_frame(result)["step_time_s"].tolist()
    )
    with pytest.raises(InvalidDescription, match="cannot write"):
        _write_csv(result, tmp_path / "no folder" / "plan.csv")
