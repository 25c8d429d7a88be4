"""Patterns of code: `$x` stands for any expression, `...` for further arguments."""

from __future__ import annotations

import ast

from syncscan.source.code_pattern import filled, matched
from tests.each import each


@each(
    ("pattern", "code", "parts"),
    [
        ("torch.nonzero($x) | $x.nonzero()", "(a > 0).nonzero()", {"x": "a > 0"}),
        ("torch.nonzero($x) | $x.nonzero()", "torch.nonzero(a)", {"x": "a"}),
        ("torch.nonzero($x)", "F.nonzero(a)", {"x": "a"}),
        ("torch.nonzero($x)", "np.nonzero(a)", None),
        ("$x.nonzero(as_tuple=True)", "a.nonzero(as_tuple=True)", {"x": "a"}),
        ("$x.nonzero(as_tuple=True)", "a.nonzero(as_tuple=1)", None),
        ("$x.nonzero()", "a.nonzero(as_tuple=True)", None),
        ("$x.item()", "a.item", None),
        ("$x.to($device, ...)", "a.to(d, non_blocking=True)", {"x": "a", "device": "d"}),
        ("$x.to(..., copy=$copy)", "a.to(d, copy=c)", {"x": "a", "copy": "c"}),
        ("$x.to(..., copy=$copy)", "a.to(d)", None),
        ("$x.$name(...)", "a.sum(1)", {"x": "a", "name": "sum"}),
        ("$x * $x", "a[0] * a[0]", {"x": "a[0]"}),
        ("$x * $x", "a[0] * a[1]", None),
        ("float($x)", "float(*a)", None),
        ("$x[$i] = $value", "a[0] = 1", {"x": "a", "i": "0", "value": "1"}),
        ("$x[$i] = $value", "a[0] = b = 1", None),
        ("$x[:, 0]", "a[:, 0]", {"x": "a"}),
        ("$x[0]", "a[False]", None),
    ],
)
def test_a_pattern_fits_its_code_alone(pattern: str, code: str, parts: dict[str, str] | None) -> None:
    """A variable is what it stands for, and the same code wherever it stands."""
    (statement,) = ast.parse(code).body
    match = matched(pattern, statement.value if isinstance(statement, ast.Expr) else statement)
    words = {k: v if isinstance(v, str) else ast.unparse(v) for k, v in vars(match).items()} if match else None
    assert words == parts


def test_names_may_be_compared_by_what_they_are_imported_as() -> None:
    """Whatever the file calls them."""
    names = {"one": "torch.nn.functional.one_hot"}
    match = matched(
        "torch.nn.functional.one_hot($x)", ast.parse("one(a)", mode="eval").body, lambda n: names[ast.unparse(n)]
    )
    assert match is not None
    assert ast.unparse(match.x) == "a"


@each(
    ("template", "sources", "code"),
    [
        ("$x.sum()", {"x": "a"}, "a.sum()"),
        ("$x.sum()", {"x": "a > 0"}, "(a > 0).sum()"),
        ("$x[0]", {"x": "a + b"}, "(a + b)[0]"),
        ("$x.item()", {"x": "(a + b) * c"}, "((a + b) * c).item()"),
        ("f($x, k=$y)", {"x": "a > 0", "y": "b or c"}, "f(a > 0, k=b or c)"),
        ("$x = torch.where($m, $y, $x)", {"x": "a", "m": "b > 0", "y": "-a"}, "a = torch.where(b > 0, -a, a)"),
        ("$x / $y", {"x": "a + b", "y": "c.sum()"}, "(a + b) / c.sum()"),
        ("~$x", {"x": "a > 0"}, "~(a > 0)"),
        ("$x < $y", {"x": "2", "y": "a if b else c"}, "2 < (a if b else c)"),
        ("f($x)", {"x": "'$x.y'"}, "f('$x.y')"),
    ],
)
def test_a_template_s_sources_get_parentheses_where_they_need_them(
    template: str, sources: dict[str, str], code: str
) -> None:
    assert filled(template, **sources) == code
