"""How much memory does a watch hold after a day? `python -m benchmarks.watch_memory`, on any machine.

The samples of a day at the usual rate are counted without waiting for them: their stacks come from a program that makes
new functions all the time, on far more lines than a watch lists, with threads that come and go; the file rotates at
1 MB. Printed are, after each part of the day, the bytes that Python holds beyond those at the first part's end, and the
bytes of the watch's files.
"""

from __future__ import annotations

import argparse
import functools
import gc
import random
import tempfile
import threading
import tracemalloc
from pathlib import Path
from types import CodeType
from typing import Any

from syncscan.watching import watch as watches
from syncscan.watching.sampler import RATE, Tick
from syncscan.watching.thread_position import ThreadPosition
from syncscan.watching.watch import INTERVAL_S, Watch
from syncscan.watching.watch_file import Journal

DAY_S = 86_400
MOST_BYTES, FILES = 1_000_000, 3
"""Size at which the watch's file is moved aside, and older files that stay."""


class Driven(Watch):
    """A watch whose samples and ends of steps are given to it, and whose clock is theirs."""

    def feed(self, ticks: list[Tick], ends: list[int]) -> None:
        """Count samples and ends of steps as if they had just been taken."""
        self._sampler = _Given(ticks)
        self._ends.extend(ends)
        self.steps += len(ends)
        self._count()

    def window(self) -> None:
        """End a window, of the usual length."""
        self._window_at -= INTERVAL_S
        self._close_window()


class _Given:
    """A sampler of samples that are there already."""

    name = "given"

    def __init__(self, ticks: list[Tick]) -> None:
        self._ticks = ticks

    def start(self) -> None:
        """Start nothing."""

    def take(self) -> list[Tick]:
        """Return the samples, once."""
        ticks, self._ticks = self._ticks, []
        return ticks

    def stop(self) -> None:
        """Stop nothing."""


def functions(folder: Path, draw: random.Random) -> list[CodeType]:
    """Return functions that are made anew, as a program makes them that never stops to: 50 in one of many files."""
    path = folder / f"generated{draw.randrange(400)}.py"
    text = "".join(f"def f{k}(loss):\n    return loss.item()\n" for k in range(50))
    path.write_text(text)
    given: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), given)
    return [value.__code__ for name, value in given.items() if name.startswith("f")]


def day(seconds: float, parts: int, seed: int = 0) -> list[tuple[int, int]]:
    """Return after each part of a time the bytes held beyond the first part's, and those of the files."""
    draw = random.Random(seed)
    rows: list[tuple[int, int]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        watches.Journal = functools.partial(Journal, most_bytes=MOST_BYTES, files=FILES)  # type: ignore[misc,assignment]
        watch = Driven(folder / "watch", hook=False).start()
        assert watch._sampler is not None
        watch._sampler.stop()
        watch._over.set()
        watch._thread.join()
        at, windows, first = 0, int(seconds / INTERVAL_S), 0
        tracemalloc.start()
        for number in range(windows):
            codes = functions(folder, draw)
            for _ in range(int(INTERVAL_S * 2)):
                ticks = []
                for _ in range(RATE // 2):
                    at += 1_000_000_000 // RATE
                    ticks.append(Tick(1, [draw.choice(codes), 0], at, ran=draw.random() < 0.1))
                watch.feed(ticks, [at - k * 10_000_000 for k in range(50)][::-1])
            for thread in range(20):
                watch._tally.add_thread(f"worker {number}.{thread}", ThreadPosition("x.py", number, "f", "host", ""))
            come = [threading.Thread(target=bool) for _ in range(4)]
            for thread in come:
                thread.start()
            watch._others.look(watch._ident)
            for thread in come:
                thread.join()
            watch.window()
            if (number + 1) % max(1, windows // parts) == 0:
                del codes
                gc.collect()
                held = tracemalloc.get_traced_memory()[0]
                first = first or held
                files = sum(path.stat().st_size for path in (folder / "watch").iterdir())
                rows.append((held - first, files))
        tracemalloc.stop()
        watch.stop()
    return rows


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=float, default=1.0, help="days of samples")
    parser.add_argument("--parts", type=int, default=8, help="how often the memory is read")
    arguments = parser.parse_args()
    for number, (held, files) in enumerate(day(arguments.days * DAY_S, arguments.parts), start=1):
        share = number / arguments.parts
        print(f"after {share:4.0%}: {held / 1e3:+9.1f} kB held, {files / 1e6:.2f} MB in files", flush=True)


if __name__ == "__main__":
    main()
