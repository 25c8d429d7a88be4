"""Numbers that a progress bar shows in every step."""

from __future__ import annotations

import pytest

from syncscan.fixing.rewrites.rarer_reads import late_read
from tests.fixing.example import Rewritten

REWRITE = late_read
BAR = "class Bar:\n    shown = 0\n    def set_postfix(self, **numbers):\n        self.shown += 1\nbar = Bar()\n"
END = "\nresult = 'shown'"
FIXED = {
    f"{BAR}for loss in losses:\n    bar.set_postfix(loss=loss.item())": (
        f"{BAR}late = None\nfor loss in losses:\n    if late is not None and late[1].query():\n"
        "        bar.set_postfix(loss=late[0].item())\n"
        '    late = loss.detach().to("cpu", non_blocking=True), torch.cuda.Event()\n    late[1].record()'
    ),
    f"{BAR}with torch.no_grad():\n    for k, loss in enumerate(losses):\n"
    "        bar.set_postfix(k=k, loss=(loss + 1).item())": (
        f"{BAR}with torch.no_grad():\n    late = None\n    for k, loss in enumerate(losses):\n"
        "        if late is not None and late[1].query():\n            bar.set_postfix(k=k, loss=late[0].item())\n"
        '        late = (loss + 1).detach().to("cpu", non_blocking=True), torch.cuda.Event()\n'
        "        late[1].record()"
    ),
}
KEPT = {
    "it is printed": f"{BAR}for loss in losses:\n    str(loss.item())",
    "it runs once": f"{BAR}bar.set_postfix(loss=losses[0].item())",
    "two are shown": f"{BAR}for loss in losses:\n    bar.set_postfix(a=loss.item(), b=loss.exp().item())",
    "it may not be read": f"{BAR}for loss in losses:\n    bar.set_postfix(a=loss.item() if bar.shown else 0)",
}


@pytest.mark.parametrize("body", FIXED)
def test_it_is_rewritten(programs: dict[str, Rewritten], body: str) -> None:
    """It doesn't wait any more."""
    program = programs[body]
    assert program.text == FIXED[body] + END
    assert program.waits[1] < program.waits[0]


@pytest.mark.parametrize("name", KEPT)
def test_it_stays(programs: dict[str, Rewritten], name: str) -> None:
    """Not a byte changes."""
    assert programs[name].text == KEPT[name] + END
