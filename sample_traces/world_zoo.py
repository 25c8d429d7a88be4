"""Waits of `torch.distributed` and `torch.compile` on one GPU: a world of one rank, so that all of it runs alone.

`rules_zoo.py` records them; each case runs in a scope `world::NAME`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.nn.parallel import DistributedDataParallel

Cases = dict[str, Callable[[], Any]]


class Branches(nn.Module):
    """Two layers, of which only the first is used."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = nn.Linear(64, 64), nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.used(x)


def broken(x: torch.Tensor) -> torch.Tensor:
    """A compiled function with a read-back in its middle."""
    y = x.sin() * 2
    scale = y.mean().item()
    return (y * scale).cos()


def cases() -> Cases:
    """All cases by name; starts the process group."""
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    store = dist.FileStore(tempfile.mktemp(), 1)
    dist.init_process_group("nccl", store=store, rank=0, world_size=1, device_id=torch.device("cuda:0"))
    x = torch.randn(64, 64, device="cuda")
    plain = DistributedDataParallel(nn.Linear(64, 64).cuda(), device_ids=[0])
    partial = DistributedDataParallel(Branches().cuda(), device_ids=[0], find_unused_parameters=True)
    sharded = FullyShardedDataParallel(
        nn.Sequential(*[FullyShardedDataParallel(nn.Linear(64, 64).cuda()) for _ in range(4)]), device_id=0
    )
    compiled = torch.compile(broken)

    def reduced() -> torch.Tensor:
        value = x.mean()
        dist.all_reduce(value)
        return value

    return {
        "all_reduce": reduced,
        "all_reduce_item": lambda: reduced().item(),
        "barrier": lambda: dist.barrier(),
        "all_gather_object": lambda: dist.all_gather_object([None], {"a": 1}),
        "broadcast_object_list": lambda: dist.broadcast_object_list([{"a": 1}], src=0),
        "ddp_step": lambda: plain(x).sum().backward(),
        "ddp_unused": lambda: partial(x).sum().backward(),
        "fsdp_step": lambda: sharded(x).sum().backward(),
        "fsdp_state_dict": lambda: sharded.state_dict(),
        "fsdp_clip": lambda: sharded.clip_grad_norm_(1.0),
        "compiled_break": lambda: compiled(x),
    }
