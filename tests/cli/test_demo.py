"""`syncscan demo` as a reader without a GPU sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from click.testing import CliRunner

import syncscan
from syncscan.cli import demo, group

SAMPLES = Path(__file__).parents[2] / "sample_traces"


def test_it_shows_a_step_that_gains_and_one_that_doesn_t() -> None:
    """With the guilty line of each, and ends with what that means."""
    shown: Any = CliRunner().invoke(group, ["demo"])
    assert shown.exit_code == 0, shown.output
    first, second = shown.stdout.split("\n2. ")
    assert "Syncs are the limit:" in first
    assert ":47, .item()" in first
    assert "The device is the limit:" in second
    end = " ".join(second[second.index("So the") :].split())
    assert "waits for 23% of its time and would be 27% shorter" in end
    assert "the second waits for 98% and would be less than 1% shorter" in end
    assert end.endswith("Next: syncscan profile your_script.py")


def test_its_recordings_are_of_the_programs_among_the_samples() -> None:
    """Every flagged line is still what waited: whoever moves one records them anew."""
    flagged = {
        (f.rule, f.excerpt.lines[f.excerpt.marked[0] - f.excerpt.first].strip())
        for trace in (demo.GAINS, demo.NOTHING)
        for f in syncscan.analyze(trace, source_roots=[f"syncscan/capture={SAMPLES}"]).findings
        if f.excerpt
    }
    pixels = "kept = by_pixel[mask.unsqueeze(-1).expand(-1, -1, -1, CLASSES)].reshape(-1, CLASSES)"
    assert flagged == {
        ("item", "history.append(loss.item())"),
        ("nonzero", "where = torch.nonzero(target == BACKGROUND, as_tuple=True)"),
        ("scalar-assign", "target[where] = IGNORED"),
        ("unique", "classes = self.torch.unique(target)"),
        ("boolean-index", "kept_target = target[mask]"),
        ("boolean-index", pixels),
        ("index-backward", pixels),
    }
