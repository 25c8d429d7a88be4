"""Run a test on the CPU as if on a GPU, and report its waits as a guard on a GPU would."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import FrameType

from syncscan.capture.stack_frames import outward
from syncscan.dryrun.device_kinds import kind_of
from syncscan.dryrun.pretend import Pretence
from syncscan.dryrun.recorder import DryRunSession, RecordedWait
from syncscan.guarding.guard import Guard
from syncscan.guarding.guarded_sync import GuardedSync, of_dry_run, written_reason
from syncscan.model.analysis import Analysis
from syncscan.model.capture import Coverage
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
