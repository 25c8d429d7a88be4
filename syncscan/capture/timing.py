"""Time a call correctly: after a warm-up, by the device's clock, many times, without one-time costs."""

from __future__ import annotations

import functools
import importlib
import inspect
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from syncscan.capture import device as machine
from syncscan.capture.stopwatch import Call, DeviceStopwatch, HostStopwatch, Stopwatch, alone, in_a_row, unsynchronized
from syncscan.capture.throughput import Search
from syncscan.errors import MissingExtra, UsageError, installing
from syncscan.model.timing import Clock, Naive, OneOff, Timing

SETTLED = 0.02
"""Difference of two consecutive warm-up windows' medians, as a fraction, below which the time has stabilized."""
WINDOW_S = 0.1
MIN_WARMUP = 10
MAX_WARMUP_S = 5.0
ALONE = 10
RUN, RUNS = 50, 7
"""Calls in a run, and runs, where a sample has to be a whole run."""
UNSEEN, UNSEEN_US = 1.1, 1000.0
"""Factor and time by which a run may exceed its events' time before there must be work that they don't see."""
UNEVEN = 0.1

Inputs = Callable[..., Any] | Sequence[Any] | None


def time_step(
    fn: Callable[..., Any],
    inputs: Inputs = None,
    *,
    device: str | None = None,
    repetitions: int = 100,
    seconds: float = 1.0,
    throughput: bool = False,
    compare_naive: bool = False,
    max_batch: int = 1 << 20,
    name: str | None = None,
) -> Timing:
    """Time a step or an inference.

    Calls run back to back, as in a real loop. Before them a warm-up lasts until the time has settled. On an accelerator
    the device's events take the time and the host waits once, at the end; on a CPU the host's clock does.

    Args:
        fn: what to time, called with `inputs`. An `nn.Module` is moved to the device.
        inputs: its arguments, moved to the device once; or a function that makes them, of the batch size if it takes an
            argument. Without it `fn` is called with nothing, and under `throughput` with the batch size.
        device: e.g. `"cuda:0"` or `"cpu"`; the machine's accelerator if it has one, else the CPU, if not given.
        repetitions: samples at least.
        seconds: how long to go on sampling at least, at most 10,000 samples.
        throughput: search for the batch size with the most samples per second.
        compare_naive: measure what usual mistakes would report.
        max_batch: the largest batch size that the search tries.
        name: how a report calls it; the function's name if not given.

    Raises:
        UsageError: the device isn't there, or `fn` can't be called with a batch size.
        MissingExtra: torch isn't installed.
    """
    torch = _torch()
    device_name, watch = _clock(torch, device)
    prepared = _PreparedCall(torch, fn, inputs, device_name, watch, sized=throughput)
    call, one_offs = prepared.call(), prepared.one_offs
    first = alone(watch, call, 1)[0]
    stable, calls, warmup_us = _warm_up(watch, call)
    one_offs += [
        OneOff("first call", first, "kernels are loaded, algorithms chosen, memory allocated"),
        OneOff("warm-up", warmup_us, f"{calls} calls until the time was stable"),
    ]
    samples, block, clock = _sample(watch, call, repetitions, seconds)
    lone = statistics.median(alone(watch, call, ALONE))
    return Timing(
        name=name or str(getattr(fn, "__name__", type(fn).__name__)),
        clock=clock,
        device=_device_name(torch, device_name),
        samples_us=tuple(samples),
        block=block,
        alone_us=lone,
        one_offs=tuple(one_offs),
        stable=stable,
        naive=_naive(prepared, call, watch, first, statistics.median(samples)) if compare_naive else (),
        throughput=Search(prepared.for_batch, watch, max_batch=max_batch).run() if throughput else None,
        notes=_notes(watch, clock, stable, samples),
    )


