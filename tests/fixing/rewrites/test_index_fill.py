"""Numbers and lists that an indexed assignment copies."""

from __future__ import annotations

import pytest

from syncscan.fixing.rewrites import index_fill
from tests.fixing.example import Rewritten

REWRITE = index_fill
FIXED = {
    "x[(0, 2)] = 0.5\nresult = x.tolist()": "x[(0, 2)].fill_(0.5)\nresult = x.tolist()",
    "for k in range(4):\n    x[k, -k] = 0.5 * k\nresult = x.tolist()": (
        "for k in range(4):\n    x[k, -k].fill_(0.5 * k)\nresult = x.tolist()"
    ),
    "row, n = x[1], rows.clone()\nrow[2] = 7\nn[0] = 3\nresult = x.tolist(), n.tolist()": (
        "row, n = x[1], rows.clone()\nrow[2].fill_(7)\nn[0].fill_(3)\nresult = x.tolist(), n.tolist()"
    ),
    "slots = [2, 0, 2]\nx[slots] += 0.5\nx[:, slots] *= 2\nresult = x.tolist()": (
        "slots = [2, 0, 2]\nx[torch.tensor(slots, dtype=torch.long).to(x.device, non_blocking=True)] += 0.5\n"
        "x[:, torch.tensor(slots, dtype=torch.long).to(x.device, non_blocking=True)] *= 2\nresult = x.tolist()"
    ),
    ("x[[0, 2]] = 0.5\nresult = x.tolist()"): (
        "x.index_fill_(0, torch.tensor([0, 2]).to(x.device, non_blocking=True), 0.5)\nresult = x.tolist()"
    ),
    ("x[rows] = 0.5\nresult = x.tolist()"): ("x.index_fill_(0, rows, 0.5)\nresult = x.tolist()"),
    ("x[:, [0, 3]] = 0.5\nresult = x.tolist()"): (
        "x.index_fill_(1, torch.tensor([0, 3]).to(x.device, non_blocking=True), 0.5)\nresult = x.tolist()"
    ),
    ("ids = [0, 2]\nx[ids] = 0.5\nresult = x.tolist()"): (
        "ids = [0, 2]\n"
        "x.index_fill_(0, torch.tensor(ids, dtype=torch.long).to(x.device, non_blocking=True), 0.5)\n"
        "result = x.tolist()"
    ),
    ("n = torch.zeros(4, dtype=torch.int64, device=device)\nn[[0, 2]] = 3\nresult = n.tolist()"): (
        "n = torch.zeros(4, dtype=torch.int64, device=device)\n"
        "n.index_fill_(0, torch.tensor([0, 2]).to(n.device, non_blocking=True), 3)\n"
        "result = n.tolist()"
    ),
    ("x[[0, -1]] = 0.5\nresult = x.tolist()"): (
        "x.index_fill_(0, torch.tensor([0, -1]).to(x.device, non_blocking=True), 0.5)\nresult = x.tolist()"
    ),
    ("cols = torch.tensor([1, 3]).to(device)\nx[rows, cols] = 0.5\nresult = x.tolist()"): (
        "cols = torch.tensor([1, 3]).to(device)\n"
        "x[rows, cols] = torch.full((), 0.5, dtype=x.dtype, device=x.device)\n"
        "result = x.tolist()"
    ),
    ("x[[0, 2]] = y[:2]\nresult = x.tolist()"): (
        "x[torch.tensor([0, 2]).to(x.device, non_blocking=True)] = y[:2]\nresult = x.tolist()"
    ),
    ("x[0][[0, 2]] = 0.5\nresult = x.tolist()"): (
        "x[0].index_fill_(0, torch.tensor([0, 2]).to(x[0].device, non_blocking=True), 0.5)\nresult = x.tolist()"
    ),
    ("x[rows.int()] = 0.5\nresult = x.tolist()"): (
        "x[rows.int()] = torch.full((), 0.5, dtype=x.dtype, device=x.device)\nresult = x.tolist()"
    ),
    ("negative = torch.tensor([-1]).to(device)\nx[negative] = 0.5\nresult = x.tolist()"): (
        "negative = torch.tensor([-1]).to(device)\nx.index_fill_(0, negative, 0.5)\nresult = x.tolist()"
    ),
    ("twice = x[rows][:1]\ntwice[[0]] = 7.0\nresult = x.tolist()"): (
        "twice = x[rows][:1]\n"
        "twice.index_fill_(0, torch.tensor([0]).to(twice.device, non_blocking=True), 7.0)\n"
        "result = x.tolist()"
    ),
    ("x = torch.nn.Parameter(x)\nwith torch.no_grad():\n    x[[0, 2]] = 0.5\nresult = x.tolist()"): (
        "x = torch.nn.Parameter(x)\n"
        "with torch.no_grad():\n"
        "    x.index_fill_(0, torch.tensor([0, 2]).to(x.device, non_blocking=True), 0.5)\n"
        "result = x.tolist()"
    ),
    "x[[0, 2]] = 0.5": "x.index_fill_(0, torch.tensor([0, 2]).to(x.device, non_blocking=True), 0.5)",
}
KEPT = {
    program: program
    for program in (
        ("n = torch.zeros(4, dtype=torch.int64, device=device)\nn[[0, 2]] = 3.7\nresult = n.tolist()"),
        ("n = torch.zeros(4, dtype=torch.bool, device=device)\nn[[0, 2]] = True\nresult = n.tolist()"),
        ("x[[0, 2], [1, 3]] = 0.5\nresult = x.tolist()"),
        ("x[0, rows] = 0.5\nresult = x.tolist()"),
        ("x[[]] = 0.5\nresult = x.tolist()"),
        ("x[1:][[0, 2]] = 0.5\nresult = x.tolist()"),
        ("x[[True, False, True, False]] = 0.5\nresult = x.tolist()"),
        ("x[0, 2] = True\nresult = x.tolist()"),
        ("n = torch.zeros(4, dtype=torch.int64, device=device)\nn[1] = 3.7\nresult = n.tolist()"),
        ("x[1] = 0.5\nresult = x.tolist()"),
        ("x[rows] = True\nresult = x.tolist()"),
        ("x[range(2)] = 0.5\nresult = x.tolist()"),
        ("x[None, [0, 1]] = 0.5\nresult = x.tolist()"),
        ("x[..., [0, 3]] = 0.5\nresult = x.tolist()"),
        ("c = torch.zeros(4, 6, dtype=torch.complex64, device=device)\nc[[0, 2]] = 0.5\nresult = c.tolist()"),
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
