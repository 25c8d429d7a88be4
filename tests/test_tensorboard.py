"""`syncscan.tensorboard.log`: scalars and a table for anything with the two methods of a SummaryWriter."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from syncscan import tensorboard
from tests.each import each
from tests.report.example import HOSTILE, STEP, UNPROJECTED, analysis, finding, hostile, typical


class Recorder:
    """A writer that remembers."""

    def __init__(self) -> None:
        self.scalars: dict[str, tuple[float, int | None]] = {}
        self.texts: dict[str, tuple[str, int | None]] = {}

    def add_scalar(self, tag: str, value: float, step: int | None = None) -> None:
        self.scalars[tag] = (value, step)

    def add_text(self, tag: str, text: str, step: int | None = None) -> None:
        self.texts[tag] = (text, step)


def logged(a: Any, step: int | None = 7) -> Recorder:
    writer = Recorder()
    tensorboard.log(a, writer, step)
    return writer


def test_the_numbers_of_the_step_are_curves_at_the_training_step() -> None:
    """Wait, bubble, recoverable, step and counts, at the step that was given; intended waits don't count."""
    assert logged(typical()).scalars == {
        "syncscan/wait_us": (8_210.5, 7),
        "syncscan/bubble_us": (8_900.0, 7),
        "syncscan/recoverable_us": (9_000.0, 7),
        "syncscan/step_us": (29_300.0, 7),
        "syncscan/syncs_per_step": (16.0, 7),
        "syncscan/findings": (3, 7),
    }


def test_what_was_not_projected_is_no_curve() -> None:
    """A recoverable that is unknown isn't logged as zero."""
    unprojected = analysis(finding(**UNPROJECTED), step=msgspec.structs.replace(STEP, recoverable_us=None))
    assert "syncscan/recoverable_us" not in logged(unprojected).scalars


def test_findings_are_a_table() -> None:
    """One row a finding, in the order of the report."""
    lines = logged(typical()).texts["syncscan/findings"][0].splitlines()
    assert len(lines) == 2 + 4
    assert lines[2].startswith("| nonzero waits to learn how many elements there are | `train/detect.py:42` |")
    assert "| 9.0 ms | 8.21 ms | 8.90 ms |" in lines[2]


def test_no_findings_are_reported() -> None:
    """An empty table would look like a failure."""
    assert logged(analysis()).texts["syncscan/findings"][0] == "No host-device syncs found."


@each("name", HOSTILE)
def test_hostile_names_stay_in_their_cell(name: str) -> None:
    """Whatever a name holds, the table has its rows and columns, and no HTML outside of code."""
    lines = tensorboard.table(hostile(name)).splitlines()
    assert len(lines) == 3
    assert lines[2].replace("\\|", "").count("|") == 8
    assert "<" not in re.sub(r"(`+).*?\1", "", lines[2])


def test_torchs_own_writer_takes_it(tmp_path: Path) -> None:
    """TensorBoard reads back what was written."""
    pytest.importorskip("torch")
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        tensorboard.log(typical(), writer, 3)
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [(e.step, e.value) for e in events.Scalars("syncscan/wait_us")] == [(3, 8_210.5)]
    text = events.Tensors("syncscan/findings/text_summary")[0].tensor_proto.string_val[0].decode()
    assert "nonzero waits to learn" in text
