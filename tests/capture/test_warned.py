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
    table = watch.table()
    assert table is not None
    assert [tid for tid, _ in table["warned"]] == [threading.get_native_id()] * 2
    inner = [table["frames"][table["stacks"][stack][0]] for _, stack in table["warned"]]
    assert inner == [[__file__, sync.__code__.co_firstlineno + 1, "sync"]] * 2


def test_other_warnings_go_where_they_went(watch: Warned) -> None:
    """The user's own are still shown."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        watch.open()
        warnings.warn("mine", stacklevel=1)
        watch.close()
    assert [str(warning.message) for warning in seen] == ["mine"]


def test_a_watch_that_was_never_open_has_no_table(watch: Warned) -> None:
    """That differs from a step without syncs."""
    assert watch.table() is None
    watch.open()
    watch.close()
    assert watch.table() == {"source": "warnings", "frames": [], "stacks": [], "warned": []}