class _PreparedCall:
    """The call to time, with its inputs and module on the device; the time to move them there is separate."""

    def __init__(
        self, torch: Any, fn: Callable[..., Any], inputs: Inputs, device_name: str, watch: Stopwatch, *, sized: bool
    ) -> None:
        self.torch, self.fn, self.inputs, self.where, self.watch = torch, fn, inputs, device_name, watch
        self.sized = sized
        self.one_offs: list[OneOff] = []
        self.moved: tuple[Any, ...] | None = None
        """The inputs before they were moved, if moving changed them."""

    def call(self) -> Call:
        if self.watch.clock is Clock.DEVICE:
            self._initialize()
        inputs = None if self.inputs is None else self._make(1)
        began = time.perf_counter_ns()
        if isinstance(self.fn, self.torch.nn.Module):
            self.fn.to(self.where)
        if inputs is None:
            return self._bare()
        arguments = tuple(self._to_device(a) for a in inputs)
        self.watch.drain()
        took = (time.perf_counter_ns() - began) / 1e3
        if any(a is not b for a, b in zip(arguments, inputs, strict=True)):
            self.moved = inputs
            self.one_offs.append(OneOff("copy to the device", took, "module and inputs"))
        _require_takes(self.fn, arguments)
        return functools.partial(self.fn, *arguments)

    def _bare(self) -> Call:
        """Return the function without inputs: called without arguments, or with a batch of one where it takes that."""
        needed = _needed(self.fn)
        if needed == 0 and not self.sized:
            return self.fn
        if self.sized and (needed == 1 or (needed == 0 and _takes_argument(self.fn))):
            return functools.partial(self.fn, 1)
        name = getattr(self.fn, "__name__", "the function")
        raise UsageError(
            f"{name} can't be called with {'a batch size' if self.sized else 'nothing'}.",
            "Give a function that returns its arguments: --inputs NAME, or inputs= in Python.",
        )

    def for_batch(self, batch: int) -> Call:
        if not callable(self.inputs):
            return functools.partial(self.fn, batch)
        return functools.partial(self.fn, *(self._to_device(a) for a in self._make(batch)))

    def with_copy(self) -> Call | None:
        """Return the call with the copy of its inputs included; None where they are on the device already."""
        if self.moved is None:
            return None
        inputs = self.moved
        return lambda: self.fn(*(self._to_device(a) for a in inputs))

    def _initialize(self) -> None:
        backend = machine.backend()
        fresh = backend is not None and not backend.is_initialized()
        began = time.perf_counter_ns()
        self.torch.zeros(1, device=self.where)
        self.watch.drain()
        if fresh:
            self.one_offs.append(OneOff("initialization", (time.perf_counter_ns() - began) / 1e3, "of the device"))

    def _make(self, batch: int) -> tuple[Any, ...]:
        inputs = self.inputs
        if callable(inputs):
            inputs = inputs(batch) if _takes_argument(inputs) else inputs()
        return tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)

    def _to_device(self, value: Any) -> Any:
        return value.to(self.where) if isinstance(value, self.torch.Tensor) else value


