"""Tensors that go to the device and come back."""

from __future__ import annotations

import pytest

from syncscan.fixing.rewrites import lengths_roundtrip
from tests.fixing.example import Rewritten

REWRITE = lengths_roundtrip
FIXED = {
    ("lengths = torch.tensor([3, 2])\nlengths = lengths.to(device)\nresult = lengths.cpu()"): (
        "lengths = torch.tensor([3, 2])\nhost_lengths = lengths\nlengths = lengths.to(device)\nresult = host_lengths"
    ),
    ("host = torch.tensor([3, 2])\nlengths = host.to(device)\nresult = lengths.cpu()"): (
        "host = torch.tensor([3, 2])\nhost_lengths = host\nlengths = host.to(device)\nresult = host_lengths"
    ),
    ("host = torch.tensor([3, 2])\nlengths = host.to(device)\nresult = lengths.tolist()"): (
        "host = torch.tensor([3, 2])\nhost_lengths = host\nlengths = host.to(device)\nresult = host_lengths.tolist()"
    ),
    (
        "for k in range(3):\n"
        "    host = torch.tensor([3, 2 + k])\n"
        "    lengths = host.to(device)\n"
        "    result = lengths.cpu()"
    ): (
        "for k in range(3):\n"
        "    host = torch.tensor([3, 2 + k])\n"
        "    host_lengths = host\n"
        "    lengths = host.to(device)\n"
        "    result = host_lengths"
    ),
    (
        "host = torch.rand(4, requires_grad=True)\n"
        "sent = host.to(device)\n"
        "result = sent.cpu().sum()\n"
        "result.backward()\n"
        "result = host.grad"
    ): (
        "host = torch.rand(4, requires_grad=True)\n"
        "host_sent = host\n"
        "sent = host.to(device)\n"
        "result = host_sent.sum()\n"
        "result.backward()\n"
        "result = host.grad"
    ),
}
KEPT = {
    program: program
    for program in (
        ("host = torch.tensor([3, 2])\nlengths = host.to(device)\nlengths += 1\nresult = lengths.cpu()"),
        ("host = torch.tensor([3, 2])\nlengths = host.to(device)\nhost += 1\nresult = lengths.cpu()"),
        ("host = torch.tensor([3, 2])\nlengths = host.to(device)\nalias = lengths\nalias += 1\nresult = lengths.cpu()"),
        ("host = torch.tensor([3, 2])\nlengths = host.to(device).float()\nresult = lengths.cpu()"),
        ("host = torch.tensor([3, 2])\nlengths = host.to(device, torch.float32)\nresult = lengths.cpu()"),
        (
            "host = torch.tensor([3, 2])\n"
            "lengths = host.to(device)\n"
            "result = lengths.cpu()\n"
            "result += 1\n"
            "result = result.tolist(), host.tolist()"
        ),
        (
            "host = torch.tensor([3, 2])\n"
            "lengths = host.to(device)\n"
            "def grow():\n"
            "    lengths.add_(1)\n"
            "grow()\n"
            "result = lengths.cpu()"
        ),
        (
            "host = torch.tensor([3, 2])\n"
            "lengths = host.to(device)\n"
            "if x.sum() > 0:\n"
            "    lengths = lengths + 1\n"
            "result = lengths.cpu()"
        ),
        (
            "host = torch.tensor([3, 2])\n"
            "lengths = host.to(device)\n"
            "torch.add(lengths, 1, out=lengths)\n"
            "result = lengths.cpu()"
        ),
        ("host = torch.tensor([3, 2])\nlengths = host.to(device)\nlengths[0] = 9\nresult = lengths.cpu()"),
        (
            "host = torch.tensor([3, 2])\n"
            "lengths = host.to(device)\n"
            "torch.nn.init.constant_(lengths, 4)\n"
            "result = lengths.cpu()"
        ),
        (
            "def grow(t):\n"
            "    t.add_(1)\n"
            "host = torch.tensor([3, 2])\n"
            "lengths = host.to(device)\n"
            "grow(lengths)\n"
            "result = lengths.cpu()"
        ),
        (
            "def grow(t):\n"
            "    t.add_(1)\n"
            "host = torch.tensor([3, 2])\n"
            "lengths = host.to(device)\n"
            "grow(host)\n"
            "result = lengths.cpu()"
        ),
        ("host = torch.tensor([3, 2])\nalias = host\nlengths = host.to(device)\nalias += 1\nresult = lengths.cpu()"),
    )
}


@pytest.mark.parametrize("body", FIXED)
def test_it_is_rewritten(programs: dict[str, Rewritten], body: str) -> None:
    """It waits less, and gives the same result."""
    program = programs[body]
    assert program.text == FIXED[body]
    assert program.waits[1] < program.waits[0]
    assert program.results[0] == program.results[1]


@pytest.mark.parametrize("program", KEPT)
def test_it_stays(programs: dict[str, Rewritten], program: str) -> None:
    """Not a byte changes."""
    assert programs[program].text == program
