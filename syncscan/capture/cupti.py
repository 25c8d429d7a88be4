"""Detach CUPTI from the process after a profiler has stopped, where that is safe.

Kineto leaves CUPTI, the library by which NVIDIA's driver reports to profilers, attached to the process after its first
profile: every later step takes 5 to 25 % longer (H200, torch 2.11). With `TEARDOWN_CUPTI=1` in the environment when a
profile ends, a thread of kineto's calls `cuptiFinalize` at the next CUDA call, and the next profile attaches it again
(libkineto `CuptiActivityApi.cpp`, `teardownContext` and `enableCuptiActivities`). This is the one place that knows when
that is safe:

- CUDA 12.6 and later: yes. Before, attaching again crashed programs that replay CUDA graphs; torch switches it off for
  those of its own below 12.6 (`torch/profiler/profiler.py`, pull requests 112507, 150957 and 151124 of pytorch). Graphs
  captured before and between profiles replayed right on torch 2.11 with CUDA 13.
- Whoever has set TEARDOWN_CUPTI or DISABLE_CUPTI_LAZY_REINIT, torch itself among them, has decided already.
- Only once the profiler is about to stop: kineto lets go when it prepares too, where a profiler of the program's own
  has left CUPTI attached, and the profile that begins then loses its device work (`CuptiActivityProfiler.cpp`,
  `configure` and `resetTraceData`).
- ROCm and XPU don't have CUPTI, and a process that hasn't used its GPU gives kineto no CUDA call to let go at.
"""

from __future__ import annotations

import os
import re
import threading
import time
from pathlib import Path

from syncscan.capture import device

TEARDOWN = "TEARDOWN_CUPTI"
LAZY = "DISABLE_CUPTI_LAZY_REINIT"
SAFE_FROM = (12, 6)
PATIENCE_S = 1.0
"""How long to wait for kineto's thread (3 ms on an H200); one that remains longer is blocked."""

_TASKS = Path("/proc/self/task")

_variable_is_ours = False
"""Whether a capture has set TEARDOWN_CUPTI in the environment."""


def reason_to_keep() -> str | None:
    """Return why CUPTI can't be detached in this process, in a few words; None where it can, or isn't there at all."""
    version = _cuda_version()
    if version is None:
        return None
    if os.environ.get(TEARDOWN, "1") != "1":
        return f"{TEARDOWN}={os.environ[TEARDOWN]} is set"
    if LAZY in os.environ:
        return f"{LAZY} is set"
    if version < SAFE_FROM:
        return f"torch was built for CUDA {version[0]}.{version[1]}, but detaching is safe only from 12.6 on"
    if not _TASKS.is_dir():
        return "this system doesn't list its threads, so it is unknown when CUPTI is detached"
    return None


class Attachment:
    """CUPTI's state from before a profiler stops until after it has.

    `attached_because` says why it is still attached after `release`, None where it isn't.
    """

    def __init__(self) -> None:
        _withdraw()  # of a capture before: kineto would let go when the profiler prepares
        self.attached_because: str | None = None
        self._stopping = False
        self._threads: set[str] = set()

    def before_stop(self) -> None:
        """Prepare for the profiler's stop: a thread that is new from here on is the one that detaches CUPTI."""
        global _variable_is_ours
        self._stopping = _cuda_version() is not None and device.used()
        if not self._stopping:
            return
        self.attached_because = reason_to_keep()
        if self.attached_because is not None:
            return
        self._threads = _threads()
        if TEARDOWN not in os.environ:
            os.environ[TEARDOWN], _variable_is_ours = "1", True

    def release(self) -> None:
        """Wait until CUPTI is detached after the profiler has stopped, and restore the environment.

        The variable has to stay set until then: kineto reads it again after detaching, and attaches again without it.
        If kineto hasn't read it in time, it stays set until the next profiler begins.
        """
        if not self._stopping:
            return
        try:
            self.attached_because = self.attached_because or self._wait()
        finally:
            if self.attached_because is None:
                _withdraw()

    def _wait(self) -> str | None:
        until = time.monotonic() + PATIENCE_S
        while _threads() - self._threads - _pythons():
            device.drain()  # kineto lets go when a CUDA call returns
            if time.monotonic() > until:
                return f"kineto hadn't detached it after {PATIENCE_S:.0f} s"
            time.sleep(0.001)
        return None


def _withdraw() -> None:
    """Remove the variable from the environment, if a capture has set it."""
    global _variable_is_ours
    if _variable_is_ours:
        os.environ.pop(TEARDOWN, None)
    _variable_is_ours = False


def _threads() -> set[str]:
    """Return the native threads of this process."""
    return {task.name for task in _TASKS.iterdir()}


def _pythons() -> set[str]:
    """Return the threads that Python has started: a program may start some at any time; kineto's isn't one."""
    return {str(thread.native_id) for thread in threading.enumerate()}


def _cuda_version() -> tuple[int, int] | None:
    """Return the CUDA version that this torch was built for; None for other vendors' devices or none."""
    import torch

    version = re.match(r"(\d+)\.(\d+)", torch.version.cuda or "")
    return None if version is None or device.vendor() != "cuda" else (int(version[1]), int(version[2]))
