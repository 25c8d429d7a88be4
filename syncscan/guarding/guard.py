"""Count a loop's syncs, and warn of those that weren't allowed: `with syncscan.guard(): …`."""

from __future__ import annotations

import fnmatch
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import CodeType, FrameType, TracebackType
from typing import Any, Literal

from syncscan import allow_blocks
from syncscan.capture import device
from syncscan.errors import SyncscanError, UsageError
from syncscan.guarding import dispatch
from syncscan.guarding.guarded_sync import (
    Chain,
    GuardedSync,
    chain_of,
    frames_of,
    matches,
    own_frame,
    own_work,
    written_reason,
)

MOST_STORED = 100
"""Most syncs that are stored; all are counted."""

OnViolation = Literal["warn", "raise"] | Callable[[GuardedSync], object]


class UnexpectedSync(SyncscanError):
    """A program waited for its device where a guard forbids it; `sync` has the line and the calls."""

    slug = "unexpected-sync"

    def __init__(self, message: str, hint: str, sync: GuardedSync) -> None:
        super().__init__(message, hint)
        self.sync = sync


class SyncWarning(UserWarning):
    """A program waited for its device where a guard forbids it."""


class Guard:
    """The result of `syncscan.guard`: counts of syncs, in total and by line, and the first of them.

    `violations` are the syncs beyond the limit that nobody allowed, `allowed` those that somebody did (of each the
    first `MOST_STORED`). `count` and `allowed_count` are how many there were, `by_place` how many of each line counted,
    and `by_reason` how many were allowed for which reason: numbers that a client of Prometheus or TensorBoard takes.
    `steps` is how many ended since the guard began, `armed` whether it is watching now, `highest` the most syncs that
    one step made.
    """

    def __init__(
        self,
        limit: int = 0,
        allow: Mapping[str, str] | None = None,
        on_violation: OnViolation = "warn",
        *,
        warmup: int = 0,
        scope: str | None = None,
        threads: Literal["own", "all"] = "own",
        name: str = "guard",
    ) -> None:
        _check(limit, warmup, allow or {}, on_violation, threads)
        self.limit, self.name = limit, name
        self.armed = False
        self.steps = self.count = self.allowed_count = self.highest = 0
        self.violation_count = 0
        self.violations: list[GuardedSync] = []
        self.allowed: list[GuardedSync] = []
        self.by_place: Counter[str] = Counter()
        self.by_reason: Counter[str] = Counter()
        self._allow = dict(allow or {})
        self._act = on_violation
        self._warmup = warmup
        self._scope = scope
        self._all = threads == "all"
        self._thread = dispatch.EVERY_THREAD
        self._in_step = 0
        self._passes = allow_blocks.FirstPasses()
        self._shown: dict[Any, Any] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Guard:
        self._thread = dispatch.EVERY_THREAD if self._all else threading.get_ident()
        if self.steps >= self._warmup:
            self._arm()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self.armed:
            self.armed = False
            dispatch.disarm(self, self._thread)

    def step(self) -> None:
        """Mark the end of a step: the limit applies to each step, and the guard is armed after `warmup` steps."""
        self.steps += 1
        self._in_step = 0
        if not self.armed and self.steps == self._warmup:
            self._arm()

    def saw(self, kind: str, frame: FrameType | None, thread: int) -> None:
        """Record a sync; `process` calls this, in the thread that waits."""
        names = dispatch.scopes_of(thread)
        if not self._in_scope(names):
            return
        inner = frames_of(frame)
        own, chain = own_frame(inner), chain_of(inner)
        file, line, function, instruction = _place(own)
        reason = self._passes.reason(thread, f"{file}:{line}") or self._allowed_reason(chain)
        reason = reason or own_work(chain)
        who = threading.current_thread().name
        sync = GuardedSync(kind, file, line, function, chain, who, self.steps, names, reason, instruction)
        if not reason and (written := written_reason(sync)):
            sync = replace(sync, allowed=written)
        if self._counts(sync):
            self._violate(sync)

    def _in_scope(self, names: tuple[str, ...]) -> bool:
        return self._scope is None or any(fnmatch.fnmatchcase(name, self._scope) for name in names)

    def _counts(self, sync: GuardedSync) -> bool:
        """Count a sync; return whether it exceeds the limit."""
        with self._lock:
            if sync.allowed:
                self.allowed_count += 1
                self.by_reason[sync.allowed] += 1
                self.allowed += [sync] if len(self.allowed) < MOST_STORED else []
                return False
            self.count += 1
            self._in_step += 1
            self.highest = max(self.highest, self._in_step)
            self.by_place[sync.place] += 1
            if self._in_step <= self.limit:
                return False
            self.violation_count += 1
            self.violations += [sync] if len(self.violations) < MOST_STORED else []
            return True

    def _violate(self, sync: GuardedSync) -> None:
        if callable(self._act):
            self._act(sync)
            return
        many = f"the limit is {self.limit} per step of {self.name!r}"
        hint = 'Remove it, or wrap it in `with syncscan.allow("the reason"):`.'
        if self._act == "raise":
            raise UnexpectedSync(f"{sync}: number {self._in_step} in step {self.steps + 1}; {many}.", hint, sync)
        # The same words each time, so that Python shows a line once, as its filters say.
        message, file = f"{sync}; {many}. {hint}", sync.file or "syncscan"
        warnings.warn_explicit(message, SyncWarning, file, sync.line, registry=self._shown)

    def _allowed_reason(self, chain: Chain) -> str:
        """Return the reason of the first entry of `allow` that one of these frames matches, innermost first."""
        for frame in reversed(chain):
            for glob, reason in self._allow.items():
                if matches(glob, *frame):
                    return reason
        return ""

    def _arm(self) -> None:
        """Start watching; a no-op without a device."""
        if device.vendor() is not None:
            dispatch.arm(self, self._thread)
            self.armed = True


