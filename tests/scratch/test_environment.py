"""Which folders pass through a view."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncscan.scratch.environment import cache_folders


def test_a_cache_passes_through_and_the_working_folder_never_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a variable names it, or a folder above it: checkpoints lie there."""
    work, cache = tmp_path / "mine" / "work", tmp_path / "cache"
    work.mkdir(parents=True)
    cache.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("HF_HUB_CACHE", ".")
    monkeypatch.setenv("PIP_CACHE_DIR", str(work.parent))
    monkeypatch.setenv("UV_CACHE_DIR", str(cache))
    assert {work, work.parent, cache} & set(cache_folders()) == {cache}
