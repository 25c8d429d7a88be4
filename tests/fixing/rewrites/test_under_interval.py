"""Numbers that are read in every step and used under a condition that seldom holds."""

from __future__ import annotations

import pytest

from syncscan.fixing.rewrites.rarer_reads import under_interval
from tests.each import each
from tests.fixing.example import Rewritten

REWRITE = under_interval
BEGIN = "rows = []\nfor step, loss in enumerate(losses):\n"
END = "\nresult = rows"


def loop(*lines: str) -> str:
    """Return a loop over losses with these lines."""
    return BEGIN + "\n".join(f"    {line}" for line in lines)


FIXED = {
    loop("value = loss.item()", "if step % 6 == 0:", "    rows.append(value)"): loop(
        "if step % 6 == 0:", "    value = loss.item()", "    rows.append(value)"
    ),
    loop(
        "error = (loss * 2).sqrt()",
        "row = error.item()  # for the log",
        "y = y + error",
        "if step % 6 == 0:",
        "    rows.append(row)",
    ): loop(
        "error = (loss * 2).sqrt()",
        "y = y + error",
        "if step % 6 == 0:",
        "    row = error.item()  # for the log",
        "    rows.append(row)",
    ),
}
KEPT = {
    "it is used elsewhere too": loop(
        "value = loss.item()", "if step % 6 == 0:", "    rows.append(value)", "last = value"
    ),
    "it is used after the loop": loop("value = loss.item()", "if step % 6 == 0:", "    rows.append(value)")
    + "\nvalue += 1",
    "it is the condition": loop("value = loss.item()", "if value > 0.9:", "    rows.append(value)"),
    "the condition often holds": loop("value = loss.item()", "if step % 2 == 0:", "    rows.append(value)"),
    "the tensor changes in between": loop(
        "value = loss.item()", "loss += 1", "if step % 6 == 0:", "    rows.append(value)"
    ),
    "another name of the tensor changes it in between": loop(
        "same = loss",
        "value = loss.item()",
        "if step < 0:",
        "    same.add_(1)",
        "if step % 6 == 0:",
        "    rows.append(value)",
    ),
    "a view of the tensor changes it in between": loop(
        "view = loss.view(1)", "value = loss.item()", "view.mul_(2)", "if step % 6 == 0:", "    rows.append(value)"
    ),
    "the name is bound again in between": loop(
        "value = loss.item()", "loss = loss + 1", "if step % 6 == 0:", "    rows.append(value)"
    ),
    "what it is computed of outlives the turn": loop(
        "value = y.sum().item()", "y.add_(1)", "if step % 6 == 0:", "    rows.append(value)"
    ),
    "another tensor may share its memory": loop(
        "value = y.sum().item()", "x = x + 1", "if step % 6 == 0:", "    rows.append(value)"
    ),
    "random numbers": loop("value = (loss * torch.rand(())).item()", "if step % 6 == 0:", "    rows.append(value)"),
    "a function that may do anything": "def read(loss):\n    return loss.item()\n"
    + loop("value = read(loss)", "if step % 6 == 0:", "    rows.append(value)"),
    "the other branch": loop("value = loss.item()", "if step % 6:", "    pass", "else:", "    rows.append(value)"),
    "a closure": loop("value = loss.item()", "if step % 6 == 0:", "    rows.append((lambda: value)())"),
    "a clock between the read and its use": "import time\n"
    + loop("value = loss.item()", "took = time.perf_counter()", "if step % 6 == 0:", "    rows.append(value)"),
    "a clock": "import time\n"
    + loop(
        "begin = time.perf_counter()",
        "value = loss.item()",
        "took = time.perf_counter() - begin",
        "if step % 6 == 0:",
        "    rows.append(value)",
    ),
    "it is computed with, which may raise": loop(
        "value = 1 / loss.item()", "if step % 6 == 0:", "    rows.append(value)"
    ),
    "a handler in the loop": loop(
        "try:",
        "    value = loss.item()",
        "    if step % 6 == 0:",
        "        rows.append(value)",
        "except RuntimeError:",
        "    pass",
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
