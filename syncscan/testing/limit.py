"""Limits that a pytest mark sets: how often a test may wait, how long, and where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from syncscan.dryrun.device_kinds import kind_of
from syncscan.errors import UsageError
from syncscan.guarding.guarded_sync import matches

Frames = Iterable[tuple[str, int, str]]
NO_RACES = "no_races"
ARGUMENTS = {
    "no_syncs": ("allow", "warmup", "dry", "device"),
    "limit_syncs": ("n", "wait_ms", "per_step", "allow", "warmup", "dry", "device"),
    NO_RACES: ("device",),
}
"""Mark → its arguments, in order."""


@dataclass(frozen=True, slots=True)
class SyncLimit:
    """Limit that `no_syncs` or `limit_syncs` sets.

    `syncs` and `wait_ms` hold for each step, or, without `per_step`, for all of the test's steps together; `warmup`
    steps are left out where the test tells steps. `allow` are globs with a reason each. `dry` says that the test runs
    on a simulated GPU even where there is one, and `device` of which type that is.
    """

    mark: str
    syncs: int | None
    wait_ms: float | None = None
    per_step: bool = True
    warmup: int = 1
    allow: tuple[tuple[str, str], ...] = ()
    dry: bool = False
    device: str = "cuda"

    def reason(self, frames: Frames) -> str:
        """Return why a sync with these frames (file, line, function) is allowed; "" where it isn't."""
        known = list(frames)
        return next((why for glob, why in self.allow if any(matches(glob, *frame) for frame in known)), "")

    def __str__(self) -> str:
        where = "in a step" if self.per_step else "in the test"
        parts = [] if self.syncs is None else [f"{self.syncs} sync{'' if self.syncs == 1 else 's'} {where}"]
        parts += [] if self.wait_ms is None else [f"{self.wait_ms:g} ms of waiting {where}"]
        return f"@pytest.mark.{self.mark} allows {' and '.join(parts)}"


def limit_of(mark: str, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> SyncLimit:
    """Read a mark.

    Args:
        mark: "no_syncs", "no_races", or "limit_syncs" whose first argument is how many syncs are allowed.
        arguments: those given by their place.
        keywords: `n`, `wait_ms` and `per_step` of `limit_syncs`; `allow`, `warmup` and `dry`; `device`, with which the
            test always runs dry.

    Raises:
        UsageError: arguments that can't mean anything.
    """
    names = ARGUMENTS[mark]
    given = dict(zip(names, arguments, strict=False)) | dict(keywords)
    if len(arguments) > len(names) or not set(given) <= set(names):
        takes = ", ".join(names) or "no arguments"
        raise UsageError(f"@pytest.mark.{mark} takes {takes}, but got {[*arguments]} {dict(keywords)}.")
    device = str(given.get("device", "cuda"))
    kind_of(device)
    if mark == NO_RACES:
        return SyncLimit(mark, None, dry=True, device=device)
    n, wait_ms, warmup = given.get("n", 0 if mark == "no_syncs" else None), given.get("wait_ms"), given.get("warmup", 1)
    if n is None and wait_ms is None:
        raise UsageError("@pytest.mark.limit_syncs needs a number of syncs, or wait_ms.")
    if any(number is not None and number < 0 for number in (n, wait_ms, warmup)):
        raise UsageError(f"@pytest.mark.{mark} can't have a negative number.")
    allow, dry = _entries(given.get("allow") or ()), bool(given.get("dry")) or "device" in given
    return SyncLimit(mark, n, wait_ms, bool(given.get("per_step", True)), int(warmup), allow, dry, device)


def _entries(allow: Any) -> tuple[tuple[str, str], ...]:
    """Return the entries as (glob, reason): from a mapping, or from globs with or without a reason."""
    if isinstance(allow, str) or not isinstance(allow, Iterable):
        raise UsageError(f"allow is {allow!r}, and must be a list of globs, or glob → reason.")
    if isinstance(allow, Mapping):
        return tuple((str(glob), str(why)) for glob, why in allow.items())
    return tuple((entry, "allowed by its mark") if isinstance(entry, str) else tuple(entry) for entry in allow)
