"""A patch is measured without a file in the user's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from syncscan.errors import UsageError
from syncscan.fixing import proving
from syncscan.model.fix import Fixed, Patched


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

    monkeypatch.setattr(proving, "prove", prove)
    return seen


def test_a_patch_is_measured_at_the_programs_own_path(programs: list[Any]) -> None:
    """Whichever files it changes; the user's folder has no other file meanwhile."""
    proving.prove_patch(patch(train="faster", scale="2"), 20.0)
    assert programs == [("train.py", {"train.py": "faster", "scale.py": "2"}, ["train.py"])]


def test_in_place_the_patched_program_lies_beside_the_original(programs: list[Any], tmp_path: Path) -> None:
    """There is no copy that could have its text; a patch of another file can't be measured so."""
    with pytest.raises(UsageError, match="the program's own file"):
        proving.prove_patch(patch(scale="2"), 20.0, in_place=True)
    proving.prove_patch(patch(train="faster"), 20.0, in_place=True)
    ((after, texts, files),) = programs
    assert (files, texts) == (["train.py", after], {})
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]
