"""Which non-blocking copies hold the host, by where both sides lie and how."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import pytest

from syncscan.guarding import blocking_copies
from syncscan.guarding.guarded_sync import frames_of

torch = pytest.importorskip("torch")

LARGE = 1024, 1024


@dataclass
class On:
    """A tensor that says that it lies on a device, or is pinned: there is none here."""

    real: Any
    is_cpu: bool
    pinned: bool = False

    def is_pinned(self) -> bool:
        return self.pinned

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


def device(real: Any) -> On:
    return On(real, is_cpu=False)


def host(real: Any, pinned: bool = False) -> On:
    return On(real, is_cpu=True, pinned=pinned)


x = torch.empty(LARGE)
few = torch.empty(16)


@pytest.mark.parametrize(
    ("source", "target", "holds"),
    [
        (device(x), host(x), True),
        (device(few), host(few), True),
        (device(x), host(x, pinned=True), False),
        (device(x), host(x.double(), pinned=True), False),
        (device(x), host(x.t(), pinned=True), True),
        (device(x.t()), host(x.t(), pinned=True), False),
        (device(x[:, ::2]), host(x[:, ::2], pinned=True), True),
        (host(x, pinned=True), device(x), False),
        (host(x, pinned=True), device(x.double()), False),
        (host(x.t(), pinned=True), device(x.t()), False),
        (host(x.t(), pinned=True), device(x.t().double()), True),
        (host(x[:, ::2], pinned=True), device(x[:, ::2].contiguous()), True),
        (host(x[:1].expand(LARGE), pinned=True), device(x), True),
        (host(x), device(x), True),
        (host(few), device(few), False),
        (device(x), device(x.t()), False),
        (host(x), host(x.t()), False),
        (device(x[:0]), host(x[:0]), False),
    ],
)
def test_what_holds_the_host(source: On, target: On, holds: bool) -> None:
    """Pageable memory, and what torch must copy into some first; small copies to the device the driver keeps."""
    assert blocking_copies.holds(source, target) is holds


@pytest.mark.parametrize(
    ("call", "requested"),
    [
        (lambda t: t.to(torch.float64), False),
        (lambda t: t.to(torch.float64, non_blocking=True), True),
        (lambda t: t.to("cpu", torch.float64, True), True),
        (lambda t: t.to("cpu", torch.float64, False, True), False),
        (lambda t: t.to(torch.float64, True), True),
        (lambda t: torch.empty(3).copy_(t), False),
        (lambda t: torch.empty(3).copy_(t, True), True),
        (lambda t: torch.empty(3).copy_(other=t, non_blocking=False), False),
        (lambda t: torch.empty(3).copy_(other=t, non_blocking=True), True),
        (lambda t: torch.nn.Linear(2, 2).to("cpu", non_blocking=True), True),
    ],
)
def test_non_blocking_is_found_wherever_it_stands(call: Any, requested: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name or by its place; the value is what it would be."""
    noted: list[int] = []
    monkeypatch.setattr(blocking_copies, "holds", lambda source, target: True)
    stop = blocking_copies.watch(lambda: noted.append(1))
    try:
        watched = call(torch.ones(3))
    finally:
        stop()
    assert bool(noted) is requested
    if isinstance(watched, torch.Tensor):
        assert torch.equal(watched, call(torch.ones(3)))


def test_a_short_call_is_not_looked_at_where_it_copies_to_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking whether memory is pinned takes longer than what a guard may add; a wait takes long."""
    looked: list[int] = []
    monkeypatch.setattr(blocking_copies, "holds", lambda source, target: looked.append(1))
    monkeypatch.setattr(blocking_copies, "SHORT_NS", 10**12)
    target = torch.empty(3)
    stop = blocking_copies.watch(lambda: None)
    try:
        target.copy_(torch.ones(3), non_blocking=True)
        torch.empty(3, device="meta").copy_(torch.ones(3), non_blocking=True)
    finally:
        stop()
    assert looked == [1]


def test_a_blocking_copy_is_its_callers_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch warns of it below the wrapper, whose frames are nobody's."""
    chains: list[Any] = []

    class Tensor:
        to = blocking_copies._noting_outwards(lambda: None, ())(
            lambda tensor: chains.append(frames_of(sys._getframe()))
        )

    Tensor().to()
    assert [frame.f_code.co_filename for frame in chains[0][:2]] == [__file__, __file__]


def test_subclasses_are_asked_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """`__torch_function__` gets the function that it would get, and a tracer's tensor isn't looked at."""
    seen: list[Any] = []

    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(function)
            return super().__torch_function__(function, types, args, kwargs or {})

    monkeypatch.setattr(blocking_copies, "holds", lambda source, target: pytest.fail("looked at"))
    tensor = torch.ones(3).as_subclass(Own)
    tensor.to(torch.float64, non_blocking=True)
    stop = blocking_copies.watch(lambda: None)
    tensor.to(torch.float64, non_blocking=True)
    stop()
    assert [function is torch.Tensor.to for function in seen] == [True, True]
