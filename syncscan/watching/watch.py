"""Watch a program for as long as it runs: where its step's host is, by line, and how much of that is waiting.

A sampler tells where the thread is, some 23 times a second; a thread of the watch's own counts that by line, writes a
window every 20 seconds, and judges whether a line's share has grown. A step costs its thread one
clock. In a forked child nothing of it runs.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import platform
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from syncscan.capture import torch_hooks
from syncscan.capture.optimizer_hook import OptimizerCall, OptimizerHook, StepMarks
from syncscan.capture.program_name import clean_name, program_name, ranks
from syncscan.capture.repeated_loop import Repeats
from syncscan.errors import UsageError
from syncscan.patches import when_imported
from syncscan.watching.alarm import Alarms, Growth, Usual
from syncscan.watching.metrics import Sink, close
from syncscan.watching.sampler import RATE, LateSamples, OtherThreads, Sampler, Tick, stack_of
from syncscan.watching.single_capture import safely
from syncscan.watching.tally import Key, Tally
from syncscan.watching.thread_position import DEVICE, HOST, PositionLookup
from syncscan.watching.watch_file import Alarm, Begin, Captured, End, Journal, Record, Window

INTERVAL_S = 20.0
"""Seconds of a window: 460 samples, so that a share of a half is known to 5 points and one of 5 % to 2."""
DRAIN_S = 0.5
"""How often samples are counted, and lines judged."""
THREADS_EVERY = 6
"""Counts of which one also reads where the other threads are."""
MOST_ENDS = 1 << 16
"""Most ends of steps between two counts."""

logger = logging.getLogger("syncscan.watch")


class Watch:
    """A watch over this process, from `start` or `with` until `stop`; the process has one at most.

    `path` is the file of JSON lines, `steps` the number of steps so far, `alarms` the lines that have grown.

    Args:
        out: the folder of the file.
        name: what its name begins with.
        interval: seconds of a window.
        rate: samples a second.
        on_alarm: called with each `Alarm`, on the watch's thread.
        sinks: called with each record, on the watch's thread.
        hook: count steps by the optimizer, or what repeats, where `step` is not called.
        lazy: make the file only once a step has ended, and none where none does.
    """

    running: Watch | None = None

    def __init__(
        self,
        out: str | Path = "syncscan-out",
        *,
        name: str | None = None,
        interval: float = INTERVAL_S,
        rate: int = RATE,
        on_alarm: Callable[[Alarm], object] | None = None,
        sinks: Iterable[Sink] = (),
        hook: bool = True,
        lazy: bool = False,
    ) -> None:
        if interval <= 0 or not 1 <= rate <= 1000:
            raise UsageError(
                f"interval={interval} and rate={rate} aren't valid.",
                "The interval must be above 0, the rate 1 to 1000.",
            )
        self._out, self._name, self._interval, self._rate = Path(out).absolute(), name, interval, rate
        self._ident = threading.main_thread().ident or 0
        self._on_alarm, self._sinks = on_alarm, list(sinks)
        self.capture: Callable[[str], None] | None = None
        """Called with a sentence at the end of the step after an alarm, on the thread that steps."""
        self._wish = ""
        self._hooked, self._lazy = hook, lazy
        self.steps = 0
        self.path: Path | None = None
        self.alarms: list[Alarm] = []
        self.samples = 0
        self._ends: deque[int] = deque(maxlen=MOST_ENDS)
        self._pid = 0
        self._undo = contextlib.ExitStack()
        self._over = threading.Event()
        self._lock = threading.RLock()
        self._paused = False
        self._sampler: Sampler | None = None
        self._marks = StepMarks()
        self._by_hand = False
        self._counted_by = ""

    def __enter__(self) -> Watch:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> Watch:
        """Begin, and return the watch.

        Raises:
            UsageError: this process is watched already.
            OSError: the folder can't be written to.
        """
        if Watch.running is not None:
            raise UsageError("This process already has a watch.", "Stop that watch first.")
        rank, world = ranks()
        name = clean_name(self._name or program_name() or "python")
        name += f".rank{rank}" if world > 1 else ""
        self._pid = os.getpid()
        self._journal: Journal | None = None
        self._file = self._out / f"{name}.{self._pid}.watch.jsonl"
        if not self._lazy:
            self._open()
        self._places, self._began = PositionLookup(), time.time()
        self._tally = Tally()
        self._alarms, self._usual = Alarms(), Usual()
        self._others, self._late = OtherThreads(), LateSamples()
        self._sampler = Sampler(self._ident, self._rate)
        self._first = self._begin(name, rank, world)
        if self._journal is not None:
            self._write(self._first)
        Watch.running = self
        torch_hooks.unseen("syncscan.watching")
        self._undo.callback(torch_hooks.in_child(self._forget))
        self._hook()
        self._sampler.start()
        self._thread = threading.Thread(target=self._run, name="syncscan-watch", daemon=True)
        self._thread.start()
        atexit.register(self.stop)
        return self

    def step(self) -> None:
        """Mark the end of a step, where no optimizer does."""
        self._by_hand = True
        self._mark()

    def stop(self) -> None:
        """End the watch: the last window is written, and nothing of it is left in the process."""
        if Watch.running is not self or os.getpid() != self._pid:
            return
        Watch.running = None
        atexit.unregister(self.stop)
        self._over.set()
        self._undo.close()
        if threading.current_thread() is not self._thread:
            self._thread.join(10.0)
        with self._lock:
            self._count()
            if self._sampler is not None:
                self._sampler.stop()
            self._close_window()
            if self._journal is not None:
                lost = self._journal.lost
                self._write(End(at=time.time(), total_steps=self.steps, samples=self.samples, lost=lost))
                self._journal.close()
            close(self._sinks)

    @contextlib.contextmanager
    def paused(self) -> Any:
        """Take no samples meanwhile: a capture is under way. Enter and leave it on the main thread."""
        with self._lock:
            sampler, self._sampler, self._paused = self._sampler, None, True
        if sampler is not None:
            sampler.stop()
        try:
            yield
        finally:
            self._paused = False
            if Watch.running is self:
                self._sample()

    def captured(self, paths: Iterable[Path], why: str, failed: str | None) -> None:
        """Note a capture in the file."""
        self._write(Captured(at=time.time(), paths=tuple(map(str, paths)), why=why, failed=failed))

    def _begin(self, name: str, rank: int, world: int) -> Begin:
        torch: Any = sys.modules.get("torch")
        return Begin(
            at=self._began,
            program=name,
            host=socket.gethostname(),
            pid=self._pid,
            rank=rank,
            world=world,
            python=platform.python_version(),
            torch=str(getattr(torch, "__version__", "")),
            rate=self._rate,
            interval=self._interval,
        )

    def _hook(self) -> None:
        """Count steps by the optimizer's, else by the rounds of what repeats."""
        if not self._hooked:
            return
        self._undo.callback(OptimizerHook(self._stepped).remove)
        self._repeats = Repeats(self._chosen, self._round_ended, lambda sentence: None, impatient=False)
        self._undo.callback(self._repeats.close)
        self._undo.callback(when_imported("torch", self._look))

    def _look(self, torch: ModuleType) -> None:
        if not self._by_hand:
            self._repeats.start()

    def _chosen(self, what: str) -> None:
        self._counted_by = what

    def _round_ended(self) -> None:
        if self._counted_by and not self._by_hand:
            self._mark()

    def _stepped(self, optimizer: Any, arguments: Any, keywords: Any) -> None:
        if self._by_hand or os.getpid() != self._pid:
            return
        mark = self._marks.saw(optimizer, fixed=False)
        if mark is OptimizerCall.NOTHING:
            return
        if self._counted_by:
            self._repeats.close()
            self._counted_by = ""
        self._repeats.stop()
        self._mark()

    def _mark(self) -> None:
        self._ends.append(time.monotonic_ns())
        self.steps += 1
        if self.steps == 3:
            self._move()
        if self._wish:
            why, self._wish = self._wish, ""
            if self.capture is not None and not self._paused:
                self.capture(why)

    def _move(self) -> None:
        """Sample the thread that steps from now on."""
        ident, sampler = threading.get_ident(), self._sampler
        if sampler is None or ident == self._ident:
            return
        with self._lock:
            self._sampler, self._ident = None, ident
        sampler.stop()
        self._sample()

    def _sample(self) -> None:
        sampler = Sampler(self._ident, self._rate)
        sampler.start()
        with self._lock:
            self._sampler = sampler

    @property
    def lost(self) -> int:
        """Return the number of records that couldn't be written to the file."""
        return self._journal.lost if self._journal is not None else 0

    def stop_elsewhere(self) -> None:
        """End the watch from a thread that isn't the program's, at a moment in which torch walks through no hooks."""
        undo, self._undo = self._undo, contextlib.ExitStack()
        safely(undo.close)
        self.stop()

    def _forget(self) -> None:
        """Leave a forked child alone: it has no thread of the watch's, and no timer."""
        Watch.running = None
        self._undo.close()

    def _run(self) -> None:
        """Count, write and judge until the watch is stopped; what goes wrong is logged, and ends it."""
        try:
            self._window_at = time.monotonic()
            turn = 0
            while not self._over.wait(min(DRAIN_S, self._interval / 2)):
                turn += 1
                with self._lock:
                    self._count()
                    if turn % THREADS_EVERY == 0:
                        self._count_threads()
                    now = time.monotonic()
                    if now - self._window_at >= self._interval:
                        self._close_window()
        except Exception as error:
            logger.warning("syncscan's watch ended: %s: %s", type(error).__name__, error)

    def _count(self) -> None:
        """Count what was sampled since the last time."""
        ticks = self._sampler.take() if self._sampler is not None else []
        ends = [self._ends.popleft() for _ in range(len(self._ends))]
        last = self._last_end
        if last is None and ends:  # imports and the making of the model are no step's
            self._tally, self._window_at = Tally(), ends[0] / 1e9
            ticks = [tick for tick in ticks if tick.at >= ends[0]]
        self._others.look(self._ident)
        rows = [self._count_sample(tick) for tick in ticks]
        for end in ends:
            if last is not None:
                self._tally.steps.add(end - last)
            last = end
        self._last_end = last
        for growth in self._alarms.add(*self._usual.add(rows, ends)):
            self._alarm(growth)

    _last_end: int | None = None

    def _count_sample(self, tick: Tick) -> tuple[int, Key | None, int]:
        position = self._places(tick.stack)
        if position is None:
            return tick.at, None, 0
        if self._late.left_out(tick.ran, tick.others_ran, self._others.holding()):
            return tick.at, None, 0
        if tick.ran:
            position = position._replace(kind=HOST, rule="")
        self.samples += tick.times
        self._tally.add(position, tick.times)
        return tick.at, position[:3] if position.kind == DEVICE else None, tick.times

    def _count_threads(self) -> None:
        """Count where the other threads are; those of syncscan don't count."""
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        ours = {self._ident, threading.get_ident()}
        for ident, frame in sys._current_frames().items():
            name = names.get(ident, "")
            if ident not in ours and name and not name.startswith("syncscan"):
                position = self._places(stack_of(frame))
                self._tally.add_thread(
                    name, position if position is not None and self._places.is_own(position) else None
                )

    def _close_window(self) -> None:
        now = time.monotonic()
        seconds, self._window_at = now - self._window_at, now
        if seconds <= 0 or not (self._tally.samples or self._tally.steps.count):
            return
        window: Window = self._tally.window(time.time(), seconds, self.steps)
        self._tally = Tally()
        self._write(window)

    def _alarm(self, growth: Growth) -> None:
        (file, line, function), before, now = growth
        alarm = Alarm(
            at=time.time(),
            file=file,
            line=line,
            function=function,
            rule=self._tally.rule((file, line, function)),
            before=round(before, 4),
            now=round(now, 4),
            total_steps=self.steps,
        )
        self.alarms = [*self.alarms, alarm][-100:]
        self._wish = str(alarm)
        self._write(alarm)
        if self._on_alarm is None or logger.hasHandlers():  # Python itself prints what no handler takes
            logger.warning("%s", alarm)
        try:
            if self._on_alarm is not None:
                self._on_alarm(alarm)
        except Exception as error:
            logger.warning("an alarm's callback failed: %s: %s", type(error).__name__, error)

    def _open(self) -> None:
        self._journal = Journal(self._file)
        self.path = self._file

    def _write(self, record: Record) -> None:
        if self._journal is None:
            if not self.steps:
                return
            self._open()
            self._write(self._first)
        if self._journal is not None:
            self._journal.write(record)
        for sink in self._sinks:
            try:
                sink(record)
            except Exception as error:
                logger.warning("an export of the watch failed: %s: %s", type(error).__name__, error)
