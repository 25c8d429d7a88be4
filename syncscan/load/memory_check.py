"""Check early whether a trace fits into memory, from the columns read so far."""

from __future__ import annotations

import os
import re
from pathlib import Path

from syncscan.errors import TraceTooLarge
from syncscan.load.columns import Columns

EVENT_BYTES = 280
"""Peak memory per event, while rows are sorted and linked: 3,000,000 kernels or ops, or a million calls, took 267 to
298 bytes each (peak resident size, Python 3.11, numpy 2, x86-64, November 2026)."""
LEAST = 100_000_000
"""Approximate memory of an interpreter with numpy, in bytes."""
PART = 0.8
"""Part of the free memory that a trace may take: other programs need some, and the estimate isn't exact."""
_CGROUPS, _OWN_GROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def available() -> int | None:
    """Return the bytes that may be used by default; None if the system doesn't tell."""
    free = [size for size in (_free_in_machine(), _free_in_container()) if size is not None]
    return int(min(free) * PART) if free else None


def _free_in_machine() -> int | None:
    try:
        free = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text())
        if free:
            return int(free[1]) << 10
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None


def _free_in_container() -> int | None:
    """Return what the limits of this process's control groups leave; None without a limit.

    Version 2 of control groups (Linux, Documentation/admin-guide/cgroup-v2.rst).
    """
    try:
        group_line = re.search(r"^0::/(.*)$", _OWN_GROUP.read_text(), re.MULTILINE)
    except OSError:
        return None
    own = _CGROUPS / (group_line[1] if group_line else "")
    left = [_left_in(group) for group in (own, *own.parents) if group.is_relative_to(_CGROUPS)]
    return min((size for size in left if size is not None), default=None)


def _left_in(group: Path) -> int | None:
    """Return what one group's limit leaves; cached file pages count as used but are freed on demand."""
    try:
        most, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
        cached = re.findall(r"^(?:in)?active_file (\d+)$", (group / "memory.stat").read_text(), re.MULTILINE)
    except (OSError, ValueError):
        return None
    return max(0, most - used + sum(map(int, cached)))


def taken() -> int | None:
    """Return the bytes of data that this process has mapped; None on systems without such a limit (all but Linux)."""
    try:
        mapped = re.search(r"VmData:\s+(\d+) kB", Path("/proc/self/status").read_text())
    except OSError:
        return None
    return int(mapped[1]) << 10 if mapped else None


def hold_to(size: int) -> None:
    """Limit this process to this many more bytes, at least `LEAST`; without effect on some systems."""
    already, size = taken(), max(size, LEAST)
    if already is None:
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if all(limit == resource.RLIM_INFINITY or already + size < limit for limit in (soft, hard)):
        resource.setrlimit(resource.RLIMIT_DATA, (already + size, hard))


def require(columns: Columns, path: str, most: int | None) -> None:
    """Require that the trace as read so far can be analyzed in this memory."""
    if most is None or (needed := columns.rows * EVENT_BYTES + columns.texts_bytes) <= most:
        return
    raise TraceTooLarge(
        f"{path} doesn't fit into {most / 1e9:.1f} GB: its first {columns.events:,} events need {needed / 1e9:.1f} GB.",
        "Record fewer steps, or allow more memory with --max-memory.",
    )
