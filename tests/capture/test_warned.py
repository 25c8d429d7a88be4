"""Lines from torch's warnings, where it has no callbacks."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator

import pytest

from syncscan.capture.warned import MESSAGE, Warned

torch = pytest.importorskip("torch")


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Warned]:
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: 0)
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", lambda mode: None)
    watch = Warned()
    yield watch
    watch.close()


def sync() -> None:
    warnings.warn(f"{MESSAGE} (Triggered internally at CUDAFunctions.cpp:180.)", stacklevel=1)


def test_the_same_line_counts_each_time(watch: Warned) -> None:
    """Python would show such a warning once."""
    watch.open()
    sync()
    sync()
    watch.close()
    assert [tid for tid, _ in watch.stacks] == [threading.get_native_id()] * 2
    assert [stack[0] for _, stack in watch.stacks] == [(__file__, sync.__code__.co_firstlineno + 1, "sync")] * 2


def test_other_warnings_go_where_they_went(watch: Warned) -> None:
    """The user's own are still shown."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        watch.open()
        warnings.warn("mine", stacklevel=1)
        watch.close()
    assert [str(warning.message) for warning in seen] == ["mine"]


def test_everything_is_put_back(watch: Warned, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mode that the user had chosen, the filters, and how warnings are shown."""
    modes: list[object] = []
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)
    before = (list(warnings.filters), warnings.showwarning)
    watch.open()
    watch.close()
    assert (list(warnings.filters), warnings.showwarning) == before
    assert modes == ["warn", 2]
