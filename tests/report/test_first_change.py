"""The list of changes begins with what gains most."""

from __future__ import annotations

from pathlib import Path

from syncscan.model.habit import Basis
from syncscan.report.front import front_of
from tests.each import each
from tests.recordings import FOLDER, analyzed

STALLS = sorted(FOLDER.glob("stalls/*.json.gz"))
CASES = [*STALLS, *sorted(FOLDER.glob("whatif/*.gz")), *sorted(FOLDER.glob("programs/recorded/*.gz"))]


@each("path", CASES, ids=lambda path: path.name.partition(".")[0])
def test_the_largest_gain_heads_the_list(path: Path) -> None:
    """The largest is taken of syncs and habits, whatever their gain is based on; nothing else is advised in its
    place.
    """
    analysis = analyzed(path)
    habits = [h for h in analysis.habits if h.basis not in (None, Basis.UPPER_BOUND)]
    if not analysis.remedies or not habits:
        return
    most = max(habits, key=lambda habit: habit.recoverable_us or 0.0)
    first = analysis.remedies[0]
    assert most.recoverable_us is not None
    assert first.alone_us >= most.recoverable_us - 1e-6
    gains = [r.alone_us for r in analysis.remedies if r.basis is not Basis.UPPER_BOUND]
    assert gains == sorted(gains, reverse=True)


@each("path", STALLS, ids=lambda path: path.name.partition(".")[0])
def test_every_stall_is_in_the_list_of_changes(path: Path) -> None:
    """Each habit with a gain has its entry, and the first screen a change."""
    analysis = analyzed(path)
    listed = {r.habit for r in analysis.remedies}
    assert {h.id for h in analysis.habits if h.basis} <= listed
    assert front_of(analysis).changes
