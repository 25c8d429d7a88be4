"""Phrase what is left to gain where the device is the limit, and the kernels that take most of it, by module."""

from __future__ import annotations

import re
from collections.abc import Iterator

from syncscan.facts.device_work import alike, without_profiler
from syncscan.facts.kernel_shares import KernelShare, kernel_shares
from syncscan.model.analysis import Analysis
from syncscan.model.step import Bound, StepSummary
from syncscan.report import dry_run
from syncscan.report.blocks import Block, Fold, Sentence
from syncscan.report.host import table
from syncscan.report.printable import shown
from syncscan.report.units import duration

SHOWN = 5
_LONG = 40
_HOLDERS = ("Kernel", "Kernel2", "device_kernel")
"""CUTLASS's templates, whose argument is the kernel's own name."""
TITLE = "Top kernels by device time"


def shares(analysis: Analysis) -> tuple[KernelShare, ...]:
    """Return the kernels that take most of a step, the longest first; none of a dry run."""
    return () if dry_run.is_dry(analysis) else kernel_shares(analysis.trace, SHOWN)


def leads(analysis: Analysis) -> bool:
    """Return whether the kernels are the next thing to look at: the device limits the step."""
    return analysis.step.bound is Bound.DEVICE


def sentence(analysis: Analysis) -> str:
    """Return what is left to gain beside the device, and who looks further; empty where the device isn't the limit."""
    if not leads(analysis) or analysis.step.device_share is None:
        return ""
    text, part = f"{_left(analysis.step)} is left to gain on the host; the rest is kernel time.", most(analysis)
    return f"{text} {part}: a kernel profiler (ncu, rocprof) shows why." if part else text


def most(analysis: Analysis) -> str:
    """Return how much of the device's time the longest kernels take, without a full stop; empty without one."""
    longest = shares(analysis)
    if not longest:
        return ""
    many = f"{len(longest)} kernels take" if len(longest) > 1 else "1 kernel takes"
    return f"{many} {sum(share.share for share in longest):.0%} of device time"


def _left(step: StepSummary) -> str:
    """Return the part of the step beside the device's work, of the step in the trace or of the unprofiled one."""
    recorded, unprofiled = step.recorded_device_share, step.device_share or 0.0
    if not alike(recorded, unprofiled):
        left = without_profiler(max(0.0, 1.0 - unprofiled), step.device_share_basis, " of the step")
        return f"At most {left}"
    rest = max(0.0, 1.0 - recorded)
    return f"At most {rest:.0%} of the step" if round(rest, 2) else "Almost nothing"


def blocks(analysis: Analysis) -> Iterator[Block]:
    """Yield what is left to gain where the device is the limit, and the longest kernels."""
    if text := sentence(analysis):
        yield Sentence(text)
    if longest := shares(analysis):
        head = ("kernel", "module and op", "of device time", "per step")
        rows = [(_short(k.name), _launcher(k), f"{k.share:.1%}", duration(k.us)) for k in longest]
        _, grid = table(TITLE, head, rows, words=2, literal=1)
        yield Fold(TITLE, (grid,))


def _launcher(kernel: KernelShare) -> str:
    parts = [*kernel.module[-2:], kernel.op]
    named = " › ".join(part for part in parts if part) or "–"
    return f"{named}, and {kernel.others} more" if kernel.others else named


def _short(name: str) -> str:
    """Return a kernel's name without its return type, namespaces and, where it is long, its template's arguments.

    Of CUTLASS's `cutlass::Kernel<NAME>` the argument is the name.
    """
    bare = re.sub(r"^void |\(anonymous namespace\)::|\b[a-z_]\w*::(?=\w)", "", name)
    if len(bare) <= _LONG:
        return shown(bare, 60)
    first, *others = re.split(r"[<(,>]", bare)
    return shown((first if first not in _HOLDERS else next(filter(None, others), first)) or bare, 60)
