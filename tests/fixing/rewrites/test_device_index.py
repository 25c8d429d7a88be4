"""Indices on the host that a step uses several times."""

from __future__ import annotations

import pytest

from syncscan.fixing.rewrites.loop_constants import device_index
from tests.each import each
from tests.fixing.example import Rewritten

REWRITE = device_index
HEAD = "import numpy as np\nfrom numpy.random import default_rng\nresult = 0\n"
END = "\nresult = float(result)"
LOOP = "for k in range(4):\n"
USE = "    result = result + x[ids].sum() + (y[ids] * 2).sum()"
FIXED = {
    (
        f"{HEAD}class Buffer:\n    def __init__(self):\n        self.x, self.y = x, y\n"
        "    def sample(self, k):\n        ids = np.random.randint(0, 4, size=3)\n"
        "        return self.x[ids].sum() + self.y[ids].sum() + self.x[ids].max()\n"
        f"buffer = Buffer()\n{LOOP}    result = result + buffer.sample(k)"
    ): (
        f"{HEAD}class Buffer:\n    def __init__(self):\n        self.x, self.y = x, y\n"
        "    def sample(self, k):\n"
        "        ids = torch.as_tensor(np.random.randint(0, 4, size=3), device=self.x.device)\n"
        "        return self.x[ids].sum() + self.y[ids].sum() + self.x[ids].max()\n"
        f"buffer = Buffer()\n{LOOP}    result = result + buffer.sample(k)"
    ),
    f"{HEAD}order = np.arange(4)\n{LOOP}    np.random.shuffle(order)\n    for j in (0, 2):\n"
    "        ids = order[j : j + 2]\n    "
    f"{USE}": (
        f"{HEAD}order = np.arange(4)\n{LOOP}    np.random.shuffle(order)\n    for j in (0, 2):\n"
        "        ids = torch.as_tensor(order[j : j + 2], device=x.device)\n    "
        f"{USE}"
    ),
    f"{HEAD}{LOOP}    ids = torch.arange(3) % 2\n{USE}": (
        f"{HEAD}{LOOP}    ids = (torch.arange(3) % 2).to(x.device)\n{USE}"
    ),
    f"{HEAD}ids = default_rng(0).permutation(4)\n{LOOP}    result = result + x[ids].sum()": (
        f"{HEAD}ids = torch.as_tensor(default_rng(0).permutation(4), device=x.device)\n{LOOP}"
        "    result = result + x[ids].sum()"
    ),
    (
        f"{HEAD}def pick(t, k):\n    ids = default_rng(k).permutation(4)\n    return t[ids].sum() + t[ids].max()\n"
        f"{LOOP}    result = result + pick(x, k)"
    ): (
        f"{HEAD}def pick(t, k):\n    ids = torch.as_tensor(default_rng(k).permutation(4), device=t.device)\n"
        "    return t[ids].sum() + t[ids].max()\n"
        f"{LOOP}    result = result + pick(x, k)"
    ),
    f"{HEAD}{LOOP}    ids = torch.randperm(4)[:2]\n    x[ids] = y[ids]\n    result = x.sum()": (
        f"{HEAD}{LOOP}    ids = torch.randperm(4)[:2].to(x.device)\n    x[ids] = y[ids]\n    result = x.sum()"
    ),
}
KEPT = {
    "it is written to under another name": (
        f"{HEAD}order = np.arange(4)\nother = order\n{LOOP}    ids = order[:2]\n    result = result + x[ids].sum()\n"
        "    other[0] = 3\n    result = result + y[ids].sum()"
    ),
    "it is used once": f"{HEAD}{LOOP}    ids = default_rng(k).permutation(4)\n    result = result + x[ids].sum()",
    "the host uses it too": f"{HEAD}{LOOP}    ids = default_rng(k).permutation(4)\n{USE} + int(ids[0])",
    "its length is needed": f"{HEAD}{LOOP}    ids = default_rng(k).permutation(4)\n{USE} / len(ids)",
    "a CPU tensor is indexed too": (
        f"{HEAD}table = torch.arange(4)\n{LOOP}    ids = default_rng(k).permutation(4)\n{USE} + table[ids].sum().item()"
    ),
    "it is a mask": f"{HEAD}{LOOP}    ids = default_rng(k).random(4) > 0.5\n{USE}",
    "it is written to": (
        f"{HEAD}order = np.arange(4)\n{LOOP}    ids = order[:2]\n    result = result + x[ids].sum()\n"
        "    order[0] = 3\n    result = result + y[ids].sum()"
    ),
    "it is shuffled": (
        f"{HEAD}order = np.arange(4)\n{LOOP}    ids = order[:2]\n    result = result + x[ids].sum()\n"
        "    np.random.shuffle(order)\n    result = result + y[ids].sum()"
    ),
    "it may be without elements": f"{HEAD}{LOOP}    ids = np.array([j for j in range(k)] + [0])\n{USE}",
    "no tensor is there yet": (
        f"{HEAD}{LOOP}    ids = default_rng(k).permutation(4)\n    z = x + k\n"
        "    result = result + z[ids].sum() + z[ids].max()"
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
