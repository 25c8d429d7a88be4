"""Notice a line that waits for the device for more of the step than in its own past, and run a command then.

For each line a cumulative sum (Page, Biometrika 41, 1954) adds up how much likelier its samples are under a grown share
than under the past one, never below 0; it passes the limit some samples after the share has grown, and hardly ever
before. The past is the mean of all earlier samples in steps, the last ones left out until they are judged. Samples in
steps that took far longer than usual don't count: an evaluation or a checkpoint between two steps isn't the step's.
Waits that come in clusters vary more than independent samples do, so the sum grows slower by that factor (McCullagh and
Nelder, Generalized Linear Models, 1989, section 4.5: overdispersion).
"""

from __future__ import annotations

import math
import os
import shlex
import subprocess
import threading
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from syncscan.errors import UsageError
from syncscan.watching.tally import Key
from syncscan.watching.watch_file import ENCODER, Alarm

GROWS = 0.05
"""Least growth of a share that is looked for."""
LIMIT = 16.0
"""Sum of log-likelihood ratios at which a line is alarmed: of independent samples of an unchanged share one in e^16,
9 million, begins a run to it, which are 4 days at 23 samples a second."""
LEARNS = 230
"""Samples in steps of the past before the first alarm: 10 s at 23 a second, behind the lag."""
MOST_LINES = 512
"""Most lines that are followed; a further one takes the place of that which was met least lately."""
LONG = 3.0
"""Times the median step from which a step's samples don't count."""
_LAG = 115
"""Samples, of 5 s, that the past is behind."""
_ESTABLISHED = 5
"""Waiting samples from which a line isn't new."""
_FORGETS = 0.5 ** (1 / 200_000)
"""Weight that the past loses with a sample: half of it in 2.4 hours."""


_BLOCK = 57
"""Samples of a block, of 2.5 s: its waits vary more than those of independent samples where steps differ."""
_PRIOR, _MOST_BLOCKS = 5, 100
"""Blocks that independent samples count for at first, and that the mean reaches back."""
_LEAST_VARIANCE = 0.2
"""Variance from which a block says something of a line."""
_MOST_SPREAD = 36.0
"""Most that one block counts: 6 standard deviations."""


@dataclass(slots=True)
class _Line:
    """State of one line."""

    met: float = 0.0
    """Waiting samples of the past, forgotten slowly."""
    sum: float = 0.0
    begun: int = 0
    """Samples in all when the sum last left 0."""
    since: int = 0
    """Waiting samples since."""
    last: int = 0
    """Samples in all when it was last met."""
    block: int = 0
    """Waiting samples of the block that isn't whole yet."""
    spread: float = 1.0
    """Variance of a block's waiting samples, in variances of independent ones."""
    blocks: int = _PRIOR


Growth = tuple[Key, float, float]
"""A line whose share has grown, from what, and to what."""


