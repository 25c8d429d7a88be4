"""Reads which vector registers the calling thread has in use, on x86-64 Linux; None elsewhere.

Code with 256 or 512 bits wide registers that ends without `vzeroupper` leaves their upper halves in use. From then on
each older instruction of the thread (SSE, most of what torch and the driver are made of) waits for them (Intel 64 and
IA-32 Architectures Optimization Reference Manual, "Mixing AVX code with SSE code").
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import platform
import sys
from collections.abc import Callable
from pathlib import Path

UPPER = 1 << 2 | 1 << 6
"""The upper halves of 256 and of 512 bits in XINUSE (Intel 64 SDM volume 1, section 13.6)."""

# mov ecx, 1; xgetbv; ret: which state components are in use.
_XGETBV = bytes.fromhex("b901000000 0f01d0 c3")
_VZEROUPPER = bytes.fromhex("c5f877 c3")

_pages: list[mmap.mmap] = []
"""Pages that hold the code, which nothing else keeps alive."""


def upper_in_use() -> int | None:
    """Which upper halves are in use, by Intel's numbers; None where this machine can't tell."""
    return _function(_XGETBV)() & UPPER if _can_tell() else None


def clear() -> None:
    """Take the upper halves out of use."""
    if _can_tell():
        _function(_VZEROUPPER)()


@functools.cache
def _can_tell() -> bool:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    flags = Path("/proc/cpuinfo").read_text()
    return "avx" in flags and "xgetbv1" in flags


@functools.cache
def _function(code: bytes) -> Callable[[], int]:
    """Made once: making it uses, and clears, the registers that are to be read."""
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    _pages.append(page)
    function: Callable[[], int] = ctypes.CFUNCTYPE(ctypes.c_uint32)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    return function
