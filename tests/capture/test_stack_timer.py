"""The main thread is sampled by the clock, or there is one sentence why not; nothing of it stays."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from syncscan.capture import signals, stack_timer
from syncscan.capture.signals import TerminationHandler
from syncscan.capture.stack_frames import line_of
from syncscan.capture.stack_timer import SIGNAL, NotSampled, Row, Ticks
from syncscan.capture.thread_usage import Meter
from syncscan.facts.program_phases import name_of
from tests.until import until as wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="samples on Linux alone")


@pytest.fixture
def sampler() -> Iterator[Ticks]:
    built = Ticks(500)
    yield built
    built.close()
    assert signal.getsignal(SIGNAL) is signal.SIG_DFL


def busy(seconds: float) -> int:
    """Python's own work."""
    until, count = time.perf_counter() + seconds, 0
    while time.perf_counter() < until:
        count += len(str(count))
    return count


def functions(samples: list[Row]) -> Counter[str]:
    """How many ticks each function has, alone and with what it calls."""
    counts: Counter[str] = Counter()
    for count, stack, _ in samples:
        for name in {name_of(code).rpartition(".")[2] for code in stack[::2]}:
            counts[name] += count
    return counts


def in_c(seconds: float) -> None:
    """C that holds the interpreter's lock, tens of ms at a time."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        sum(range(2_000_000))


def test_ticks_come_wherever_the_thread_is(sampler: Ticks) -> None:
    """In Python's work, in a sleep, and in C that holds the interpreter's lock over many ticks: they count as many."""
    began = time.monotonic_ns()
    sampler.start()
    busy(0.1)
    time.sleep(0.1)
    in_c(0.1)
    samples = sampler.stop()
    ticks = (time.monotonic_ns() - began) / sampler.period_ns
    assert functions(samples).keys() >= {"busy", "in_c", "test_ticks_come_wherever_the_thread_is"}
    assert sum(count for count, *_ in samples) <= ticks + 1
    assert max(count for count, *_ in samples) > 1


@pytest.mark.bench
def test_a_share_of_ticks_is_a_share_of_time(sampler: Ticks) -> None:
    """It holds for Python's work, for a sleep, and for C."""
    sampler.start()
    began = time.perf_counter()
    for _ in range(2):
        busy(0.2)
        time.sleep(0.2)
        in_c(0.2)
    took = time.perf_counter() - began
    samples = sampler.stop()
    counts, total = functions(samples), sum(count for count, *_ in samples)
    assert total == pytest.approx(500 * took, rel=0.1)
    assert counts["busy"] == pytest.approx(total / 3, rel=0.2)
    assert counts["in_c"] == pytest.approx(total / 3, rel=0.3)
    assert max(count for count, *_ in samples) > 5


def test_a_sample_is_a_whole_stack_with_its_lines(sampler: Ticks) -> None:
    """Innermost first, down to where the program begins."""
    sampler.start()
    busy(0.3)
    stacks = [stack for _, stack, _ in sampler.stop() if name_of(stack[0]) == "busy"]
    assert stacks
    for code, at in zip(stacks[0][::2], stacks[0][1::2], strict=True):
        assert line_of(code, at) >= code.co_firstlineno
    code, at = stacks[0][:2]
    first = busy.__code__.co_firstlineno
    assert first + 2 <= line_of(code, at) <= first + 5


def test_nothing_of_it_stays(sampler: Ticks) -> None:
    """No handler and no timer."""
    timers = open_timers()
    sampler.start()
    time.sleep(0.05)
    sampler.stop()
    assert signal.getsignal(SIGNAL) is signal.SIG_DFL
    assert open_timers() == timers - 1
    signal.raise_signal(SIGNAL)  # one that comes late is ignored


def open_timers() -> int:
    with open("/proc/self/timers") as file:
        return file.read().count("signal:")


def test_one_that_never_started_leaves_nothing_either() -> None:
    """As where the loop ended while it settled."""
    timers = open_timers()
    built = Ticks(500)
    assert built.stop() == []
    built.close()
    assert open_timers() == timers


def test_a_forked_child_is_not_sampled(sampler: Ticks) -> None:
    """A worker has no such timer, and what it closes stays its parent's."""
    sampler.start()
    pid = os.fork()
    if pid == 0:
        before = len(sampler._rows)
        busy(0.05)
        sampler.close()
        os._exit(len(sampler._rows) - before)
    assert os.waitpid(pid, 0)[1] == 0
    wait_until(lambda: len(sampler._rows) > 5)
    assert sampler.stop()


