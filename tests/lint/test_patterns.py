"""Each pattern warns on its line and nowhere else: the code in `code/` says at its lines what is expected there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from syncscan import api
from syncscan.lint import lint
from syncscan.lint.patterns import ANYWHERE, PATTERNS
from syncscan.lint.warning import LintWarning
from tests.each import each

CODE = Path(__file__).parent / "code"
_IMPORTS = "import time, torch\nimport torch.nn.functional as F\nfrom torch.utils.data import DataLoader\n"
_MARK = re.compile(r"# (WARNS|ALLOWED) (.*)$")


def expected(text: str, mark: str) -> dict[int, set[str]]:
    """Line → the rules that are expected there; `low` where the severity is."""
    result: dict[int, set[str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _MARK.search(line)
        if match and match[1] == mark:
            result[number] = set(match[2].split())
    return result


def told(warnings: list[LintWarning]) -> dict[int, set[str]]:
    result: dict[int, set[str]] = {}
    for warning in warnings:
        result.setdefault(warning.source.line, set()).update(
            {warning.rule} | ({"low"} if warning.severity == "low" else set())
        )
    return result


@pytest.mark.parametrize("file", sorted(p.name for p in CODE.glob("*.py")))
def test_every_line_gets_the_warnings_that_it_names(file: str) -> None:
    """No other line is, and what is allowed isn't."""
    path = CODE / file
    linted = lint([str(path)])
    text = path.read_text(encoding="utf-8")
    assert told(list(linted.warnings)) == expected(text, "WARNS")
    assert told(linted.allowed) == expected(text, "ALLOWED")


@pytest.mark.parametrize("name", ["train", "evaluate", "timed"])
def test_a_script_gets_the_same_warnings_as_a_function(tmp_path: Path, name: str) -> None:
    """A function's loops say the same where they stand in no function."""
    trees = [ast.parse(p.read_text(encoding="utf-8")) for p in (CODE / "read_backs.py", CODE / "waits.py")]
    (function,) = (n for t in trees for n in t.body if isinstance(n, ast.FunctionDef) and n.name == name)
    body = [n for n in function.body if not isinstance(n, ast.Return)]
    told_of = []
    for statements in ([function], body):
        (tmp_path / "t.py").write_text(f"{_IMPORTS}{ast.unparse(ast.Module(statements, []))}")
        warnings = lint([str(tmp_path / "t.py")]).warnings
        told_of.append([(g.source.code, g.rule, g.severity, g.confidence) for g in warnings])
    assert told_of[0]
    assert told_of[0] == told_of[1]


def test_every_pattern_names_existing_rules() -> None:
    """So that `explain`, filters and comments mean the same as for a trace."""
    ids = {rule.id for rule in api.rules()}
    assert [rule for pattern in PATTERNS for rule in pattern.rules if rule not in ids] == []
    assert set(ANYWHERE) <= set(PATTERNS)


def test_every_rule_of_a_pattern_has_an_example() -> None:
    """Except for rules whose example would only repeat the pattern."""
    text = "\n".join(p.read_text(encoding="utf-8") for p in CODE.glob("*.py"))
    shown = {rule for match in re.finditer(r"# (?:WARNS|ALLOWED) (.*)$", text, re.M) for rule in match[1].split()}
    below = "histc coalesce sparse-op nms object-collective pin-memory scalar-assign "
    below += "argument-check ctc-loss"
    assert {rule for pattern in PATTERNS for rule in pattern.rules} - shown == set(below.split())


@each(
    ("line", "rule"),
    [
        ("torch.histc(x)", "histc"),
        ("torch.sparse_coo_tensor(i, x, device=d).coalesce()", "coalesce"),
        ("x.relu().to_sparse()", "sparse-op"),
        ("torchvision.ops.nms(x, x, 0.5)", "nms"),
        ("torch.distributed.all_gather_object(o, 1)", "object-collective"),
        ("torch.ones(3).pin_memory()", "pin-memory"),
        ("x.to('cpu', non_blocking=True)", None),
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
    rules = {warning.rule for warning in lint([str(tmp_path / "n.py")]).warnings if warning.source.line == 6}
    assert rule in rules if rule else rules == set()


@pytest.mark.parametrize(
    "assignment",
    [
        "f = nn.Linear(4, 4).cuda().eval()",
        "f = torch.compile(nn.Sequential(nn.Linear(4, 4)).to(device))",
        "f = Own()",
        "import torchvision\nf = torchvision.models.resnet18().to(device)",
        "import copy\ng = nn.ReLU()\nf = copy.deepcopy(g)",
        "f = AutoModelForCausalLM.from_pretrained('x')",
    ],
)
def test_a_module_is_known_by_what_makes_it(tmp_path: Path, assignment: str) -> None:
    """Whatever it is called: a loop that calls it runs a model, and what it returns is a tensor."""
    code = "import torch\nfrom torch import nn\nclass Base(nn.Module): ...\nclass Own(Base): ...\ndevice = 'cuda'\n"
    code += f"{assignment}\nfor i in range(9):\n    print(f(x).mean().item())\n"
    code += "def other(f):\n    for i in range(9):\n        f(i).item()\n"
    (tmp_path / "n.py").write_text(code)
    lines = code.splitlines()
    warned = [lines[warning.source.line - 1].strip() for warning in lint([str(tmp_path / "n.py")]).warnings]
    assert warned == ["print(f(x).mean().item())"]
