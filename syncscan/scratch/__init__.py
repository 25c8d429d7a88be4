"""A copy-on-write view of the file tree, in which a program runs that must not change its user's files.

What it writes, renames, truncates, removes or makes goes to a scratch folder, what it wrote it reads back, and every
run begins from the same state. The kernel gives such a view where it allows it (`kernel`), else Python's own functions
are redirected and the rest is refused (`redirect`).
"""

from syncscan.scratch.scratch_view import KERNEL, Scratch, kind_here, sentence

__all__ = ["KERNEL", "Scratch", "kind_here", "sentence"]
