"""Count samples by line and steps by time, for a window, in a bounded memory."""

from __future__ import annotations

import math
from collections import Counter

from syncscan.watching.thread_position import DEVICE, HOST, INPUT, PEERS, ThreadPosition
from syncscan.watching.watch_file import WatchedLine, WatchedThread, Window, WindowSteps

MOST_LINES = 256
"""Most lines that a window counts; further ones count together."""
SHOWN = 20
"""Most lines that a window lists."""
_WIDTH = math.log(1.02)
"""Width of a bucket of times: a quantile is known to 1 %."""

Key = tuple[str, int, str]
"""File, line, function."""


class Durations:
    """Times by buckets of 2 %: a fixed amount of memory for any number of them."""

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()
        self.count = self.total = 0

    def add(self, ns: int) -> None:
        self._buckets[int(math.log(max(ns, 1)) / _WIDTH)] += 1
        self.count += 1
        self.total += ns

    def quantile(self, share: float) -> float:
        """Return the time in ns below which this share of them lies."""
        rank, seen = share * self.count, 0
        for bucket in sorted(self._buckets):
            seen += self._buckets[bucket]
            if seen >= rank:
                return math.exp((bucket + 0.5) * _WIDTH)
        return 0.0

    def times(self) -> WindowSteps | None:
        if not self.count:
            return None
        p50, p90, p99 = (round(self.quantile(share) / 1e3, 1) for share in (0.5, 0.9, 0.99))
        return WindowSteps(self.count, round(self.total / self.count / 1e3, 1), p50, p90, p99)


class Tally:
    """Samples and steps of one window."""

    def __init__(self) -> None:
        self.samples = 0
        self.steps = Durations()
        self._kinds: dict[Key, Counter[str]] = {}
        self._rules: dict[Key, str] = {}
        self._threads: dict[str, Counter[tuple[str, int, str]]] = {}
        self._others = 0

    def add(self, position: ThreadPosition, count: int) -> None:
        self.samples += count
        key = position[:3]
        kinds = self._kinds.get(key)
        if kinds is None:
            if len(self._kinds) >= MOST_LINES:
                self._others += count
                return
            kinds = self._kinds[key] = Counter()
        kinds[position.kind] += count
        if position.rule:
            self._rules[key] = position.rule

    def add_thread(self, name: str, position: ThreadPosition | None) -> None:
        """Count a sample of another thread; None where it stood outside of the program's code."""
        if name not in self._threads and len(self._threads) >= MOST_LINES:
            return
        place = ("", 0, HOST) if position is None else (position.file, position.line, position.kind)
        places = self._threads.setdefault(name, Counter())
        if place in places or len(places) < MOST_LINES:
            places[place] += 1

    def waiting(self) -> dict[Key, int]:
        return {key: kinds[DEVICE] for key, kinds in self._kinds.items() if kinds[DEVICE]}

    def window(self, at: float, seconds: float, total_steps: int) -> Window:
        shown = sorted(self._kinds, key=lambda key: -self._kinds[key].total())[:SHOWN]
        lines = tuple(self._line(key, seconds) for key in shown)
        return Window(
            at=at,
            seconds=round(seconds, 3),
            total_steps=total_steps,
            step=self.steps.times(),
            samples=self.samples,
            waiting=self._part(DEVICE),
            input=self._part(INPUT),
            peers=self._part(PEERS),
            lines=lines,
            others=round(max(0.0, 1 - sum(line.share for line in lines)), 4) if self.samples else 0.0,
            threads=tuple(sorted(self._top_threads(), key=lambda thread: -thread.share))[:SHOWN],
        )

    def rule(self, key: Key) -> str:
        """Return the rule of a line's waits; empty without one."""
        return self._rules.get(key, "")

    def _part(self, kind: str) -> float:
        return round(sum(kinds[kind] for kinds in self._kinds.values()) / max(1, self.samples), 4)

    def _line(self, key: Key, seconds: float) -> WatchedLine:
        kinds = self._kinds[key]
        share, waiting = kinds.total() / self.samples, kinds[DEVICE] / self.samples
        per_step = round(share * seconds * 1e6 / self.steps.count, 1) if self.steps.count else None
        kind, rule = kinds.most_common(1)[0][0], self._rules.get(key, "")
        return WatchedLine(*key, rule, round(share, 4), round(waiting, 4), kind, per_step)

    def _top_threads(self) -> list[WatchedThread]:
        rows = []
        for name, places in self._threads.items():
            inside = {place: n for place, n in places.items() if place[0]}
            if inside:
                file, line, _ = max(inside, key=lambda place: inside[place])
                waits = sum(n for place, n in inside.items() if place[2] == DEVICE)
                whole = places.total()
                share = round(sum(inside.values()) / whole, 4)
                rows.append(WatchedThread(name, share, round(waits / whole, 4), file, line))
        return rows
