"""Torch's switch for its callbacks: a real one, though on a CPU nothing but these tests looks at it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from syncscan.capture import callbacks

torch = pytest.importorskip("torch")


def value() -> bool:
    switch = callbacks.switch()
    assert switch is not None
    return bool(switch.value)


def test_this_torch_has_the_switch_and_the_lists() -> None:
    """A torch without them falls back to its debug mode; the one that is tested with must have them."""
    assert callbacks.switch() is not None
    assert set(callbacks.registries("cuda") or {}) == set(callbacks.REGISTRIES)


def test_torch_calls_between_start_and_stop_alone() -> None:
    """The switch and the lists are as before afterwards, as often as one likes."""
    lists = callbacks.registries("cuda")
    assert lists is not None
    before = {what: list(functions) for what, functions in lists.items()}
    for _ in range(3):
        seen: list[int] = []
        stop = callbacks.start(lists, {"stream": seen.append})
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
    lists, seen = callbacks.registries("cuda"), []
    assert lists is not None

    def note(kind: str) -> Callable[..., None]:
        return lambda *given: seen.append((kind, given))

    stop = callbacks.start(lists, {kind: note(kind) for kind in callbacks.REGISTRIES})
    getattr(torch.cuda._gpu_trace, registry).fire_callbacks(*arguments)
    stop()
    assert seen == [(event, arguments)]


def test_what_somebody_else_has_started_goes_on() -> None:
    """As torch's sanitizer would."""
    switch, lists = callbacks.switch(), callbacks.registries("cuda")
    assert switch is not None
    assert lists is not None
    switch.value = True
    try:
        callbacks.start(lists, {})()
        assert value()
    finally:
        switch.value = False


@pytest.mark.parametrize("name", ["SYMBOL", "LIBRARIES"])
def test_what_could_not_be_stopped_is_not_started(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch whose switch has another name, or none, is slower for good once it calls back."""
    monkeypatch.setattr(callbacks, name, "nothing" if name == "SYMBOL" else ())
    assert callbacks.registries("cuda") is None
    with pytest.raises(RuntimeError, match="couldn't be stopped"):
        callbacks.start({}, {})


def test_a_torch_without_the_module_has_no_callbacks() -> None:
    """Nothing is raised: the caller falls back."""
    assert callbacks.registries("no_such_vendor") is None
