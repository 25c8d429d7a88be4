"""Numbers that successive statements read one by one."""

from __future__ import annotations

import pytest

from syncscan.fixing.rewrites.several_reads import stacked_reads
from tests.each import each
from tests.fixing.example import Rewritten

REWRITE = stacked_reads
LOOP = "result = []\nfor loss in losses:\n"
SHOWN = "    result.append(f'{a:.4f} {b:.4f}')"
FIXED = {
    f"{LOOP}    a = loss.item()\n    b = loss.exp().item()\n{SHOWN}": (
        f"{LOOP}    a, b = torch.stack([loss, loss.exp()]).tolist()\n{SHOWN}"
    ),
    f"{LOOP}    a = float(loss + 1)\n    b = (-loss).detach().cpu().item()\n\n{SHOWN}": (
        f"{LOOP}    a, b = torch.stack([loss + 1, (-loss).detach()]).tolist()\n\n{SHOWN}"
    ),
    (
        f"{LOOP}    a = loss.half().item()\n    b = loss.half().square().item()\n    c = loss.half().exp().item()\n"
        "    result.append({'a': a, 'b': b, 'c': c})\nresult = repr(result)"
    ): (
        f"{LOOP}    a, b, c = torch.stack([\n        loss.half(),\n"
        "        loss.half().square(),\n        loss.half().exp(),\n    ]).tolist()\n"
        "    result.append({'a': a, 'b': b, 'c': c})\nresult = repr(result)"
    ),
    (
        f"{LOOP}    a = (x > loss).sum().item()\n    b = (y > loss).sum().item()\n"
        "    result.append('%d of %d' % (a, b))"
    ): (
        f"{LOOP}    a, b = torch.stack([(x > loss).sum(), (y > loss).sum()]).tolist()\n"
        "    result.append('%d of %d' % (a, b))"
    ),
    (
        f"{LOOP}    a = (loss + 1).sqrt().exp().item()\n"
        f"    b = (x * loss).sum(dim=1).exp().log().abs().mean().item()\n{SHOWN}"
    ): (
        f"{LOOP}    a, b = torch.stack([\n        (loss + 1).sqrt().exp(),\n"
        "        (x * loss).sum(dim=1).exp().log().abs().mean(),\n    ]).tolist()\n"
        f"{SHOWN}"
    ),
    (
        "def show(loss):\n    a = loss.item()\n    b = loss.sqrt().item()\n    return f'{a} {b}'\n"
        "result = [show(loss) for loss in losses]"
    ): (
        "def show(loss):\n    a, b = torch.stack([loss, loss.sqrt()]).tolist()\n    return f'{a} {b}'\n"
        "result = [show(loss) for loss in losses]"
    ),
}
KEPT = {
    "their dtypes differ": f"{LOOP}    a = loss.item()\n    b = (x > loss).sum().item()\n{SHOWN}",
    "one is half as precise": f"{LOOP}    a = loss.item()\n    b = loss.half().item()\n{SHOWN}",
    "one is read as another type": f"{LOOP}    a = float((x > loss).sum())\n    b = (y > loss).sum().item()\n{SHOWN}",
    "one is a matrix": f"{LOOP}    a = loss.item()\n    b = loss.reshape(1, 1).item()\n{SHOWN}",
    "a branch decides": f"{LOOP}    a = loss.item()\n    b = loss.exp().item()\n    if a > 0:\n    {SHOWN}",
    "something stands between": f"{LOOP}    a = loss.item()\n    loss = loss + 1\n    b = loss.exp().item()\n{SHOWN}",
    "the second needs the first": f"{LOOP}    a = loss.item()\n    b = (loss * a).item()\n{SHOWN}",
    "the second writes to what the first reads": f"{LOOP}    a = loss.item()\n    b = loss.add_(1).item()\n{SHOWN}",
    "a function computes the second": (
        f"def twice(t):\n    t += t\n    return t.exp()\n{LOOP}    a = loss.item()\n    b = twice(loss).item()\n{SHOWN}"
    ),
    "one of them is in a branch": (
        f"{LOOP}    b = 0.0\n    a = loss.item()\n    if len(result) % 2:\n        b = loss.exp().item()\n{SHOWN}"
    ),
    "an error is handled": (
        f"{LOOP}    try:\n        a = loss.item()\n        b = loss.exp().item()\n"
        "    except RuntimeError:\n        b = 0.0\n"
        f"{SHOWN}"
    ),
    "they have the same name": f"{LOOP}    b = loss.item()\n    b = loss.exp().item()\n    a = b\n{SHOWN}",
    "a comment is lost": f"{LOOP}    a = loss.item()\n    b = loss.exp().item()  # perplexity\n{SHOWN}",
    "there are two devices": (
        f"first, second = 'cuda:0', 'cuda:1'\n{LOOP}    a = loss.item()\n    b = loss.exp().item()\n{SHOWN}"
    ),
    "they are read once": "a = losses[0].item()\nb = losses[1].item()\nresult = f'{a} {b}'",
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
