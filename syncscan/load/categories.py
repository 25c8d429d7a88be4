"""Map the category names of torch 1.8 to 2.14 for every vendor to `Category`; unknown names are left out."""

from __future__ import annotations

from syncscan.model.trace import Category

CATEGORIES = {
    "cpu_op": Category.CPU_OP,
    "Operator": Category.CPU_OP,
    "user_annotation": Category.ANNOTATION,
    "cuda_runtime": Category.RUNTIME,
    "Runtime": Category.RUNTIME,
    "xpu_runtime": Category.RUNTIME,
    "mtia_runtime": Category.RUNTIME,
    "glow_runtime": Category.RUNTIME,
    "privateuse1_runtime": Category.RUNTIME,
    "cuda_driver": Category.DRIVER,
    "xpu_driver": Category.DRIVER,
    "privateuse1_driver": Category.DRIVER,
    "kernel": Category.KERNEL,
    "Kernel": Category.KERNEL,
    "mtia_ccp_events": Category.KERNEL,
    "gpu_memcpy": Category.MEMCPY,
    "Memcpy": Category.MEMCPY,
    "gpu_memset": Category.MEMSET,
    "Memset": Category.MEMSET,
    "cuda_sync": Category.SYNC,
    "xpu_sync": Category.SYNC,
    "overhead": Category.OVERHEAD,
}
"""Trace category → ours; from the version table of the format (Kineto's ActivityType.h through its history)."""

# "User" of torch 1.8, today's gpu_user_annotation, is left out too: it repeats a host annotation on each stream.

PYTHON = "python_function"
"""The category of Python frames."""

ARROWS = frozenset({"fwdbwd", "forward_backward"})
"""Categories of the arrows from a forward op to its backward op."""


def vendor_of_category(name: str) -> str:
    """Return the vendor that alone uses a category (`xpu`, `mtia`, `cuda`); empty for shared categories."""
    prefix = name.partition("_")[0]
    return prefix if prefix in ("xpu", "mtia") else "cuda" if name == "cuda_sync" else ""
