"""From the columns read so far to whether the trace fits into memory, told before it doesn't."""

from __future__ import annotations

import os
import re
from pathlib import Path

from syncscan.errors import TraceTooLarge
from syncscan.load.columns import Columns

EVENT_BYTES = 280
"""What a kept event takes at the peak of reading, while rows are sorted and linked: 3,000,000 kernels or ops, or a
million calls, took 267 to 298 bytes each (peak resident size, Python 3.11, numpy 2, x86-64, November 2026)."""
LEAST = 100_000_000
"""An interpreter with numpy takes about as much by itself, in bytes."""
PART = 0.8
"""The part of the memory that is free that a trace may take: other programs need some, and the estimate isn't exact."""
_CGROUPS, _OWN_GROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def available() -> int | None:
    """Bytes that may be taken here unless the user says otherwise; None where the system doesn't tell."""
    free = [size for size in (_free_in_machine(), _free_in_container()) if size is not None]
    return int(min(free) * PART) if free else None


def _free_in_machine() -> int | None:
    try:
        found = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text())
        if found:
            return int(found[1]) << 10
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None


def _free_in_container() -> int | None:
    """What the control group of this process and those around it leave; None where none has a limit.

    Of version 2 (Linux, Documentation/admin-guide/cgroup-v2.rst).
    """
    try:
        found = re.search(r"^0::/(.*)$", _OWN_GROUP.read_text(), re.MULTILINE)
    except OSError:
        return None
    own = _CGROUPS / (found[1] if found else "")
    left = [_left_in(group) for group in (own, *own.parents) if group.is_relative_to(_CGROUPS)]
    return min((size for size in left if size is not None), default=None)


def _left_in(group: Path) -> int | None:
    """What one group's limit leaves. Pages of files that were read count as used there, and make room when asked."""
    try:
        most, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
        cached = re.findall(r"^(?:in)?active_file (\d+)$", (group / "memory.stat").read_text(), re.MULTILINE)
    except (OSError, ValueError):
        return None
    return max(0, most - used + sum(map(int, cached)))


def taken() -> int | None:
    """Bytes of data that this process has mapped; None on systems that don't limit it by that (all but Linux)."""
    try:
        found = re.search(r"VmData:\s+(\d+) kB", Path("/proc/self/status").read_text())
    except OSError:
        return None
    return int(found[1]) << 10 if found else None


def hold_to_half() -> None:
    """Have the system refuse this process more than half of what it may still take: it shares that with another."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    already = taken()
    if soft != resource.RLIM_INFINITY and already is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (already + max(0, soft - already) // 2, hard))


def hold_to(size: int) -> None:
    """Have the system refuse this process more than so many bytes from now on, or than `LEAST`; not all systems do."""
    already, size = taken(), max(size, LEAST)
    if already is None:
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if all(limit == resource.RLIM_INFINITY or already + size < limit for limit in (soft, hard)):
        resource.setrlimit(resource.RLIMIT_DATA, (already + size, hard))


def require(columns: Columns, path: str, most: int | None) -> None:
    """See to it that the trace as read so far can be analysed in this memory.

    Args:
        columns: what was read.
        path: named in the error.
        most: bytes; None for no limit.

    Raises:
        TraceTooLarge: it can't.
    """
    if most is None or (needed := columns.rows * EVENT_BYTES + columns.texts_bytes) <= most:
        return
    raise TraceTooLarge(
        f"{path} holds more than fits into {most / 1e9:.1f} GB: its first {columns.events:,} events need "
        f"{needed / 1e9:.1f} GB.",
        "Record fewer steps, or allow more memory with --max-memory.",
    )
