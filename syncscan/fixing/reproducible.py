"""A clock and entropy that are the same in each dry run, so that what a program computes from them can be compared.

The clock is for the program's own files and for what stamps their log lines: libraries keep the real one, so their
timeouts and loops stay as they are. Each thread has its own time, which advances by a fixed amount whenever the thread
reads it and by what it sleeps: two runs read the same times, whatever the machine does meanwhile. Dates stay real.

Processes that the program forks keep the system's entropy: their random names must not be those of one another.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from syncscan.model.libraries import is_library

TICK_NS = 10_000_000
"""By how much each reading advances: a loop of ten seconds makes a thousand turns."""
BEGIN_NS = 1_767_225_600 * 10**9
"""2026-01-01 00:00 UTC."""
SINCE_START_NS = 10**12
"""First reading of the clocks that don't tell the date."""
_UNDATED = ("perf_counter", "monotonic", "process_time", "thread_time")
_STAMPS = ("logging/__init__.py", "/uuid.py", "syncscan/dryrun/stand_ins.py")
"""Files that write the time into the program's output: of Python's library, and the events of the simulated device."""


def fix_clock() -> None:
    """Put a fixed clock in the place of what `time` offers, for good."""
    of_thread = threading.local()
    sleep = time.sleep

    def now() -> int:
        """Return the time since the start, one tick later than the last time in this thread."""
        of_thread.elapsed = getattr(of_thread, "elapsed", 0) + TICK_NS
        return int(of_thread.elapsed)

    def reading(name: str, first: int, unit: int) -> Callable[[], float]:
        real: Callable[[], float] = getattr(time, name)

        def read() -> float:
            if not _is_for_program(sys._getframe(1).f_code.co_filename):
                return real()
            return (first + now()) / unit if unit > 1 else first + now()

        read.__name__ = read.__qualname__ = name
        return read

    def slept(seconds: Any) -> None:
        sleep(seconds)
        of_thread.elapsed = getattr(of_thread, "elapsed", 0) + int(float(seconds) * 10**9)

    for name in ("time", *_UNDATED):
        first = SINCE_START_NS if name in _UNDATED else BEGIN_NS
        setattr(time, name, reading(name, first, 10**9))
        setattr(time, f"{name}_ns", reading(f"{name}_ns", first, 1))
    time.sleep = slept
    os.environ.setdefault("SOURCE_DATE_EPOCH", str(BEGIN_NS // 10**9))  # matplotlib dates its files by it


def _is_for_program(file: str) -> bool:
    """Return whether a file that asks for the time is the program's own, or stamps its output."""
    if file.endswith(_STAMPS):
        return True
    imports = file.startswith("<frozen")
    return not imports and not is_library(file) and "syncscan" not in PurePath(file).parts


def fix_randomness() -> None:
    """Put fixed entropy, a sequence of bytes for each thread, in the place of the system's, for good."""
    readings: Counter[str] = Counter()
    process, entropy, seed = os.getpid(), os.urandom, random.Random.seed

    def urandom(size: int, /) -> bytes:
        """Return the next bytes of this thread; in a process that was forked, the system's."""
        if os.getpid() != process:
            return entropy(size)
        name = threading.current_thread().name
        readings[name] += 1
        return hashlib.shake_256(f"{name} {readings[name]}".encode()).digest(size)

    def seeded(generator: random.Random, a: Any = None, version: int = 2) -> None:
        """Seed a generator; one that is seeded with nothing takes its seed from here."""
        seed(generator, int.from_bytes(urandom(32), "big") if a is None else a, version)

    def seed_torch() -> int:
        value = int.from_bytes(urandom(8), "big") >> 1
        sys.modules["torch"].manual_seed(value)
        return value

    os.urandom = random._urandom = urandom  # type: ignore[attr-defined]
    if hasattr(os, "getrandom"):
        os.getrandom = lambda size, flags=0: urandom(size)
    random.Random.seed = seeded  # type: ignore[method-assign,assignment]
    random.seed = random._inst.seed
    uuid._generate_time_safe = uuid._UuidCreate = None  # type: ignore[attr-defined]  # then Python makes them
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.seed = torch.random.seed = seed_torch  # type: ignore[attr-defined]
