"""Decode pieces of a big trace file in a second process.

A child is forked only if nothing prevents it: on Linux, with a single Python thread and without torch, as in the
command line. It opens the file itself, splits it in the same way, decodes every other piece, and sends its columns at
the end.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

WORTHWHILE_BYTES = 24 << 20
"""Length of text from which a second process saves more time than it costs, measured in benchmarks/README.md."""

ALONE = "SYNCSCAN_ONE_PROCESS"
"""Environment variable of a process that must work without a second one, as several share the processors."""


def possible() -> bool:
    """Return whether a second process can be forked and would have its own processor.

    A forked child has one thread, and locks held by other threads stay locked in it. With torch loaded there are such
    threads, and a CUDA context that a child must not touch.
    """
    if sys.platform != "linux" or threading.active_count() > 1 or "torch" in sys.modules:
        return False
    return ALONE not in os.environ and len(os.sched_getaffinity(0)) > 1


@contextlib.contextmanager
def second_process(work: Callable[[], Any]) -> Iterator[Callable[[], Any]]:
    """Compute a value in a child process, which is gone afterwards.

    The function that it yields waits for the value and returns it; None if the child failed. The system may refuse a
    process (`OSError`): processes, files or memory are exhausted.
    """
    import multiprocessing  # only large traces need it

    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_send, args=(sender, work))

    def result() -> Any:
        try:
            with open(receiver.fileno(), "rb", closefd=False) as pipe:
                return pickle.load(pipe)
        except (EOFError, pickle.UnpicklingError):
            return None

    with receiver:
        with sender, warnings.catch_warnings():
            # Python 3.12 warns of threads; those present belong to numpy's BLAS, which the child doesn't call.
            warnings.simplefilter("ignore", DeprecationWarning)
            child.start()
        try:
            yield result
        finally:
            child.kill()
            child.join()


def _send(sender: Any, work: Callable[[], Any]) -> None:
    # Whoever waits sees that nothing came. `sender.send` would copy the columns, and `recv` them twice.
    with contextlib.suppress(BaseException), open(sender.fileno(), "wb", closefd=False) as pipe:
        pickle.dump(work(), pipe, pickle.HIGHEST_PROTOCOL)
