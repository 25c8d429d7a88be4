"""The name of a captured process's traces, and which processes belong together."""

from __future__ import annotations

import sys

import pytest

from syncscan.capture import captured_process


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """No launcher has started this process."""
    for name in ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("path", "name"), [("/a/train.py", "train"), ("/a/pkg/__main__.py", "pkg"), ("/env/yolo", "yolo")]
)
def test_traces_have_the_name_of_the_script_or_the_package(
    monkeypatch: pytest.MonkeyPatch, path: str, name: str
) -> None:
    """A package that runs as a module has a `__main__.py`, as all have."""
    monkeypatch.setattr(sys, "argv", [path])
    assert captured_process.program_name() == name


def test_ranks_with_one_rendezvous_are_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another port is another program; without any it is who started them."""
    started = captured_process.group_of_ranks()
    monkeypatch.setenv("MASTER_PORT", "1")
    first = captured_process.group_of_ranks()
    monkeypatch.setenv("MASTER_PORT", "2")
    assert len({started, first, captured_process.group_of_ranks()}) == 3


@pytest.mark.parametrize(("here", "all_of_them", "expected"), [("", "", True), ("2", "2", True), ("2", "4", False)])
def test_ranks_of_several_machines_aren_t_ended(
    monkeypatch: pytest.MonkeyPatch, here: str, all_of_them: str, expected: bool
) -> None:
    """Ranks on another machine couldn't know at which step to end."""
    monkeypatch.setenv("LOCAL_WORLD_SIZE", here)
    monkeypatch.setenv("WORLD_SIZE", all_of_them)
    assert captured_process.on_one_machine() is expected
