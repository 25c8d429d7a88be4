"""Compare two hours of a watched job, or two watched runs: which lines wait more or less per step."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath

import msgspec

from syncscan.errors import UsageError
from syncscan.live.reading import SUFFIX, WatchRecords, read
from syncscan.live.record import Window
from syncscan.live.tally import Key

SCHEMA = "syncscan.watch-diff/1"
HOUR_S = 3600.0
LEAST = 0.01
"""Least change of a line's part of the step that counts as one."""
BLOCKS = 12
"""Most blocks of windows, whose means tell the noise: neighbors are alike, blocks hardly."""


class WatchSide(msgspec.Struct, frozen=True):
    """One of the two: an hour of a file, or all of it."""

    path: str
    hour: int | None
    """Its number, counted from 1; null for the whole run."""
    program: str
    windows: int
    steps: int
    step_us: float | None
    """Mean time of a step."""
    step_error_us: float | None
    """Twice the standard error of that."""
    waiting: float
    """Part of the time in which the step's thread waited for the device."""


class LineChange(msgspec.Struct, frozen=True):
    """A line of the program, before and after."""

    file: str
    line: int | None
    """Its number after; before where it isn't met any more."""
    function: str
    rule: str
    waiting_before: float
    """Part of the time in which the step's thread waited for the device there."""
    waiting_after: float
    us_before: float | None
    """µs per step that it waited there."""
    us_after: float | None
    error: float
    """Twice the standard error of the difference of the parts."""
    changed: bool
    """Whether the difference is beyond that, and beyond a point."""


class WatchDiff(msgspec.Struct, frozen=True):
    """Differences between two hours or two runs."""

    schema: str
    before: WatchSide
    after: WatchSide
    step_changed: bool
    """Whether the step's times differ by more than both errors."""
    lines: tuple[LineChange, ...]
    """Lines that wait in either, the largest change first."""


def is_watch(state: str) -> bool:
    """Return whether a state of `syncscan diff` names a watch's file, or an hour of one."""
    return state.partition("#")[0].endswith(SUFFIX)


def diff(before: str, after: str) -> WatchDiff:
    """Compare two watches.

    Args:
        before: the path of a file, with `#N` behind it for its hour N; `#-1` is its last.
        after: likewise.

    Raises:
        UsageError: there is no such hour.
        TraceUnreadable: one is no watch's file.
    """
    return compared(_chosen(before), _chosen(after))


def compared(before: tuple[WatchSide, list[Window]], after: tuple[WatchSide, list[Window]]) -> WatchDiff:
    """Compare two sides, each with its windows."""
    (old, old_windows), (new, new_windows) = before, after
    pairs = _paired(_waits(old_windows), _waits(new_windows))
    lines = [_change(pair, before, after) for pair in pairs]
    lines.sort(key=lambda line: -abs(line.waiting_after - line.waiting_before))
    return WatchDiff(SCHEMA, old, new, _steps_differ(old, new), tuple(lines))


def side_of(watched: WatchRecords, path: str, hour: int | None) -> tuple[WatchSide, list[Window]]:
    """Return a side, with its windows.

    Args:
        watched: what the file has.
        path: of the file.
        hour: from 1 on, or from -1 backwards; None for all.

    Raises:
        UsageError: there is no such hour.
    """
    windows, hour = _of_hour(list(watched.windows), watched, path, hour)
    times = [window for window in windows if window.step is not None]
    step, error = _mean_error(times, lambda window: window.step.mean_us if window.step else 0.0)
    samples = max(1, sum(window.samples for window in windows))
    side = WatchSide(
        path=path,
        hour=hour,
        program=watched.begin.program if watched.begin else "",
        windows=len(windows),
        steps=sum(window.step.count for window in windows if window.step),
        step_us=round(step, 1) if times else None,
        step_error_us=round(error, 1) if math.isfinite(error) else None,
        waiting=round(sum(window.waiting * window.samples for window in windows) / samples, 4),
    )
    return side, windows


def _chosen(state: str) -> tuple[WatchSide, list[Window]]:
    path, _, hour = state.partition("#")
    if hour and not hour.removeprefix("-").isdigit():
        raise UsageError(f"'#{hour}' names no hour.", "Write #1 for the first hour, #-1 for the last.")
    return side_of(read(Path(path)), path, int(hour) if hour else None)


