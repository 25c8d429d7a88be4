"""A dry run's findings are set against those of a recording: its figures, never scaled; what one side lacks is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

import syncscan
from syncscan import api, gate, report
from syncscan.errors import UsageError
from syncscan.model.analysis import Analysis
from tests.builder import TraceBuilder

torch = pytest.importorskip("torch")
PAGEABLE = "Memcpy HtoD (Pageable -> Device)"


@pytest.fixture(scope="module")
def dry() -> Analysis:
    """Reads in two scopes, and a batch that is copied."""
    with syncscan.pretend_gpu() as rec:
        for _ in range(2):
            rec.step()
            with torch.profiler.record_function("load"):
                x = torch.ones(100).to("cuda")
            with torch.profiler.record_function("log"):
                x.sum().item()
            with torch.profiler.record_function("only here"):
                x.tolist()
        rec.end_step()
    return rec.analysis


def recording(copied: int = 400) -> Analysis:
    """Build the program's recording on a GPU: without lines, and with a place of its own."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=1000):
        with t.scope("load", start + 10, start + 200):
            t.sync("aten::to > aten::_to_copy > aten::copy_", at=start + 20, wait=100, copy=PAGEABLE)
        with t.scope("log", start + 210, start + 600):
            t.launch("gemm", at=start + 212, lasts=200)
            t.sync("aten::item", at=start + 220, wait=300)
        with t.scope("only there", start + 610, start + 900):
            t.sync("aten::nonzero", at=start + 620, wait=50)
    for event in t.events:
        if event.get("name") == PAGEABLE:
            event["args"]["bytes"] = copied
    return api.analyze_trace(t.trace())


def test_figures_are_the_recordings(dry: Analysis) -> None:
    """Each finding has its counterpart's, the costliest first; what is in one of the two alone is told."""
    there = recording()
    liked = gate.liken(dry, there)
    like = liked.likeness
    assert like is not None
    matches = {f.scope[0]: f for f in liked.findings}
    item = next(f for f in there.findings if f.scope == ("log",))
    theirs = like.counterparts[matches["log"].id]
    assert theirs.findings == (item.id,)
    assert (theirs.wait_us, theirs.recoverable_us) == (item.wait_us, item.recoverable_us)
    assert matches["only here"].id not in like.counterparts
    assert [f.scope for f in like.unseen] == [("only there",)]
    assert liked.findings[-1] is matches["only here"]
    assert matches["log"].recoverable_us is None


@pytest.mark.parametrize(
    ("copied", "same", "text"),
    [
        (400, True, "Its copies have the same sizes as this run's (1 compared)."),
        (4_000_000, False, "Its sizes differ (a copy of 4 MB is 400 bytes here); costs weren't scaled."),
        (0, None, "Whether the sizes match is unknown: both runs copy only single numbers."),
    ],
)
def test_other_sizes_are_reported(dry: Analysis, copied: int, same: bool | None, text: str) -> None:
    """By the bytes of copies at the same places; the figures stay as recorded."""
    liked = gate.liken(dry, recording(copied))
    document = json.loads(report.render(liked, "json"))
    assert (document["dry_run"]["like"]["same_sizes"], document["dry_run"]["like"]["sizes"]) == (same, text)
    assert text in " ".join(report.render(liked, "text", width=200).split())


def test_json_has_both_sides(dry: Analysis) -> None:
    """The dry run's costs stay null; the recording's stand under `like`."""
    recorded = recording()
    document = json.loads(report.render(gate.liken(dry, recorded), "json"))
    matches = {f["scope"][0]: f for f in document["findings"]}
    assert matches["log"]["recoverable_us"] is None
    assert matches["log"]["like"]["per_step"] == 1.0
    assert matches["only here"]["like"] is None
    assert document["dry_run"]["like"]["step_us"] == recorded.step.observed_us
    assert [unseen["where"] for unseen in document["dry_run"]["like"]["unseen"]] == ["only there · aten::nonzero"]
    assert document["dry_run"]["ops"] == dry.trace.info.capture.coverage.ops  # type: ignore[union-attr]


def test_only_a_dry_run_is_set_beside_a_recording(dry: Analysis) -> None:
    """Anything else is refused with a sentence."""
    with pytest.raises(UsageError, match="a dry run and a recording"):
        gate.liken(dry, dry)
    with pytest.raises(UsageError, match="a dry run and a recording"):
        gate.liken(recording(), recording())


def test_a_path_does_as_well(tmp_path: Path) -> None:
    """A trace, or a saved analysis of it."""
    with syncscan.pretend_gpu() as rec, torch.profiler.record_function("log"):
        torch.ones(2, device="cuda").sum().item()
    recorded = recording()
    saved = tmp_path / "there.syncscan.json"
    saved.write_text(recorded.to_saved(), encoding="utf-8")
    liked = rec.like(saved)
    assert liked.likeness is not None
    assert list(liked.likeness.counterparts) == [rec.findings[0].id]
    assert liked.likeness == replace(rec.like(recorded).likeness, path=liked.likeness.path)
