"""Numbers that a step reads several times."""

from __future__ import annotations

import pytest

from syncscan.fixing.rewrites.several_reads import repeated_read
from tests.each import each
from tests.fixing.example import Rewritten

REWRITE = repeated_read
LOOP = "total, result = 0.0, []\nfor one in losses:\n    loss = one + 1\n"
SHOWN = "    result.append(f'{loss.item():.3f}')"
FIXED = {
    f"{LOOP}    result.append((loss.item(), 2 ** loss.item()))\nresult = repr(result)": (
        f"{LOOP}    loss_value = loss.item()\n    result.append((loss_value, 2 ** loss_value))\nresult = repr(result)"
    ),
    f"{LOOP}    total += loss.item()\n    y = x * loss\n{SHOWN}": (
        f"{LOOP}    loss_value = loss.item()\n    total += loss_value\n    y = x * loss\n"
        "    result.append(f'{loss_value:.3f}')"
    ),
    f"{LOOP}    total += loss.item()\n    if total > 3:\n        result.append(loss.item())\nresult = repr(result)": (
        f"{LOOP}    loss_value = loss.item()\n    total += loss_value\n"
        "    if total > 3:\n        result.append(loss_value)\nresult = repr(result)"
    ),
    f"{LOOP}    value = loss.item()\n    total += value\n{SHOWN}": (
        f"{LOOP}    value = loss.item()\n    total += value\n    result.append(f'{{value:.3f}}')".replace(
            "{{", "{"
        ).replace("}}", "}")
    ),
    (
        "w = torch.rand(3, device=device, requires_grad=True)\nopt = torch.optim.SGD([w], lr=0.1)\nresult = []\n"
        "for _ in range(5):\n    loss = (w * w).sum()\n    result.append(loss.item())\n"
        "    opt.zero_grad(); loss.backward(); opt.step()\n    result.append(loss.item())\nresult = repr(result)"
    ): (
        "w = torch.rand(3, device=device, requires_grad=True)\nopt = torch.optim.SGD([w], lr=0.1)\nresult = []\n"
        "for _ in range(5):\n    loss = (w * w).sum()\n    loss_value = loss.item()\n    result.append(loss_value)\n"
        "    opt.zero_grad(); loss.backward(); opt.step()\n    result.append(loss_value)\nresult = repr(result)"
    ),
}
KEPT = {
    "it is written to between": f"{LOOP}    total += loss.item()\n    loss.add_(1)\n{SHOWN}",
    "its name is bound again": f"{LOOP}    total += loss.item()\n    loss = loss * 2\n{SHOWN}",
    "a view of it is written to": f"{LOOP}    total += loss.item()\n    loss.view(1)[0] = 2.0\n{SHOWN}",
    "a function gets it": (
        f"def twice(t):\n    t += t\n{LOOP}    total += loss.item()\n    if total < 0:\n        twice(loss)\n{SHOWN}"
    ),
    "a second name is written to": f"{LOOP}    same = loss\n    total += loss.item()\n    same += 1\n{SHOWN}",
    "the first isn't always read": f"{LOOP}    if len(result) < 20:\n        total += loss.item()\n{SHOWN}",
    "an optimizer may step on it": (
        "w = torch.rand(3, device=device, requires_grad=True)\nopt = torch.optim.SGD([w], lr=0.1)\nresult = []\n"
        "for _ in range(5):\n    loss = w.select(0, 1)\n    result.append(loss.item())\n"
        "    (w * w).sum().backward(); opt.step()\n    result.append(loss.item())\nresult = repr(result)"
    ),
    "its function reads a clock": (
        f"import time\nbegin = time.time()\n{LOOP}    print(end='{{:.0f}}'.format(loss.item())[:0])\n{SHOWN}\n"
        "took = time.time() - begin"
    ),
    "work between is timed": (
        f"import time\n{LOOP}    total += loss.item()\n    begin = time.time()\n    y = (x * loss).sum()\n{SHOWN}\n"
        "    took = time.time() - begin"
    ),
}


@pytest.mark.parametrize("body", FIXED)
def test_it_is_rewritten(programs: dict[str, Rewritten], body: str) -> None:
    """It waits less, and gives the same result."""
    program = programs[body]
    assert program.text == FIXED[body]
    assert program.waits[1] < program.waits[0]
    assert program.results[0] == program.results[1]


@each("name", KEPT)
def test_it_stays(programs: dict[str, Rewritten], name: str) -> None:
    """Not a byte changes."""
    assert programs[name].text == KEPT[name]
