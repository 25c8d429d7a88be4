"""Gains of a recording: of each line, and of a whole patch."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from syncscan import api
from syncscan.fixing.recorded_gains import of_analysis, projected, with_note
from syncscan.model.fix import FixGain
from tests.fixing.test_report import FIXED, fix

TRACE = str(Path(__file__).parents[2] / "sample_traces" / "logged.pt.trace.json.gz")


def test_a_patch_is_projected_as_a_whole() -> None:
    """Its lines' waits are removed together, and the saving is at least that of the one that saves most."""
    analysis = api.analyze(TRACE)
    gains = of_analysis(analysis)
    projection = projected(analysis, [fix(line, file=path) for path, line in gains])
    assert projection is not None
    assert set(projection.removed) == {f.id for f in analysis.findings if f.recoverable_us is not None and f.source}
    assert projection.saving_us >= max(gain.us for gain in gains.values()) * 0.99


def test_a_recording_of_another_program_is_noticed() -> None:
    """It has none of the fixes' lines; where it has one, there is nothing to note."""
    other, same = replace(fix(3), gain=None), replace(fix(3), gain=FixGain(1.0, 0.5, 2.0, 0.1))
    patches = [replace(FIXED, fixes=fixes, notes=()) for fixes in ((other,), (same,), ())]
    assert [len(with_note(patch, "t.json").notes) for patch in patches] == [1, 0, 0]


def test_lines_that_the_recording_lacks_are_not_projected() -> None:
    assert projected(api.analyze(TRACE), [fix(3)]) is None


def test_the_wait_that_stays_for_several_is_not_projected_away() -> None:
    """Stacked reads still wait once, at the first of their lines."""
    analysis = api.analyze(TRACE)
    fixes = [fix(line, file=path) for path, line in of_analysis(analysis)]
    staying, *others = fixes
    shared = replace(staying, shared=True)
    assert projected(analysis, [shared, *others]) == projected(analysis, others)
    assert projected(analysis, [shared]) is None
