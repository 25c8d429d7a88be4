"""Run a test under a guard or a recording, or on the CPU as if on a GPU, and collect its syncs."""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import FrameType

from syncscan.capture.stack_frames import outward
from syncscan.dryrun.device_kinds import kind_of
from syncscan.dryrun.pretend import Pretence
from syncscan.dryrun.recorder import DryRunSession, RecordedWait
from syncscan.errors import UsageError
from syncscan.guarding.guard import Guard
from syncscan.guarding.guarded_sync import GuardedSync, of_dry_run, written_reason
from syncscan.model.analysis import Analysis
from syncscan.model.capture import Coverage
from syncscan.model.finding import Finding
from syncscan.model.libraries import is_library

_DRYRUN = str(Path(__file__).parents[1] / "dryrun")
_KINDS = {"cudaDeviceSynchronize": "device", "cudaEventSynchronize": "event", "cudaFree": "call"}


class DryRun:
    """The dry run of one test: `syncs` are those that a guard would have seen, once `warmup` steps have ended."""

    def __init__(self, warmup: int = 0, device: str = "cuda") -> None:
        self._warmup = warmup
        self._guard = Guard(0, None, self._take, warmup=warmup, name="test")
        self._pretence = Pretence(kind=kind_of(device))
        self._session: DryRunSession | None = None
        self._met: RecordedWait | None = None
        self._taken: list[tuple[GuardedSync, RecordedWait]] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        session = self._session = self._pretence.begin()
        session.on_wait = self._saw
        if not self._warmup:
            session.recording.step(0)
        try:
            yield
        finally:
            self._pretence.end()

    def step(self) -> None:
        self._guard.step()
        if self._session is not None and self._guard.steps >= self._warmup:
            self._session.recording.step(self._guard.steps - self._warmup)

    @cached_property
    def analysis(self) -> Analysis:
        """All that was found, without costs; once it is over."""
        from syncscan import api

        assert self._session is not None
        return api.analyze_pretended(self._session.trace())

    @property
    def coverage(self) -> Coverage:
        return self.analysis.trace.info.capture.coverage or Coverage(0)

    @property
    def said(self) -> str:
        return " ".join(self._session.coverage()) if self._session is not None else ""

    @cached_property
    def syncs(self) -> list[GuardedSync]:
        """All that were seen, the rule of each known; once it is over."""
        occurrences = [(o.ts, f.rule) for f in self.analysis.findings for o in f.occurrences]
        seen = [replace(sync, rule=_rule_at(met, occurrences)) for sync, met in self._taken]
        return [*(replace(sync, allowed=written_reason(sync)) for sync in seen), *self._guard.allowed]

    def _saw(self, met: RecordedWait) -> None:
        if self._guard.steps < self._warmup:
            return
        self._met = met
        kind = next((_KINDS[call] for call in met.wait.calls if call in _KINDS), "stream")
        self._guard.saw(kind, _outside(sys._getframe()), threading.get_ident())

    def _take(self, sync: GuardedSync) -> None:
        assert self._met is not None
        self._taken.append((_led(sync, self._met), self._met))


def _led(sync: GuardedSync, met: RecordedWait) -> GuardedSync:
    """Place a sync of the backward pass at its forward op, as reports do."""
    if not met.forward:
        return sync
    chain = tuple(frame for frame in reversed(met.forward) if not of_dry_run(frame[0]))
    file, line, function = next((frame for frame in met.forward if not is_library(frame[0])), met.forward[0])
    return replace(sync, file=file, line=line, function=function, chain=chain, instruction=None)


def _outside(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame that isn't of the dry run or of torch's code around it."""
    ours = (_DRYRUN, __file__)
    return next((f for f in outward(frame) if not f.f_code.co_filename.startswith(ours)), None)


def _rule_at(met: RecordedWait, occurrences: list[tuple[int, str]]) -> str:
    return next((rule for ts, rule in occurrences if met.begin <= ts <= met.end), "")


LONGEST = 1000
"""Steps recorded of a test; more are run, and left out."""


class WatchedTest:
    """The syncs of one test: `step()` says that a step of it has ended.

    `syncs` is what a guard saw (under `no_syncs`, or `limit_syncs` without `wait_ms`), `analysis` and `findings` what a
    recording shows (under `limit_syncs` with `wait_ms`, or with `--syncscan-report`, once the test has ended; or after
    `with syncscan.record():`). Without a GPU both are those of a dry run, without times: `dry`. `steps` is how many
    have ended.
    """

    def __init__(self) -> None:
        self.steps = 0
        self.syncs: list[GuardedSync] = []
        self.analysis: Analysis | None = None
        self.trace: Path | None = None
        self.dry: DryRun | None = None
        self._steps: list[Callable[[], object]] = []

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return the findings of the recording, the largest gain first; none without a recording."""
        return self.analysis.findings if self.analysis is not None else ()

    def step(self) -> None:
        """Say that a step of the test has ended."""
        self.steps += 1
        for ended in self._steps:
            ended()

    @contextmanager
    def guarded(self, warmup: int = 0) -> Iterator[None]:
        """Note each sync of this thread, once `warmup` steps have ended; at the end those that a block allowed too."""
        with Guard(0, None, self.syncs.append, warmup=warmup, name="test") as guard, self._telling(guard.step):
            try:
                yield
            finally:
                self.syncs += guard.allowed

    @contextmanager
    def pretended(self, warmup: int = 0, device: str = "cuda") -> Iterator[None]:
        """Run this block as if on a GPU and note each sync of this thread, once `warmup` steps have ended."""
        dry = self.dry = DryRun(warmup, device)
        with dry.running(), self._telling(dry.step):
            yield
        self.syncs += dry.syncs
        self.analysis = dry.analysis

    @contextmanager
    def record(
        self, folder: Path | None = None, name: str = "test", warmup: int = 0, guarded: bool = False
    ) -> Iterator[None]:
        """Record the steps of this block and analyze them; a block without steps counts as one.

        Args:
            folder: where the trace is to be kept; thrown away if not given.
            name: what its file's name begins with.
            warmup: steps that run under the profiler first, and are thrown away.
            guarded: note each sync too.

        Raises:
            UsageError: nothing could be recorded.
        """
        from syncscan import api
        from syncscan.capture.session import profile

        sentences: list[str] = []
        begun = self.steps
        plan = {"wait": 0, "settle": 0, "calibrate": 0, "warmup": warmup, "active": LONGEST}
        with tempfile.TemporaryDirectory(prefix="syncscan-") as throwaway, ExitStack() as open_now:
            session = profile(folder or throwaway, name, **plan, notify=sentences.append)  # type: ignore[arg-type]
            open_now.enter_context(session)
            open_now.enter_context(self._telling(session.step))
            if guarded:
                open_now.enter_context(self.guarded(warmup))
            yield
            if self.steps == begun:
                session.step()
            open_now.close()
            if not session.paths:
                raise UsageError(
                    session.failed or f"Nothing was recorded: {' '.join(sentences) or 'no step was marked.'}"
                )
            self.trace = session.paths[-1]
            self.analysis = api.analyze(self.trace)

    @contextmanager
    def _telling(self, step: Callable[[], object]) -> Iterator[None]:
        self._steps.append(step)
        try:
            yield
        finally:
            self._steps.remove(step)
