"""Changes that wait for a module."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from syncscan.patches import Patches, when_imported

NAME = "a_module_that_comes_later"


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / f"{NAME}.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    finders = list(sys.meta_path)
    yield
    sys.modules.pop(NAME, None)
    sys.meta_path[:] = finders


def test_the_action_runs_after_the_module() -> None:
    """It finds the module complete."""
    seen: list[int] = []
    when_imported(NAME, lambda module: seen.append(module.value))
    assert seen == []
    importlib.import_module(NAME)
    assert seen == [1]


def test_a_module_that_is_there_is_acted_on_at_once() -> None:
    """Nothing is left in the import system."""
    importlib.import_module(NAME)
    finders, seen = list(sys.meta_path), []
    when_imported(NAME, lambda module: seen.append(module.value))
    assert (seen, sys.meta_path) == ([1], finders)


def test_it_can_be_called_off() -> None:
    """Afterwards imports are as they were."""
    seen: list[int] = []
    when_imported(NAME, lambda module: seen.append(module.value))()
    importlib.import_module(NAME)
    assert seen == []


def test_a_module_that_is_only_looked_for_is_changed_when_it_is_imported() -> None:
    """Asking whether a module exists isn't importing it; afterwards it has a loader as any other."""
    with Patches() as patches:
        patches.when_imported(NAME, lambda module, patches: patches.set(module, "value", 2))
        assert importlib.util.find_spec(NAME) is not None
        module = importlib.import_module(NAME)
        assert module.value == 2
        assert "exec_module" not in vars(module.__loader__)
    assert module.value == 1


def test_several_actions_of_one_module_all_run() -> None:
    """A capture and its sampling each wait for torch: the one that came last is asked first, and all act."""
    acted: list[int] = []
    for number in (1, 2, 3):
        when_imported(NAME, lambda module, number=number: acted.append(number))  # type: ignore[misc]
    importlib.import_module(NAME)
    assert sorted(acted) == [1, 2, 3]
