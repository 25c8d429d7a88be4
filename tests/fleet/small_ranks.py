"""Traces of ranks, as small as they can be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.builder import TraceBuilder


def rank_trace(rank: int, kernels: int = 1, **metadata: Any) -> TraceBuilder:
    """A rank with an `.item()` in each of two steps."""
    entries = {"rank": rank, "world_size": 2, "backend": "nccl"}
    t = TraceBuilder(distributedInfo=entries, **metadata)
    for start in t.steps(2, lasts=1000):
        for k in range(kernels):
            t.launch("gemm", at=start + 10 + 2 * k, lasts=1)
        t.sync("aten::item > aten::_local_scalar_dense", at=start + 500, wait=300)
    return t


def write_ranks(folder: Path, count: int = 2, suffix: str = ".pt.trace.json.gz") -> list[str]:
    """Their files, `rank0…` and so on."""
    folder.mkdir(parents=True, exist_ok=True)
    return [str(rank_trace(k).write(folder / f"rank{k}{suffix}")) for k in range(count)]
