"""Run a test under a guard or a recording, and collect its syncs: the value of the `syncscan` fixture."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from syncscan.errors import UsageError
from syncscan.guarding.guard import Guard
from syncscan.guarding.guarded_sync import GuardedSync
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding
from syncscan.testing.dry_run import DryRun

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
