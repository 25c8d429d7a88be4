"""Numbers that are kept until the loop is over: what may be written to before then is copied."""

from __future__ import annotations

from syncscan.fixing.rewrites.rarer_reads import deferred_read
from tests.each import each
from tests.fixing.example import Rewritten

REWRITE = deferred_read
KEPT: dict[str, str] = {}
BEGIN = """\
import operator
class Board:
    last = None
def shrink(value):
    value.mul_(0.5)
def shown(value):
    return f"{value.shape} {value.detach().mean()}"
def error(value):
    squared = (value - 1) ** 2
    return squared.mean()
board, criterion, values = Board(), torch.nn.MSELoss(), []
for step, row in enumerate(x):
    """
READ = "values.append(loss.item())\n"
END = "\nresult = values"
COPIED = {
    "a view of what is written to later": "loss = row.mean().view(1)[0]\n    now = loss.detach()\n    "
    + READ.replace("loss", "now")
    + "    if step > 9:\n        loss.mul_(0)",
    "an argument of an unknown function": f"loss = row.mean()\n    {READ}    operator.truth(loss)",
    "the result of an unknown function": f"loss = operator.pos(row[0])\n    {READ}",
    "a parameter's view": f"loss = row[0]\n    {READ}",
    "what an attribute keeps": f"loss = row.mean()\n    {READ}    board.last = loss",
    "what a function of the file writes to": f"loss = row.mean()\n    {READ}    shrink(loss)",
    "what a function writes in place": f"loss = torch.nn.functional.relu(row.mean(), True)\n    {READ}",
}
SHARED = {
    "the result of a loss": f"loss = criterion(row, row * 2)\n    {READ}",
    "a view of new memory": f"loss = (row * 2)[0]\n    {READ}",
    "the result of torch's function": f"loss = torch.nn.functional.mse_loss(row, row * 2)\n    {READ}",
}


def _program(lines: str) -> str:
    return BEGIN + lines.rstrip("\n")


def _kept(lines: str, copied: str) -> str:
    """Return a program whose reads are kept as tensors until its loop is over."""
    kept = _program(lines).replace(".item())", f"{copied})")
    return f"{kept}\nvalues = torch.stack(values).tolist() if values else []"


FIXED = {_program(lines): _kept(lines, ".clone()") for lines in COPIED.values()} | {
    _program(lines): _kept(lines, "") for lines in SHARED.values()
}


@each("name", [*COPIED, *SHARED])
def test_it_is_copied_if_something_may_write_to_it(programs: dict[str, Rewritten], name: str) -> None:
    """A tensor that is only read meanwhile isn't."""
    body = _program({**COPIED, **SHARED}[name])
    program = programs[body]
    assert program.text == FIXED[body] + END
    assert program.results[0] == program.results[1]
