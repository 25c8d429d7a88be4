"""Gains of a recording: of each line, and of a whole patch."""

from __future__ import annotations

from pathlib import Path

import msgspec

from syncscan import api
from syncscan.fixing.recorded_gains import of_analysis, projected
from tests.report.test_fix import fix

TRACE = str(Path(__file__).parents[2] / "sample_traces" / "logged.pt.trace.json.gz")


def test_a_patch_is_projected_as_a_whole() -> None:
    """Its lines' waits are removed together, and the saving is at least that of the one that saves most."""
    analysis = api.analyze(TRACE)
    gains = of_analysis(analysis)
    projection = projected(analysis, [fix(line, file=path) for path, line in gains])
    assert projection is not None
    assert set(projection.removed) == {f.id for f in analysis.findings if f.gain is not None and f.where.source}
    assert projection.saving_us >= max(gain.us for gain in gains.values()) * 0.99


def test_lines_that_the_recording_lacks_are_not_projected() -> None:
    assert projected(api.analyze(TRACE), [fix(3)]) is None


def test_the_wait_that_stays_for_several_is_not_projected_away() -> None:
    """Stacked reads still wait once, at the first of their lines."""
    analysis = api.analyze(TRACE)
    fixes = [fix(line, file=path) for path, line in of_analysis(analysis)]
    staying, *others = fixes
    shared = msgspec.structs.replace(staying, shared=True)
    assert projected(analysis, [shared, *others]) == projected(analysis, others)
    assert projected(analysis, [shared]) is None