def _of_hour(
    windows: list[Window], watched: WatchRecords, path: str, hour: int | None
) -> tuple[list[Window], int | None]:
    """Return the windows that ended in an hour, and its number from 1 on."""
    if not windows:
        raise UsageError(f"No window has ended in {path}.", "Wait until one has.")
    if hour is None:
        return windows, None
    first = watched.begin.at if watched.begin else windows[0].at - windows[0].seconds
    hours: dict[int, list[Window]] = defaultdict(list)
    for window in windows:
        hours[1 + int((window.at - first - 1e-6) // HOUR_S)].append(window)
    number = hour if hour > 0 else max(hours) + 1 + hour
    if number not in hours:
        raise UsageError(f"{path} has hours {min(hours)} to {max(hours)}, and no hour {hour}.")
    return hours[number], number


def _waits(windows: Sequence[Window]) -> dict[Key, str]:
    """Return the lines that wait in any window, each with its rule."""
    result: dict[Key, str] = {}
    for window in windows:
        for line in window.lines:
            if line.waiting:
                key = line.file, line.line, line.function
                result[key] = line.rule or result.get(key, "")
    return result


def _paired(before: dict[Key, str], after: dict[Key, str]) -> list[tuple[Key | None, Key | None, str]]:
    """Match lines by number, then those that are alone in their function with their rule on both sides."""
    pairs: list[tuple[Key | None, Key | None, str]] = [(key, key, after[key]) for key in after if key in before]
    old = {key: rule for key, rule in before.items() if key not in after}
    new = {key: rule for key, rule in after.items() if key not in before}
    counts = [Counter(_moved(*row) for row in side.items()) for side in (old, new)]
    by_name = {_moved(*row): row[0] for row in old.items()}
    for key, rule in new.items():
        name = _moved(key, rule)
        moved = by_name[name] if counts[0][name] == counts[1][name] == 1 else None
        pairs.append((moved, key, rule))
    matched = {pair[0] for pair in pairs}
    return pairs + [(key, None, rule) for key, rule in old.items() if key not in matched]


def _moved(key: Key, rule: str) -> tuple[str, str, str]:
    """Return what stays of a line when others are added above it."""
    return PurePath(key[0]).name, key[2], rule


def _change(
    pair: tuple[Key | None, Key | None, str],
    before: tuple[WatchSide, list[Window]],
    after: tuple[WatchSide, list[Window]],
) -> LineChange:
    shares, errors, times = [], [], []
    for key, (side, windows) in zip(pair[:2], (before, after), strict=True):
        share, error = _mean_error(windows, lambda window, key=key: _waiting(window, key))  # type: ignore[misc]
        shares.append(share)
        errors.append(error if math.isfinite(error) else 0.0)
        times.append(_per_step(share, windows) if side.steps else None)
    both = math.hypot(*errors)
    enough = all(side.windows > 1 for side, _ in (before, after))
    key = pair[1] or pair[0]
    assert key is not None
    return LineChange(
        file=key[0],
        line=key[1],
        function=key[2],
        rule=pair[2],
        waiting_before=round(shares[0], 4),
        waiting_after=round(shares[1], 4),
        us_before=times[0],
        us_after=times[1],
        error=round(both, 4),
        changed=enough and abs(shares[1] - shares[0]) > max(both, LEAST),
    )


def _waiting(window: Window, key: Key | None) -> float:
    return sum(line.waiting for line in window.lines if (line.file, line.line, line.function) == key)


def _per_step(share: float, windows: Sequence[Window]) -> float:
    steps = sum(window.step.count for window in windows if window.step)
    return round(share * sum(window.seconds for window in windows) * 1e6 / steps, 1)


def _mean_error(windows: Sequence[Window], value: Callable[[Window], float]) -> tuple[float, float]:
    """Return the mean of a value over windows, and twice its standard error by blocks of neighbors."""
    if not windows:
        return math.nan, math.nan
    values = [value(window) for window in windows]
    length = math.ceil(len(values) / BLOCKS)
    blocks = [statistics.mean(values[k : k + length]) for k in range(0, len(values), length)]
    error = 2 * statistics.stdev(blocks) / math.sqrt(len(blocks)) if len(blocks) > 1 else math.nan
    return statistics.mean(values), error


def _steps_differ(before: WatchSide, after: WatchSide) -> bool:
    times = before.step_us, after.step_us, before.step_error_us, after.step_error_us
    if times[0] is None or times[1] is None or times[2] is None or times[3] is None:
        return False
    return abs(times[1] - times[0]) > math.hypot(times[2], times[3])


__all__ = ["SCHEMA", "LineChange", "WatchDiff", "WatchSide", "compared", "diff", "is_watch", "side_of"]
