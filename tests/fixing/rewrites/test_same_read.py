"""Numbers that are read in every turn of a loop."""

from __future__ import annotations

import pytest

from syncscan.fixing.rewrites import same_read
from tests.fixing.example import Rewritten

REWRITE = same_read
FIXED = {
    ("scale = torch.tensor(1.5, device=device)\nfor k in range(4):\n    x = x * scale.item()\nresult = x.tolist()"): (
        "scale = torch.tensor(1.5, device=device)\n"
        "scale_value = scale.item()\n"
        "for k in range(4):\n"
        "    x = x * scale_value\n"
        "result = x.tolist()"
    ),
    (
        "import math\n"
        "def grown(t, k):\n"
        "    return t * math.sqrt(k)\n"
        "scale = torch.tensor(1.5, device=device)\n"
        "for k in range(4):\n"
        "    x = torch.relu(grown(scale, k)) + x * scale.item()\n"
        "result = x.tolist()"
    ): (
        "import math\n"
        "def grown(t, k):\n"
        "    return t * math.sqrt(k)\n"
        "scale = torch.tensor(1.5, device=device)\n"
        "scale_value = scale.item()\n"
        "for k in range(4):\n"
        "    x = torch.relu(grown(scale, k)) + x * scale_value\n"
        "result = x.tolist()"
    ),
    (
        "class Net(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.strength = torch.nn.Parameter(torch.tensor(0.5, device=device))\n"
        "    def forward(self, x):\n"
        "        for k in range(4):\n"
        "            x = x * self.strength.item()\n"
        "        return x\n"
        "result = Net()(x).tolist()"
    ): (
        "class Net(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.strength = torch.nn.Parameter(torch.tensor(0.5, device=device))\n"
        "    def forward(self, x):\n"
        "        strength = self.strength.item()\n"
        "        for k in range(4):\n"
        "            x = x * strength\n"
        "        return x\n"
        "result = Net()(x).tolist()"
    ),
}
KEPT = {
    program: program
    for program in (
        (
            "scale = torch.tensor(1.5, device=device)\n"
            "for k in range(4):\n"
            "    x = x * scale.item()\n"
            "    scale += 1\n"
            "result = x.tolist()"
        ),
        (
            "scale = torch.tensor(1.5, device=device)\n"
            "alias = scale\n"
            "for k in range(4):\n"
            "    x = x * scale.item()\n"
            "    alias.add_(1)\n"
            "result = x.tolist()"
        ),
        (
            "scale = torch.tensor(1.5, device=device)\n"
            "def grow():\n"
            "    global scale\n"
            "    scale = scale + 1\n"
            "for k in range(4):\n"
            "    x = x * scale.item()\n"
            "    grow()\n"
            "result = x.tolist()"
        ),
        (
            "scale = torch.tensor(1.5, device=device)\n"
            "def grow(t):\n"
            "    t.mul_(2)\n"
            "for k in range(4):\n"
            "    x = x * scale.item()\n"
            "    grow(scale)\n"
            "result = x.tolist()"
        ),
        (
            "w = torch.tensor(1.5, device=device, requires_grad=True)\n"
            "opt = torch.optim.SGD([w], lr=0.1)\n"
            "result = []\n"
            "for k in range(4):\n"
            "    (w * w).backward()\n"
            "    opt.step()\n"
            "    result.append(round(w.item(), 3))"
        ),
        (
            "w = torch.tensor(1.5, device=device, requires_grad=True)\n"
            "opt = torch.optim.SGD([w], lr=0.1)\n"
            "advance = opt.step\n"
            "result = []\n"
            "for k in range(4):\n"
            "    (w * w).backward()\n"
            "    advance()\n"
            "    result.append(round(w.item(), 3))"
        ),
        (
            "cells = [torch.tensor(1.5, device=device)]\n"
            "result = []\n"
            "for k in range(4):\n"
            "    result.append(round(cells[0].item(), 3))\n"
            "    cells[0] = cells[0] * 2"
        ),
        (
            "bn = torch.nn.BatchNorm1d(6).to(device)\n"
            "result = []\n"
            "for k in range(4):\n"
            "    bn(x)\n"
            "    result.append(round(bn.num_batches_tracked.item(), 3))"
        ),
        (
            "scale = torch.tensor(1.5, device=device)\n"
            "for k in range(4):\n"
            "    if k > 10:\n"
            "        x = x * scale.item()\n"
            "result = x.tolist()"
        ),
        (
            "import operator\n"
            "scale = torch.tensor(1.5, device=device)\n"
            "for k in range(4):\n"
            "    x = x * scale.item()\n"
            "    if k > 10:\n"
            "        operator.imul(scale, 2)\n"
            "result = x.tolist()"
        ),
        (
            "import operator\n"
            "scale = torch.tensor(1.5, device=device)\n"
            "kept = dict(scale=scale)\n"
            "for k in range(4):\n"
            "    x = x * scale.item()\n"
            "    operator.index(k)\n"
            "result = x.tolist()"
        ),
        (
            "import operator\n"
            "class Net:\n"
            "    def __init__(self):\n"
            "        self.scale = torch.tensor(1.5, device=device)\n"
            "net = Net()\n"
            "for k in range(4):\n"
            "    x = x * net.scale.item()\n"
            "    operator.index(k)\n"
            "result = x.tolist()"
        ),
        (
            "scale = torch.tensor(1.5, device=device)\n"
            "view = scale.view(1)\n"
            "for k in range(4):\n"
            "    x = x * scale.item()\n"
            "    view[0] = k\n"
            "result = x.tolist()"
        ),
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