def test_a_program_that_is_started_meanwhile_is_not_killed(sampler: Ticks) -> None:
    """The signal is one that a process without a handler ignores."""
    sampler.start()
    done = subprocess.run([sys.executable, "-c", "import time; time.sleep(0.05)"], check=False)
    assert done.returncode == 0


def test_other_threads_are_left_alone(sampler: Ticks) -> None:
    """The signal is the main thread's: a call of theirs isn't interrupted."""
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(ctypes.CDLL(None, use_errno=True).usleep(200_000)))
    sampler.start()
    thread.start()
    busy(0.25)
    thread.join()
    sampler.stop()
    assert seen == [0]


def test_the_watchdog_of_signals_is_not_woken(monkeypatch: pytest.MonkeyPatch, sampler: Ticks) -> None:
    """Else each tick would make the thread give up the interpreter's lock; afterwards it is told again."""
    woken: list[bytes] = []
    read = os.read
    monkeypatch.setattr(signals.os, "read", lambda *where: woken.append(read(*where)) or woken[-1])
    ending = TerminationHandler(lambda name, resume: False)
    try:
        sampler.start()
        busy(0.1)
        sampler.stop()
        assert woken == []
        signal.raise_signal(signal.SIGTERM)
        wait_until(lambda: woken)
        assert woken == [bytes([signal.SIGTERM])]
    finally:
        ending.leave()


def test_a_pipe_that_an_event_loop_has_set_meanwhile_stays(sampler: Ticks) -> None:
    """It is the loop's own."""
    out, into = os.pipe()
    os.set_blocking(into, False)
    ending = TerminationHandler(lambda name, resume: True)
    try:
        sampler.start()
        signal.set_wakeup_fd(into)
        sampler.stop()
        assert signal.set_wakeup_fd(-1) == into
    finally:
        ending.leave()
        os.close(out)
        os.close(into)


def test_a_program_that_uses_the_signal_keeps_it() -> None:
    """Its handler stays, and it is told why there are no samples."""

    def own(number: int, frame: object) -> None:
        pass

    signal.signal(SIGNAL, own)
    try:
        with pytest.raises(NotSampled, match="the program uses SIGURG itself"):
            Ticks(500)
        assert signal.getsignal(SIGNAL) is own
    finally:
        signal.signal(SIGNAL, signal.SIG_DFL)


def test_another_thread_can_not_be_sampled() -> None:
    """Python handles signals in the main one."""
    messages: list[str] = []

    def attempt() -> None:
        try:
            Ticks(500)
        except NotSampled as reason:
            messages.append(str(reason))

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    assert messages == ["the steps don't run in the main thread."]


@pytest.mark.parametrize(("name", "value"), [("platform", "darwin"), ("maxsize", 2**31 - 1)])
def test_other_systems_are_reported(name: str, value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """It needs system calls that only Linux has."""
    monkeypatch.setattr(sys, name, value)
    with pytest.raises(NotSampled, match="64-bit Linux"):
        Ticks(500)


def test_a_system_without_timers_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a sandbox forbids them, or the C library has none."""

    class Refuses:
        def timer_create(self, *arguments: object) -> int:
            return -1

    monkeypatch.setattr(stack_timer.ctypes, "CDLL", lambda name: Refuses())
    with pytest.raises(NotSampled, match="the system provides no timer"):
        Ticks(500)
    monkeypatch.setattr(stack_timer.ctypes, "CDLL", lambda name: object())
    with pytest.raises(NotSampled, match="the C library has no timers"):
        Ticks(500)


def test_a_compiled_step_does_not_compile_the_handler() -> None:
    """Torch's compiler looks at every function that runs inside of what it has compiled: here the reader's too."""
    torch = pytest.importorskip("torch")
    dynamo = pytest.importorskip("torch._dynamo")
    dynamo.reset()

    @torch.compile(backend="eager")
    def step(x: Any) -> Any:
        for _ in range(20):
            x = x + 1
        return x

    x = torch.ones(8)
    step(x)
    compiled = sum(dynamo.utils.counters["frames"].values())
    meter = Meter()
    sampler = Ticks(500, meter.read)
    meter.start()
    sampler.start()
    while len(sampler._rows) < 20:
        step(x)
    samples = sampler.stop()
    assert all(read.cpu > 0 for *_, read in samples)
    assert sum(dynamo.utils.counters["frames"].values()) == compiled
