"""Tell how long the step's thread waits for a DataLoader by capture's samples.

A recording has three steps or so, while workers that can't keep up deliver in bursts: of pytorch/examples' `mnist` and
`vae`, recorded steps waited for 40 % of their time, and hundreds of steps sampled without the profiler for 66 and 60 %.
With workers enough, they took 55 and 58 % less (H200, torch 2.11; benchmarks/public).
"""

from __future__ import annotations

from syncscan.model.libraries import in_package
from syncscan.model.trace import Trace

LEAST_SAMPLES = 20
"""With fewer samples the time is uncertain by more than half."""
_LOADER = "torch/utils/data/dataloader.py"


def loader_share(trace: Trace) -> float:
    """Return the part of a step below a DataLoader's functions; 0 where capture took no samples, or too few there."""
    samples = trace.info.capture.host
    if samples is None:
        return 0.0
    inside: list[bool] = []
    for node in samples.nodes:
        below = node.parent >= 0 and inside[node.parent]
        inside.append(below or in_package(samples.frames[node.frame][0], _LOADER))
    count = sum(node.own for node, loading in zip(samples.nodes, inside, strict=True) if loading)
    return count / samples.samples if count >= LEAST_SAMPLES else 0.0
