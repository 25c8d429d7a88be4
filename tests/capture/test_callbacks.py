"""Torch's switch for its callbacks: a real one, though on a CPU nothing but these tests looks at it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from syncscan.capture import sync_lines
from syncscan.capture.sync_lines import lines_table

torch = pytest.importorskip("torch")


def value() -> bool:
    switch = sync_lines.switch()
    assert switch is not None
    return bool(switch.value)


def test_this_torch_has_the_switch_and_the_lists() -> None:
    """A torch without them falls back to its debug mode; the one that is tested with must have them."""
    assert sync_lines.switch() is not None
    assert set(sync_lines.registries("cuda") or {}) == set(sync_lines.REGISTRIES)


def test_torch_calls_between_start_and_stop_alone() -> None:
    """The switch and the lists are as before afterwards, as often as one likes."""
    lists = sync_lines.registries("cuda")
    assert lists is not None
    before = {what: list(functions) for what, functions in lists.items()}
    for _ in range(3):
        seen: list[int] = []
        stop = sync_lines.start_callbacks(lists, {"stream": seen.append})
        assert value()
        torch.cuda._gpu_trace.StreamSynchronizationCallbacks.fire_callbacks(7)
        stop()
        assert (value(), lists, seen) == (False, before, [7])


@pytest.mark.parametrize(
    ("event", "registry", "arguments"),
    [
        ("stream", "StreamSynchronizationCallbacks", (7,)),
        ("device", "DeviceSynchronizationCallbacks", ()),
        ("event", "EventSynchronizationCallbacks", (7,)),
        ("record", "EventRecordCallbacks", (7, 8)),
        ("wait", "EventWaitCallbacks", (7, 8)),
    ],
)
def test_each_kind_is_called_back_for_what_it_is(event: str, registry: str, arguments: tuple[int, ...]) -> None:
    """With what torch hands over; the others aren't."""
    lists, seen = sync_lines.registries("cuda"), []
    assert lists is not None

    def note(kind: str) -> Callable[..., None]:
        return lambda *given: seen.append((kind, given))

    stop = sync_lines.start_callbacks(lists, {kind: note(kind) for kind in sync_lines.REGISTRIES})
    getattr(torch.cuda._gpu_trace, registry).fire_callbacks(*arguments)
    stop()
    assert seen == [(event, arguments)]


def test_what_somebody_else_has_started_goes_on() -> None:
    """As torch's sanitizer would."""
    switch, lists = sync_lines.switch(), sync_lines.registries("cuda")
    assert switch is not None
    assert lists is not None
    switch.value = True
    try:
        sync_lines.start_callbacks(lists, {})()
        assert value()
    finally:
        switch.value = False


@pytest.mark.parametrize("name", ["SYMBOL", "LIBRARIES"])
def test_what_could_not_be_stopped_is_not_started(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch whose switch has another name, or none, is slower for good once it calls back."""
    monkeypatch.setattr(sync_lines, name, "nothing" if name == "SYMBOL" else ())
    assert sync_lines.registries("cuda") is None
    with pytest.raises(RuntimeError, match="couldn't be stopped"):
        sync_lines.start_callbacks({}, {})


def test_a_torch_without_the_module_has_no_callbacks() -> None:
    """Nothing is raised: the caller falls back."""
    assert sync_lines.registries("no_such_vendor") is None


torch = pytest.importorskip("torch")


def act() -> None:
    """One of each that a CPU can do."""
    torch.unique(torch.ones(2, 2), dim=0)
    torch.eye(2).to_sparse().coalesce()


def test_each_call_is_timed_and_has_its_line() -> None:
    """Through torch's own Python wrapper, where there is one."""
    sync_lines.begin()
    act()
    recording = sync_lines.end()
    assert recording is not None
    table = lines_table(recording)
    stacks = [[table["frames"][i] for i in table["stacks"][row[3]]] for row in table["calls"]]
    here = [next(line for file, line, _ in stack if file == __file__) - act.__code__.co_firstlineno for stack in stacks]
    assert here == [2, 3]
    assert all(begin < end and tid == threading.get_native_id() for begin, end, tid, _ in table["calls"])
    assert not [file for stack in stacks for file, _, _ in stack if file == sync_lines.__file__]


def test_results_are_the_same() -> None:
    """Nothing but the time is taken."""
    x = torch.tensor([[1, 2], [1, 2], [0, 1]])
    plain = torch.unique(x, dim=0, return_counts=True)
    sync_lines.begin()
    noted = torch.unique(x, dim=0, return_counts=True)
    sync_lines.end()
    assert [a.tolist() for a in noted] == [a.tolist() for a in plain]


def test_everything_is_put_back() -> None:
    """Own attributes and inherited ones."""
    before = (torch.Tensor.coalesce, "coalesce" in vars(torch.Tensor), "unique_dim" in vars(torch._VF))
    undo = sync_lines.watch_calls(lambda begin, end: None)
    undo()
    assert (torch.Tensor.coalesce, "coalesce" in vars(torch.Tensor), "unique_dim" in vars(torch._VF)) == before
