"""Start and stop a command that only reads traces without the costs that only other programs need."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys

from syncscan import features

COMMANDS = frozenset("analyze whatif report explain repair".split())
"""Those that run no program of the user's, nor start one: what is switched off here may matter to that.

What analyses the ranks of a job are processes of syncscan's own. Rooms name theirs."""

_IMPORTING = 100_000
"""New objects after which cycles are looked for, while things are imported."""
_ANALYZING = 1_000_000
"""New objects between two searches while traces are analyzed. Thousands of waits make 100,000 objects but few cycles;
one search takes a fiftieth of the analysis, and the default of 700 objects takes a twentieth."""
_GENERATIONS = gc.get_threshold()[1:]
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MOST_ARENAS = -1, -3, -8
"""Parameters of glibc's mallopt(3), of its malloc.h."""
_LARGEST_MMAP_THRESHOLD = 32 << 20
"""In bytes; glibc takes no larger one."""


def only_reads(command: str) -> bool:
    return command in COMMANDS or any(command in room.readers for room in features.rooms().values())


def begin() -> None:
    """Switch off what takes a third of the time of a small trace; before numpy is imported.

    OpenBLAS, which comes with numpy and isn't asked for anything here, begins a thread a core when it is loaded. Python
    looks for cycles after every 700 new objects, dozens of times while 50,000 are imported, and through all of them
    when it ends, where the system takes them back anyway.
    """
    if "numpy" in sys.modules:  # this process is some other program's, and it is too late
        return
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(_IMPORTING)
    atexit.register(gc.freeze)
    _keep_freed_memory()


def _keep_freed_memory() -> None:
    """Have arrays of some megabytes made where others were, for which the system needn't clear new pages each time.

    That took a fifteenth of the time of a trace of 276 MB, at the same peak of memory. Only glibc has such settings.
    All threads take from one arena, or a second would have new pages while what was let go in the first lies idle.
    """
    if not sys.platform.startswith("linux"):
        return
    import ctypes  # which numpy needs too

    with contextlib.suppress(OSError, AttributeError):
        set_option = ctypes.CDLL(None).mallopt
        set_option(_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD)
        set_option(_TRIM_THRESHOLD, -1)
        set_option(_MOST_ARENAS, 1)


def before_reading() -> None:
    """Look for cycles more often from here on, but not in imported modules.

    What an earlier trace of the same command left in a cycle is let go before the next: a trace is large.
    """
    if gc.get_threshold()[0] == _IMPORTING:
        gc.freeze()
        gc.set_threshold(_ANALYZING, *_GENERATIONS)
    elif gc.get_threshold()[0] == _ANALYZING:
        gc.collect()
