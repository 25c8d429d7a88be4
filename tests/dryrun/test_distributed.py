"""Two ranks on gloo, each of which believes in a device: DDP and collectives work, and wait where CUDA's do."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def rank_of_two(rank: int, port: int, folder: str) -> None:
    """One rank's program; writes the rule of each finding and the source line that it names."""
    import torch
    import torch.distributed as dist

    import syncscan

    with syncscan.pretend_gpu() as rec:
        where = f"tcp://127.0.0.1:{port}"
        dist.init_process_group("nccl", init_method=where, rank=rank, world_size=2)
        net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4).cuda(), device_ids=[0])
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        for _ in range(2):
            optimizer.zero_grad()
            loss = net(torch.ones(3, 4, device="cuda") * (rank + 1)).square().mean()
            loss.backward()
            optimizer.step()
        total = torch.ones(2, device="cuda") * rank
        dist.all_reduce(total)
        gathered = [torch.empty_like(total) for _ in range(2)]
        dist.all_gather(gathered, total)
        dist.all_reduce(total, async_op=True).wait()
        assert total.is_cuda
        assert gathered[0].is_cuda
        read = [gathered[0][0].item(), total[0].item(), loss.item()]
        dist.destroy_process_group()
    assert read[:2] == [1.0, 2.0]
    Path(folder, f"{rank}.txt").write_text(" ".join(sorted({f.rule for f in rec.findings})))


def test_two_ranks_each_pretend_a_device(tmp_path: Path) -> None:
    """The reads wait, in both; neither DDP nor the collectives do."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    call = f"from {__name__} import rank_of_two; rank_of_two({{}}, {port}, {str(tmp_path)!r})"
    ranks = [
        subprocess.Popen([sys.executable, "-c", call.format(rank)], cwd=ROOT, stderr=subprocess.PIPE, text=True)
        for rank in (0, 1)
    ]
    ended = [(rank.communicate(timeout=120)[1], rank.returncode) for rank in ranks]
    assert [code for _, code in ended] == [0, 0], ended
    messages = [set((tmp_path / f"{rank}.txt").read_text().split()) for rank in (0, 1)]
    assert messages[0] == messages[1]
    assert {"item"} <= messages[0] <= {"collective-readback", "item", "to-device"}
