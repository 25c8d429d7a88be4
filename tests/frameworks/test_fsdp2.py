"""FSDP2: CPU offload, on one rank; without it nothing waits."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.frameworks.conftest import Seen, Spares

torch = pytest.importorskip("torch")
fsdp = pytest.importorskip("torch.distributed.fsdp")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
    pytest.mark.skipif(not hasattr(fsdp, "fully_shard"), reason="FSDP2 has these names since torch 2.6"),
]

PROGRAM = """
import os, tempfile
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, OffloadPolicy, fully_shard

store = dist.FileStore(os.path.join(tempfile.mkdtemp(), "store"), 1)
dist.init_process_group("nccl", store=store, rank=0, world_size=1)
mesh = init_device_mesh("cuda", (1,))
model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(3)))
policy = CPUOffloadPolicy(pin_memory=False)
for part in (*model, model):
    fully_shard(part, mesh=mesh, offload_policy=policy)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(64, 1024, device="cuda")
def step():
    model(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
PINNED = ("CPUOffloadPolicy(pin_memory=False)", "CPUOffloadPolicy(pin_memory=True)")
KEPT = ("CPUOffloadPolicy(pin_memory=False)", "OffloadPolicy()")


def test_parameters_are_copied_without_a_wait_from_pageable_memory_too(run: Callable[[str], Seen]) -> None:
    """They are copied with `non_blocking=True` on a stream of their own, on which nothing is queued before.

    A thread that loses its core within a call looks as if it waited: of the twelve copies one may.
    """
    seen = run(PROGRAM)
    assert not seen.of("fsdp2", "from pageable memory"), str(seen)
    assert sum(finding.count for finding in seen.of("to-device", "")) <= 1, str(seen)


def test_gradients_are_copied_to_pinned_memory_without_a_wait(spares: Spares) -> None:
    """Unless they accumulate there."""
    fix = "CPUOffloadPolicy(pin_memory=True)"
    spares(PROGRAM, PINNED, rule="fsdp2", title="gradient to the host", fix=fix, line=False)


def test_offloaded_gradients_are_awaited_at_the_end_of_backward(spares: Spares) -> None:
    """It is intended: the optimizer runs on the host. What is kept on the device is not awaited."""
    program = PROGRAM.replace(*PINNED)
    switch = ("CPUOffloadPolicy(pin_memory=True)", "OffloadPolicy()")
    fix = "Without offload_policy"
    spares(program, switch, rule="fsdp2", title="until the gradients are on the host", fix=fix, line=False)


def test_without_offload_nothing_waits(run: Callable[[str], Seen]) -> None:
    """Streams wait for events, and the host for none."""
    seen = run(PROGRAM.replace(*KEPT))
    assert not seen.findings, str(seen)


def test_the_norm_of_sharded_gradients_is_read_by_the_program(run: Callable[[str], Seen]) -> None:
    """A DTensor's `item` is the program's own wait, and no finding of FSDP2's."""
    clip = "    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    norm.item()  # here\n"
    seen = run(PROGRAM.replace(*KEPT).replace("    optimizer.step()\n", clip + "    optimizer.step()\n"))
    assert not seen.of("fsdp2", "")
    assert any("# here" in seen.line(finding) for finding in seen.findings), str(seen)