def _require_takes(fn: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        inspect.signature(fn).bind(*arguments)
    except TypeError as e:
        name = getattr(fn, "__name__", "the function")
        raise UsageError(
            f"{name} doesn't take its inputs as arguments: {e}.",
            "The function of --inputs returns one argument, or a tuple of all.",
        ) from None
    except ValueError:  # of a function in C, which doesn't tell
        pass


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as e:
        raise MissingExtra("Timing needs torch.", f"Install it with: {installing('capture')}") from e


def _clock(torch: Any, device: str | None) -> tuple[str, Stopwatch]:
    backend = machine.backend()
    if device is None:
        device = str(getattr(backend, "__name__", "torch.cpu")).rpartition(".")[2]
    try:
        kind = torch.device(device).type
    except RuntimeError as e:
        raise UsageError(f"'{device}' isn't a device that this torch knows.", "Try 'cuda', 'cuda:0' or 'cpu'.") from e
    if kind == "cpu":
        return device, HostStopwatch()
    if backend is None or not str(backend.__name__).endswith(kind):
        raise UsageError(f"There is no device '{device}' here.", "Leave out --device to use the available device.")
    return device, DeviceStopwatch(backend)


def _device_name(torch: Any, where: str) -> str:
    if torch.device(where).type == "cpu":
        return f"CPU, {torch.get_num_threads()} threads"
    return str(machine.backend().get_device_name(where))


def _warm_up(watch: Stopwatch, call: Call) -> tuple[bool, int, float]:
    """Call until two windows in a row take the same time; return whether they did, the number of calls, and µs."""
    began, calls, last = time.perf_counter_ns(), 0, 0.0
    window = 3
    while True:
        taken = watch.blocks(call, window, 1)
        calls += window
        now, spent = statistics.median(taken), (time.perf_counter_ns() - began) / 1e3
        settled = abs(now - last) <= SETTLED * now and spent >= 2 * WINDOW_S * 1e6
        if calls >= MIN_WARMUP and (settled or spent >= MAX_WARMUP_S * 1e6):
            return settled, calls, spent
        last = now
        window = max(3, min(1000, int(WINDOW_S * 1e6 / max(now, 1.0))))


def _sample(watch: Stopwatch, call: Call, repetitions: int, seconds: float) -> tuple[list[float], int, Clock]:
    """Return the samples, the number of calls that each averages, and the clock that took them.

    Events see the current stream alone. Where a run lasted longer than its events say, the step works on streams of its
    own; then a sample is a whole run, by the host's clock, the device drained before and behind it.
    """
    block = in_a_row(watch, call, statistics.median(watch.blocks(call, 10, 1)))
    samples: list[float] = []
    began, spent = time.monotonic(), 0.0
    while len(samples) < repetitions or (time.monotonic() - began < seconds and len(samples) < 10_000):
        run_began = time.perf_counter_ns()
        samples += watch.blocks(call, repetitions, block)
        spent += (time.perf_counter_ns() - run_began) / 1e3
    if watch.clock is Clock.HOST or spent <= UNSEEN * sum(samples) * block + UNSEEN_US:
        return samples, block, watch.clock
    length = max(RUN, repetitions)
    return [_mean_until_drained(watch, call, length) for _ in range(RUNS)], length, Clock.HOST


def _mean_until_drained(watch: Stopwatch, call: Call, calls: int) -> float:
    """Return the mean time of a call in one run, until the device has finished, in µs of the host's clock."""
    watch.drain()
    began = time.perf_counter_ns()
    for _ in range(calls):
        call()
    watch.drain()
    return (time.perf_counter_ns() - began) / 1e3 / calls


def _naive(prepared: _PreparedCall, call: Call, watch: Stopwatch, first: float, right: float) -> tuple[Naive, ...]:
    mistakes = [Naive("a single call, no warm-up", first, "it includes one-time costs")]
    if watch.clock is Clock.DEVICE:
        launches = statistics.fmean(unsynchronized(watch, call, 10))
        mistakes.append(Naive("time.time() without synchronizing", launches, _why_unsynchronized(launches, right)))
    copying = prepared.with_copy()
    if copying is not None:
        copying()
        taken = statistics.median(watch.blocks(copying, 30, 1))
        mistakes.append(
            Naive("the copy to the device inside", taken, "it includes the transfer, which a loader would hide")
        )
    return tuple(mistakes)


def _why_unsynchronized(launches: float, right: float) -> str:
    if launches < 0.9 * right:
        return "the host only launches; the device still works when the clock stops"
    return "the host is slower here, so its clock happens to be close; with a faster host or larger batch it "
    "wouldn't be"


def _notes(watch: Stopwatch, clock: Clock, stable: bool, samples: Sequence[float]) -> tuple[str, ...]:
    notes = []
    if watch.clock is Clock.HOST:
        notes.append("Timed with the host's clock: on a CPU, there is no device to wait for.")
    elif clock is Clock.HOST:
        notes.append(
            "The step uses its own streams, which events on the current stream don't cover: each sample is a "
            "whole run timed with the host's clock, with the device drained before and after it."
        )
    if not stable:
        notes.append(f"The time wasn't stable after {MAX_WARMUP_S:.0f} s of warm-up: is the machine busy?")
    mean, median = statistics.fmean(samples), statistics.median(samples)
    if abs(mean - median) > UNEVEN * median:
        notes.append("Mean and median differ: calls come in bursts or were disturbed. Throughput follows the mean.")
    return tuple(notes)


def _takes_argument(function: Callable[..., Any]) -> bool:
    return bool(_positional(function))


def _needed(function: Callable[..., Any]) -> int:
    """Return how many arguments a call must have."""
    return sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in _positional(function))


def _positional(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
