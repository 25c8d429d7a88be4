"""Elements that are read one by one."""

from __future__ import annotations

import pytest

from syncscan.fixing.rewrites.several_reads import element_loop
from tests.each import each
from tests.fixing.example import Rewritten

REWRITE = element_loop
FIXED = {
    "result = [v.item() for v in x[0]]": "result = x[0].tolist()",
    "result = max(v.item() for v in x[0])": "result = max(x[0].tolist())",
    ("row, result = x[0], []\nfor i in range(6):\n    result.append(round(row[i].item(), 2))"): (
        "row, result = x[0], []\n"
        "row_values = row.tolist()\n"
        "for i in range(6):\n"
        "    result.append(round(row_values[i], 2))"
    ),
    ("row, result = x[0].half(), []\nfor i in range(6):\n    result.append(round(row[i].item(), 2))"): (
        "row, result = x[0].half(), []\n"
        "row_values = row.tolist()\n"
        "for i in range(6):\n"
        "    result.append(round(row_values[i], 2))"
    ),
    ("row, result = x[0], []\nfor i in reversed(range(6)):\n    result.append(str(row[i].item()))"): (
        "row, result = x[0], []\n"
        "row_values = row.tolist()\n"
        "for i in reversed(range(6)):\n"
        "    result.append(str(row_values[i]))"
    ),
    ("n = (x[0] * 9).long()\nresult = []\nfor i in range(6):\n    result.append(str(n[i].item()))"): (
        "n = (x[0] * 9).long()\n"
        "result = []\n"
        "n_values = n.tolist()\n"
        "for i in range(6):\n"
        "    result.append(str(n_values[i]))"
    ),
}
KEPT = {
    program: program
    for program in (
        ("result = 0.0\nfor i in range(6):\n    result += round(x[0, i].item(), 2)"),
        ("row, result = x[0], []\nfor i in range(6):\n    result.append(round(row[i].item(), 2))\n    row += 1"),
        (
            "row, alias, result = x[0], x, []\n"
            "for i in range(5):\n"
            "    result.append(round(row[i].item(), 2))\n"
            "    alias += 1"
        ),
        "result = [v.item() for v in x[0] if v > 0.5]",
        "result = [int(v.item() * 9) for v in x[0]]",
        "result = {v.item() for v in x[0]}",
        (
            "w = torch.rand(6, device=device, requires_grad=True)\n"
            "opt = torch.optim.SGD([w], lr=0.1)\n"
            "result = []\n"
            "for i in range(6):\n"
            "    (w * w).sum().backward()\n"
            "    opt.step()\n"
            "    result.append(round(w[i].item(), 3))"
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


@each("program", KEPT)
def test_it_stays(programs: dict[str, Rewritten], program: str) -> None:
    """Not a byte changes."""
    assert programs[program].text == program
