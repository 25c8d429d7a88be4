"""Gains that a recording projects, and a patch that is measured beside its original."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from syncscan import api
from syncscan.fixing import fix_gains
from syncscan.fixing.fix_gains import of_analysis, projected, with_note
from syncscan.model.fix import Fixed, FixGain, Patched
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


def patch(**texts: str) -> Fixed:
    files = tuple(
        Patched(f"{name}.py", str(Path(f"{name}.py").absolute()), "", text, "utf-8", "") for name, text in texts.items()
    )
    return Fixed(program="train.py", fixes=(), files=files, waits_before=1, waits_after=0, tolerance=1e-5, seconds=0.0)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The program after the patch, the texts that it replaces, and what is in the user's folder meanwhile."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").touch()
    seen: list[Any] = []

    def prove(before: str, after: str, *, patched: Any = (), **options: Any) -> None:
        texts = {original.name: text.read_text() for original, text in patched}
        seen.append((after, texts, sorted(path.name for path in tmp_path.iterdir())))

    monkeypatch.setattr(fix_gains, "prove", prove)
    return seen


def test_a_patch_is_measured_at_the_programs_own_path(programs: list[Any]) -> None:
    """Whichever files it changes; the user's folder has no other file meanwhile."""
    fix_gains.prove_patch(patch(train="faster", scale="2"), 20.0)
    assert programs == [("train.py", {"train.py": "faster", "scale.py": "2"}, ["train.py"])]
