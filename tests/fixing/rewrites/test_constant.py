"""Tensors that are made, or moved to the device, in every turn of a loop."""

from __future__ import annotations

import pytest

from syncscan.fixing.rewrites.device_copies import constant
from tests.each import each
from tests.fixing.example import Rewritten

REWRITE = constant
END = "\nresult = y.tolist()"
FIXED = {
    ("for step in range(3):\n    weight = torch.tensor([0.3, 0.7], device=device)\n    y = y + weight.sum()"): (
        "weight = torch.tensor([0.3, 0.7], device=device)\nfor step in range(3):\n    y = y + weight.sum()"
    ),
    ("prior = torch.rand(6)\nfor step in range(3):\n    y = y * prior.to(device)"): (
        "prior = torch.rand(6)\nconstant = prior.to(device)\nfor step in range(3):\n    y = y * constant"
    ),
}
KEPT = {
    "its source changes in the loop": (
        "prior = torch.rand(6)\nfor step in range(3):\n    p = prior.to(device)\n    y = y * p\n    prior += 1"
    ),
    "its source is bound anew": (
        "prior = torch.rand(6)\nfor step in range(3):\n    p = prior.to(device)\n    y = y * p\n    prior = prior + 1"
    ),
    "it depends on the loop": (
        "for step in range(3):\n    weight = torch.tensor([0.3, float(step)], device=device)\n    y = y + weight.sum()"
    ),
    "it is written to in place": (
        "for step in range(3):\n"
        "    weight = torch.tensor([0.3, 0.7], device=device)\n"
        "    weight += 1\n"
        "    y = y + weight.sum()"
    ),
    "it is kept in a list": (
        "parts = []\n"
        "for step in range(3):\n"
        "    weight = torch.tensor([0.3, 0.7], device=device)\n"
        "    parts.append(weight)\n"
        "parts[0] += 1\n"
        "y = torch.stack(parts)"
    ),
    "it is a parameter": (
        "for step in range(3):\n"
        "    weight = torch.tensor([0.3, 0.7], device=device, requires_grad=True)\n"
        "    (weight * 2).sum().backward()\n"
        "    y = y + weight.grad.sum()"
    ),
    "random numbers are drawn anew": ("for step in range(3):\n    noise = torch.rand(6).to(device)\n    y = y + noise"),
    "a list that grows": (
        "history = []\n"
        "for step in range(3):\n"
        "    history.append(1.0)\n"
        "    weight = torch.tensor(history, device=device)\n"
        "    y = y + weight.sum()"
    ),
    "a list that a function changes": (
        "history = [1.0]\n"
        "def note():\n"
        "    history.append(1.0)\n"
        "for step in range(3):\n"
        "    note()\n"
        "    weight = torch.tensor(history, device=device)\n"
        "    y = y + weight.sum()"
    ),
    "an alias changes the source": (
        "prior = torch.rand(6)\nother = prior\nfor step in range(3):\n    y = y * prior.to(device)\n    other.add_(1)"
    ),
    "only under a condition": (
        "for step in range(4):\n"
        "    if step % 2:\n"
        "        weight = torch.tensor([0.3, 0.7], device=device)\n"
        "        y = y + weight.sum()"
    ),
}


@pytest.mark.parametrize("body", FIXED)
def test_it_is_rewritten(programs: dict[str, Rewritten], body: str) -> None:
    """It waits less, and gives the same result."""
    program = programs[body]
    assert program.text == FIXED[body] + END
    assert program.waits[1] < program.waits[0]
    assert program.results[0] == program.results[1]


@each("name", KEPT)
def test_it_stays(programs: dict[str, Rewritten], name: str) -> None:
    """Not a byte changes."""
    assert programs[name].text == KEPT[name] + END
