"""A profiler that has just stopped goes in; the process without CUPTI comes out, where CUPTI can safely be let go.

Kineto leaves CUPTI, the library by which NVIDIA's driver reports to profilers, attached to the process after its first
profile: every later step takes 5 to 25 % longer (H200, torch 2.11). With `TEARDOWN_CUPTI=1` in the environment when a
profile ends, a thread of kineto's calls `cuptiFinalize` at the next CUDA call, and the next profile attaches it again
(libkineto `CuptiActivityApi.cpp`, `teardownContext` and `enableCuptiActivities`). This is the one place that knows when
that is safe:

- CUDA 12.6 and later: yes. Before, attaching again crashed programs that replay CUDA graphs; torch switches it off for
  those of its own below 12.6 (`torch/profiler/profiler.py`, pull requests 112507, 150957 and 151124 of pytorch). Graphs
  captured before and between profiles replayed right on torch 2.11 with CUDA 13.
- Whoever has set TEARDOWN_CUPTI or DISABLE_CUPTI_LAZY_REINIT, torch itself among them, has decided already.
- ROCm and XPU don't have CUPTI, and a process that hasn't used its GPU gives kineto no CUDA call to let go at.
"""

from __future__ import annotations

import importlib
import os
import re
import time
from pathlib import Path

from syncscan.capture import device

TEARDOWN = "TEARDOWN_CUPTI"
LAZY = "DISABLE_CUPTI_LAZY_REINIT"
SAFE_FROM = (12, 6)
PATIENCE_S, NUDGE_S = 1.0, 0.1
"""How long kineto's thread is waited for, and after how long a kernel is launched for it. It took 3 ms on an H200, but
once not even 2 s of synchronises: after a profile of the program's own, and a capture that was cut short before its
first step under the profiler; then the program's next kernels did it."""

_TASKS = Path("/proc/self/task")

stays_attached = False
"""Whether a capture of this process has left CUPTI attached: what is timed from then on is slower than without it."""


def reason_to_keep() -> str | None:
    """Why CUPTI can't be let go in this process, in a few words; None where it can, or isn't there at all."""
    version = _cuda_version()
    if version is None:
        return None
    if os.environ.get(TEARDOWN, "1") != "1":
        return f"{TEARDOWN}={os.environ[TEARDOWN]} is set"
    if LAZY in os.environ:
        return f"{LAZY} is set"
    if version < SAFE_FROM:
        return f"torch was built for CUDA {version[0]}.{version[1]}, and letting go is safe from 12.6 on"
    return None


class Attachment:
    """CUPTI from before a profiler starts until after it has stopped.

    `kept` says why it is still attached after `release`, None where it isn't.
    """

    def __init__(self) -> None:
        self.kept: str | None = None
        self._set = False
        self._threads: set[str] = set()

    def prepare(self) -> None:
        """Before the profiler starts: have kineto let go at the end, and attach right should it have let go before."""
        self.kept = reason_to_keep()
        if _cuda_version() is not None and self.kept is None and TEARDOWN not in os.environ:
            os.environ[TEARDOWN] = "1"
            self._set = True

    def before_stop(self) -> None:
        """Right before the profiler stops: from here on a new thread of the process is the one that lets go."""
        if not device.used():
            self._put_back()
        self._threads = _threads()

    def release(self) -> None:
        """After the profiler has stopped: wait until CUPTI is gone, and leave the environment as it was.

        The variable has to stand until then: kineto reads it again when it has let go, and without it attaches anew.
        """
        global stays_attached
        if _cuda_version() is None or not device.used():
            self._put_back()
            return
        if self.kept is None and os.environ.get(TEARDOWN) == "1":
            self.kept = self._wait()
        if self.kept is None:
            self._put_back()
        stays_attached = stays_attached or self.kept is not None

    def _put_back(self) -> None:
        if self._set:
            os.environ.pop(TEARDOWN, None)
            self._set = False

    def _wait(self) -> str | None:
        began = time.monotonic()
        while _threads() - self._threads:
            device.drain()  # kineto lets go when a CUDA call returns
            waited = time.monotonic() - began
            if waited > PATIENCE_S:
                return f"kineto hadn't let it go after {PATIENCE_S:.0f} s"
            if waited > NUDGE_S:
                device.launch()
            time.sleep(0.001)
        return None


def _threads() -> set[str]:
    """The native threads of this process; none where the system doesn't list them."""
    return {task.name for task in _TASKS.iterdir()} if _TASKS.is_dir() else set()


def _cuda_version() -> tuple[int, int] | None:
    """The CUDA that this torch was built for; None where the device is another vendor's, or there is none."""
    torch = importlib.import_module("torch")
    found = re.match(r"(\d+)\.(\d+)", torch.version.cuda or "")
    return None if found is None or device.vendor() != "cuda" else (int(found[1]), int(found[2]))
