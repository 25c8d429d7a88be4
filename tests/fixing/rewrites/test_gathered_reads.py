"""Numbers that a comprehension reads one by one."""

from __future__ import annotations

from syncscan.fixing.rewrites.several_reads import gathered_reads
from tests.each import each
from tests.fixing.example import Rewritten

REWRITE = gathered_reads
FIXED = {
    ("result = sum(loss.item() for loss in losses)"): ("result = sum(torch.stack(losses).tolist() if losses else [])"),
    ("result = [int((row > 0.5).sum()) for row in x]"): (
        "values = [(row > 0.5).sum() for row in x]\nresult = torch.stack(values).tolist() if values else []"
    ),
    ("result = [bool((row > 0.9).any()) for row in x], 1"): (
        "values = [(row > 0.9).any() for row in x]\nresult = (torch.stack(values).tolist() if values else []), 1"
    ),
    ("result = [\n    loss.item()  # each\n    for loss in losses\n    if loss is not None\n]"): (
        "values = [\n"
        "    loss  # each\n"
        "    for loss in losses\n"
        "    if loss is not None\n"
        "]\n"
        "result = torch.stack(values).tolist() if values else []"
    ),
    ("result = [x.add_(1).sum().item() for k in range(3)]"): (
        "values = [x.add_(1).sum() for k in range(3)]\nresult = torch.stack(values).tolist() if values else []"
    ),
    ("one = x[0, 0]\nresult = [one.add_(1).item() for k in range(3)]"): (
        "one = x[0, 0]\n"
        "values = [one.add_(1).clone() for k in range(3)]\n"
        "result = torch.stack(values).tolist() if values else []"
    ),
    ("result = {k: row.norm().item() for k, row in enumerate(x)}"): (
        "values = {k: row.norm() for k, row in enumerate(x)}\n"
        "result = dict(zip(values, torch.stack([*values.values()]).tolist())) if values else {}"
    ),
    ("x.requires_grad_()\nresult = [row.norm().item() for row in x]"): (
        "x.requires_grad_()\n"
        "values = [row.norm().detach() for row in x]\n"
        "result = torch.stack(values).tolist() if values else []"
    ),
    ("def norms(rows):\n    return max(row.norm().item() for row in rows)\nresult = norms(x), norms(y)"): (
        "def norms(rows):\n"
        "    values = [row.norm() for row in rows]\n"
        "    return max(torch.stack(values).tolist() if values else [])\n"
        "result = norms(x), norms(y)"
    ),
    ("def total(rows):\n    return sum(row.norm().item() for row in rows)\nresult = total(x), total([])"): (
        "def total(rows):\n"
        "    values = [row.norm() for row in rows]\n"
        "    return sum(torch.stack(values).tolist() if values else [])\n"
        "result = total(x), total([])"
    ),
}
KEPT: dict[str, str] = {
    "the host decides in between": ("result = any(loss.item() > 0.5 for loss in losses)"),
    "more is computed of each": ("result = [round(loss.item(), 2) for loss in losses]"),
    "they are read as another type": ("result = [float((row > 0.5).sum()) for row in x]"),
    "they are several numbers": ("result = [row.tolist() for row in x]"),
    "only one is read": ("result = [loss.item() for loss in losses[:1]]"),
    "it is a body of a class": ("class Result:\n    values = [loss.item() for loss in losses]\nresult = Result.values"),
    "tensors are picked among numbers": (
        "row = {'a': losses[0], 'b': losses[1], 'c': 2}\n"
        "result = {k: v.item() for k, v in row.items() if torch.is_tensor(v)}"
    ),
    "a generator is used lazily": ("result = next(loss.item() for loss in losses)"),
}


@each("body", FIXED)
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