class Alarms:
    """Follows the lines of one watch.

    Args:
        grows: the least growth of a share, between 0 and 1, that counts.
    """

    def __init__(self, grows: float = GROWS) -> None:
        self._grows = grows
        self._lines: dict[Key, _Line] = {}
        self._seen = 0
        self._past = 0.0
        self._pending: deque[tuple[int, Mapping[Key, int]]] = deque()
        self._behind = 0
        self._block = 0

    def add(self, samples: int, waiting: Mapping[Key, int]) -> list[Growth]:
        """Judge a chunk of samples in steps, and return the lines that have grown.

        Args:
            waiting: of them those of each line that waited for the device.
        """
        if not samples:
            return []
        self._seen += samples
        for key in waiting:
            if key not in self._lines:
                self._make_room()
                self._lines[key] = _Line()
        ready = self._past >= LEARNS
        grown = [
            growth
            for key, line in self._lines.items()
            if (growth := self._judge(key, line, samples, waiting.get(key, 0), ready)) is not None
        ]
        self._move(samples, waiting)
        self._block += samples
        for key, count in waiting.items():
            self._lines[key].block += count
        if self._block >= _BLOCK:
            for line in self._lines.values():
                self._learn_spread(line)
            self._block = 0
        return grown

    def _learn_spread(self, line: _Line) -> None:
        """Add a whole block to the variance of a line that isn't under suspicion."""
        share = line.met / max(1.0, self._past)
        variance = self._block * share * (1 - share)
        if variance >= _LEAST_VARIANCE and line.sum < LIMIT / 2:
            line.blocks = min(line.blocks + 1, _MOST_BLOCKS)
            squared = min(_MOST_SPREAD, (line.block - self._block * share) ** 2 / variance)
            line.spread += (squared - line.spread) / line.blocks
        line.block = 0

    def _judge(self, key: Key, line: _Line, samples: int, waiting: int, ready: bool) -> Growth | None:
        if waiting:
            line.last = self._seen
        if not ready:
            return None
        before = (line.met + 0.5) / (self._past + 1)
        if line.met >= _ESTABLISHED:  # a short past may have met fewer than usual: its upper bound counts
            before += 2 * math.sqrt(before * (1 - before) / (self._past + 1))
        after = min(0.99, before + max(self._grows, before / 2))
        if before >= after:
            return None
        step = waiting * math.log(after / before) + (samples - waiting) * math.log((1 - after) / (1 - before))
        if line.sum <= 0:
            line.sum, line.begun, line.since = 0.0, self._seen - samples, 0
        line.sum = max(0.0, line.sum + step / max(1.0, line.spread))
        line.since += waiting
        if line.sum < LIMIT:
            return None
        now = line.since / max(1, self._seen - line.begun)
        line.sum = 0.0
        line.met = now * self._past  # the new level is its past from here on
        return (key, before, now) if now - before >= self._grows / 2 else None

    def _move(self, samples: int, waiting: Mapping[Key, int]) -> None:
        """Make a chunk part of the past that is old enough; a line under suspicion keeps the past that it has."""
        self._pending.append((samples, waiting))
        self._behind += samples
        if self._behind <= _LAG:
            return
        old, met = self._pending.popleft()
        self._behind -= old
        fades = _FORGETS**old
        for key, line in self._lines.items():
            usual = line.met / max(1.0, self._past) * old
            count = met.get(key, 0)
            line.met = line.met * fades + (count if line.sum < LIMIT / 2 else min(count, usual))
        self._past = self._past * fades + old

    def _make_room(self) -> None:
        if len(self._lines) >= MOST_LINES:
            del self._lines[min(self._lines, key=lambda key: self._lines[key].last)]


class Usual:
    """Separates samples in steps of usual length from those between steps."""

    def __init__(self, long: float = LONG) -> None:
        self._long = long
        self._times: deque[int] = deque(maxlen=255)
        self._open: list[tuple[int, Key | None, int]] = []
        self._last: int | None = None

    def add(self, samples: Iterable[tuple[int, Key | None, int]], ends: Iterable[int]) -> tuple[int, Counter[Key]]:
        """Return how many samples lie in usual steps, and of them those of each line that waited.

        Args:
            samples: time in ns, the line that waited there (None: none did), number of ticks; in order.
            ends: times in ns at which steps ended, in order.
        """
        self._open += samples
        count, waiting = 0, Counter[Key]()
        longest = self._longest()
        for end in ends:
            inside = [row for row in self._open if row[0] <= end]
            del self._open[: len(inside)]
            if self._last is not None:
                self._times.append(end - self._last)
                if end - self._last <= longest:
                    count += sum(ticks for _, _, ticks in inside)
                    for _, key, ticks in inside:
                        if key is not None:
                            waiting[key] += ticks
            self._last = end
        del self._open[:-10_000]
        return count, waiting

    def _longest(self) -> float:
        ordered = sorted(self._times)
        return self._long * ordered[len(ordered) // 2] if len(ordered) >= 3 else 0.0


LONGEST_S = 60.0
"""How long a command may take; it is ended then."""
MOST_AT_ONCE = 4
"""Commands that may run at a time; a further alarm runs none."""
VARIABLE = "SYNCSCAN_ALARM"
"""Environment variable of the command with the alarm as a sentence."""


class AlarmCommand:
    """Runs a command with the alarm as JSON on its standard input, on a thread of its own.

    Args:
        command: words as a shell would split them; no shell runs.

    Raises:
        UsageError: a quotation isn't closed.
    """

    def __init__(self, command: str) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"The alarm's command can't be split into words: {error}.") from None
        self._running = threading.Semaphore(MOST_AT_ONCE)

    def __call__(self, alarm: Alarm) -> None:
        """Start it; the job doesn't wait, and what goes wrong in it is lost."""
        if self._words and self._running.acquire(blocking=False):
            threading.Thread(target=self._run, args=(alarm,), name="syncscan-alarm", daemon=True).start()

    def _run(self, alarm: Alarm) -> None:
        try:
            subprocess.run(
                self._words,
                input=ENCODER.encode(alarm),
                env={**os.environ, VARIABLE: str(alarm)},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=LONGEST_S,
            )
        except (OSError, subprocess.SubprocessError):
            pass
        finally:
            self._running.release()
