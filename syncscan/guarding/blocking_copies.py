"""Find `non_blocking=True` copies that block the host anyway.

Torch's debug mode is silent about them: it hears of blocking copies alone. What decides is in `copy_kernel_cuda`
(aten/src/ATen/native/cuda/Copy.cu): memory that isn't pinned, and whatever goes through a temporary of such memory,
because the two sides differ in their strides.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from time import perf_counter_ns
from types import FrameType
from typing import Any, NamedTuple

from syncscan.capture.entry_points import Function, Method, replaced
from syncscan.dryrun.direct_copies import is_direct
from syncscan.model.race import RaceKind

STAGED_BYTES = 1_048_576
"""Largest copy in bytes from pageable memory to a busy device that didn't wait: 0.1 ms; 4 MB took the device's 100 ms
(H200, torch 2.11, `benchmarks/guard_cost.py`). The driver copies this much into its own buffer."""
SHORT_NS = 50_000
"""Least duration of a copy of more than `STAGED_BYTES` from pageable memory: the host reads its bytes, 0.1 ms per MB
(measured there). Shorter calls to a device aren't examined: `is_pinned()` alone takes 1.4 µs."""

_NOT_GIVEN: Any = object()
_READ, _WRITE = RaceKind.READ_BEFORE_COPY, RaceKind.WRITE_BEFORE_COPY


Opened = Callable[[RaceKind, Any, int, FrameType], None]
"""Called with the race that a use too early would be, the host's tensor, the device's index, and the caller's frame."""


def watch(
    note: Callable[[], None],
    opened: Opened | None = None,
    release: Callable[[Any], None] | None = None,
    further: tuple[type, ...] = (),
) -> Callable[[], None]:
    """Call `note()` after each non-blocking copy that blocked its thread, and `opened()` after each that didn't.

    A call of one argument, which asks for nothing non-blocking, is only passed on; of others first that is asked which
    a short copy to a device answers, for there a microsecond is much of the call.

    Args:
        note: is called from the wrapper.
        opened: called with the copies that may still run; None if nothing needs them.
        release: is called with a source of `further` before it is copied.
        further: classes of tensors that are looked at beside torch's own.

    Returns:
        A function that puts everything back.
    """
    torch = importlib.import_module("torch")
    plain = (torch.Tensor, torch.nn.Parameter, *further)
    after, each = _after(note, opened, plain), _Each(opened is not None, further, release)
    outwards, inwards = _noting_outwards(after, plain, each), _noting_inwards(after, plain, each)
    wrapped = (("to", outwards), ("cuda", outwards), ("copy_", inwards))
    return replaced(("torch.Tensor", name, wrap) for name, wrap in wrapped)


class _Each(NamedTuple):
    """Copies that are looked at besides those that take long."""

    short: bool
    """Whether short copies to a device are."""
    others: tuple[type, ...]
    release: Callable[[Any], None] | None


After = Callable[[Any, Any, bool, bool], None]
"""Called after a non-blocking copy with source, target, whether it took long, and whether both have one size."""


def _after(note: Callable[[], None], opened: Opened | None, plain: tuple[type, ...]) -> After:
    """Return what looks at a copy, two frames below its caller."""

    def after(source: Any, target: Any, long: bool, sized: bool) -> None:
        if type(source) not in plain:
            return
        index = target.get_device()
        if index < 0:
            if holds(source, target):
                note()
            elif opened is not None and not source.is_cpu:
                opened(_READ, target, source.get_device(), sys._getframe(2))
        elif long and holds(source, target):
            note()
        elif opened is None or not source.is_cpu:
            return
        elif (sized and source.is_contiguous()) or is_direct(source, target, outwards=False):
            opened(_WRITE, source, index, sys._getframe(2))

    return after


def _noting_outwards(after: After, plain: tuple[type, ...], hook: _Each) -> Callable[[Function], Method]:
    """Return a wrapper for methods that copy their tensor elsewhere, with all the signatures of `to`.

    Args:
        after: looks at a copy.
        plain: classes of the tensors that are looked at.
        hook: what else is looked at.
    """
    short, others, release = hook

    def wrap(original: Function) -> Method:
        def copied(tensor: Any, *arguments: Any, **keywords: Any) -> Any:
            if not keywords and len(arguments) < 2:
                return original(tensor, *arguments)
            if release is not None and type(tensor) in others:
                release(tensor)
            begun = perf_counter_ns()
            target = original(tensor, *arguments, **keywords)
            # Tracers' tensors, which have no memory, are of classes of their own.
            if type(target) in plain:
                long = perf_counter_ns() - begun >= SHORT_NS
                if (short or long or target.is_cpu) and (keywords.get("non_blocking") or _flag(arguments)):
                    after(tensor, target, long, True)
            return target

        return Method(original, copied)

    return wrap


def _noting_inwards(after: After, plain: tuple[type, ...], hook: _Each) -> Callable[[Function], Method]:
    """Return a wrapper for `copy_`, which has one signature: repacking arguments takes as long as all the rest here.

    Args:
        after: looks at a copy.
        plain: classes of the tensors that are looked at.
        hook: what else is looked at.
    """
    short, others, release = hook

    def wrap(original: Function) -> Method:
        def copied(tensor: Any, other: Any = _NOT_GIVEN, non_blocking: Any = False, **unknown: Any) -> Any:
            if unknown or other is _NOT_GIVEN:  # torch says what is wrong with them
                return original(tensor, *(() if other is _NOT_GIVEN else (other,)), **unknown)
            if not non_blocking:
                return original(tensor, other)
            if release is not None and type(other) in others:
                release(other)
            begun = perf_counter_ns()
            result = original(tensor, other, non_blocking)
            long = perf_counter_ns() - begun >= SHORT_NS
            if type(tensor) in plain and (short or long or tensor.is_cpu):
                after(other, tensor, long, other.numel() == tensor.numel())
            return result

        return Method(original, copied)

    return wrap


def _flag(arguments: tuple[Any, ...]) -> bool:
    """Return `non_blocking` given by position: in each of these methods the first bool after the first argument."""
    return next((given for given in arguments[1:] if given.__class__ is bool), False)


def holds(source: Any, target: Any) -> bool:
    """Return whether the host waits in a non-blocking copy from one tensor to another.

    Args:
        source: the tensor that is read.
        target: the tensor that is written, of any shape that the source can be expanded to.
    """
    if source.is_cpu == target.is_cpu or target.numel() == 0:
        return False
    if target.is_cpu:
        return not (target.is_pinned() and is_direct(source, target, outwards=True))
    if target.numel() * source.element_size() <= STAGED_BYTES:
        return False
    return not (source.is_pinned() and is_direct(source, target, outwards=False))
