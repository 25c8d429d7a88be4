"""Each shape is guessed on its line and nowhere else: the code in `code/` says at its lines what is expected there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from syncscan import api
from syncscan.lint.shapes import ANYWHERE, SHAPES
from syncscan.model.guess import Guess

CODE = Path(__file__).parent / "code"
_IMPORTS = "import time, torch\nimport torch.nn.functional as F\nfrom torch.utils.data import DataLoader\n"
_MARK = re.compile(r"# (GUESS|ALLOWED) (.*)$")


def expected(text: str, mark: str) -> dict[int, set[str]]:
    """Line → the rules that are expected there; `low` where the severity is."""
    result: dict[int, set[str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _MARK.search(line)
        if match and match[1] == mark:
            result[number] = set(match[2].split())
    return result


def told(guesses: list[Guess]) -> dict[int, set[str]]:
    result: dict[int, set[str]] = {}
    for guess in guesses:
        result.setdefault(guess.line, set()).update({guess.rule} | ({"low"} if guess.severity == "low" else set()))
    return result


@pytest.mark.parametrize("file", sorted(p.name for p in CODE.glob("*.py")))
def test_every_line_is_guessed_as_it_says(file: str) -> None:
    """No other line is, and what is allowed isn't."""
    path = CODE / file
    linted = api.lint([str(path)])
    text = path.read_text(encoding="utf-8")
    assert told(list(linted.guesses)) == expected(text, "GUESS")
    assert told([a.guess for a in linted.allowed]) == expected(text, "ALLOWED")


@pytest.mark.parametrize("name", ["train", "evaluate", "timed"])
def test_a_script_is_guessed_at_as_a_function(tmp_path: Path, name: str) -> None:
    """A function's loops say the same where they stand in no function."""
    trees = [ast.parse(p.read_text(encoding="utf-8")) for p in (CODE / "read_backs.py", CODE / "waits.py")]
    (function,) = (n for t in trees for n in t.body if isinstance(n, ast.FunctionDef) and n.name == name)
    body = [n for n in function.body if not isinstance(n, ast.Return)]
    told_of = []
    for statements in ([function], body):
        (tmp_path / "t.py").write_text(f"{_IMPORTS}{ast.unparse(ast.Module(statements, []))}")
        guesses = api.lint([str(tmp_path / "t.py")]).guesses
        told_of.append([(g.code, g.rule, g.severity, g.diagnosis.confidence) for g in guesses])
    assert told_of[0]
    assert told_of[0] == told_of[1]


def test_every_shape_names_rules_that_there_are() -> None:
    """So that `explain`, filters and comments mean the same as for a trace."""
    ids = {rule.id for rule in api.rules()}
    assert [rule for shape in SHAPES for rule in shape.RULES if rule not in ids] == []
    assert set(ANYWHERE) <= set(SHAPES)


def test_every_rule_of_a_shape_has_an_example() -> None:
    """But for those that two lines wouldn't show better than the shape itself."""
    text = "\n".join(p.read_text(encoding="utf-8") for p in CODE.glob("*.py"))
    shown = {rule for match in re.finditer(r"# (?:GUESS|ALLOWED) (.*)$", text, re.M) for rule in match[1].split()}
    below = "histc coalesce sparse-op nms object-collective pin-memory pageable-readback scalar-assign "
    below += "argument-check ctc-loss"
    assert {rule for shape in SHAPES for rule in shape.RULES} - shown == set(below.split())


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("torch.histc(x)", "histc"),
        ("torch.sparse_coo_tensor(i, x, device=d).coalesce()", "coalesce"),
        ("x.relu().to_sparse()", "sparse-op"),
        ("torchvision.ops.nms(x, x, 0.5)", "nms"),
        ("torch.distributed.all_gather_object(o, 1)", "object-collective"),
        ("torch.ones(3).pin_memory()", "pin-memory"),
        ("x.to('cpu', non_blocking=True)", "pageable-readback"),
        ("x[torch.nonzero(x > 0)] = 1.0", "scalar-assign"),
        ("torch.cov(x)", "argument-check"),
        ("F.ctc_loss(x, x, x, x)", "ctc-loss"),
        ("F.ctc_loss(x, x, [3], [4])", None),
        ("range(x[0])", "number-argument"),
        ("torch.equal(x, x)", None),
        ("torch.histc(x, 8, 0, 1)", None),
        ("x.copy_(y, non_blocking=True)", None),
        ("x.to(torch.float16)", None),
        ("x.to(y.dtype)", None),
        ("model.to('cuda')", None),
        ("[v for v in x]", None),
        ("torch.multinomial(x, 4)", None),
        ("torch.cuda.current_stream().query()", None),
        ("(lambda: x.item())", None),
        ("isinstance(x, list) and x.mean().item()", None),
        ("np.where(a > 0)", None),
        ("a.tolist()", None),
        ("np.asarray(a)[np.asarray(a) > 3]", None),
    ],
)
def test_in_a_forward(tmp_path: Path, line: str, rule: str | None) -> None:
    """One line of a module's forward."""
    code = "import torch, torchvision\nimport numpy as np\nclass N(torch.nn.Module):\n"
    code += f"    def forward(self, x: torch.Tensor, y, i, a):\n        d = x.device\n        {line}\n"
    (tmp_path / "n.py").write_text(code)
    rules = {guess.rule for guess in api.lint([str(tmp_path / "n.py")]).guesses if guess.line == 6}
    assert rule in rules if rule else rules == set()