def guard(
    limit: int = 0,
    allow: Mapping[str, str] | None = None,
    on_violation: OnViolation = "warn",
    *,
    warmup: int = 0,
    scope: str | None = None,
    threads: Literal["own", "all"] = "own",
    name: str = "guard",
) -> Guard:
    """Watch a running loop for syncs, in production too: where nothing waits it costs well below a microsecond.

        with syncscan.guard(warmup=10) as guard:
            for batch in batches:
                train(batch)
                guard.step()

    A guard sees torch's blocking copies, read-backs and synchronizations of streams, devices and events, also in
    backward passes, `empty_cache`, `coalesce` and `unique(dim=…)`, and `non_blocking` copies that block anyway. It
    doesn't see other waits below torch: synchronizations in other extensions, collectives, `cudaMalloc`. A comment
    `# syncscan: allow[RULE] reason` on the line that waits, or above it, allows it, as for `syncscan check`.

    Races are found by a dry run, and in a recording.

    Args:
        limit: syncs that each step may make, or the whole block where `step()` isn't called.
        allow: what may wait besides, as glob → reason. A glob is held to `path/file.py:LINE`, `path/file.py:function`
            and `path/file.py` of every frame around a sync, from any folder of the path on.
        on_violation: "warn" with the guilty line, "raise" `UnexpectedSync` from it, or a function
            that is called with the `GuardedSync` in the thread that waited.
        warmup: number of calls of `step()` before it is armed.
        scope: count only what waits inside of a `record_function` scope whose name matches this glob.
        threads: "own" for the thread that enters the block and its backward passes; "all" for every thread.
        name: what warnings call it.

    Returns:
        A `Guard`, to be used as a context manager around a loop: to enter the first takes half a millisecond. They may
        be nested, and be open in several threads: each counts for itself. When the last has ended torch and Python are
        as they were, and so is the debug mode that the program has set. Without a GPU a guard does nothing.

    Raises:
        UsageError: arguments that can't mean anything.
    """
    options = {"warmup": warmup, "scope": scope, "threads": threads, "name": name}
    return Guard(limit, allow, on_violation, **options)  # type: ignore[arg-type]


def _place(frame: FrameType | None) -> tuple[str, int, str, tuple[CodeType, int] | None]:
    """Return file, line, function and instruction of a frame."""
    if frame is None:
        return "", 0, "", None
    code = frame.f_code
    return code.co_filename, frame.f_lineno or 0, code.co_name, (code, frame.f_lasti)


def _check(limit: int, warmup: int, allow: Mapping[str, str], on_violation: object, threads: str) -> None:
    if limit < 0 or warmup < 0:
        raise UsageError(f"limit is {limit} and warmup is {warmup}: neither can be negative.")
    if not callable(on_violation) and on_violation not in ("warn", "raise"):
        raise UsageError(f'on_violation is {on_violation!r}, and can be "warn", "raise" or a function.')
    if threads not in ("own", "all"):
        raise UsageError(f'threads is {threads!r}, and can be "own" or "all".')
    for glob, reason in allow.items():
        if not glob or not reason:
            raise UsageError(f"allow has {glob!r}: {reason!r}, but each entry needs a glob and a reason.")
