"""The package imports nothing from the standard library that Python 3.10, the oldest it supports, doesn't have."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "syncscan"
NEWER = {
    "enum": {"StrEnum", "ReprEnum", "verify", "member", "nonmember"},
    "datetime": {"UTC"},
    "itertools": {"batched"},
    "contextlib": {"chdir"},
    "typing": {"Self", "LiteralString", "Never", "NotRequired", "Required", "Unpack", "assert_never", "override"},
    "tomllib": {"load", "loads"},
}
"""Names of modules that came with Python 3.11 or later."""


def newer_imports(tree: ast.AST) -> list[str]:
    """Return the names of `NEWER` that a module imports where it runs; type checkers alone may read any."""
    if isinstance(tree, ast.If):
        return []  # behind a condition: of the version, or of type checking
    names = []
    if isinstance(tree, ast.ImportFrom):
        names = [alias.name for alias in tree.names if alias.name in NEWER.get(tree.module or "", ())]
    return names + [name for node in ast.iter_child_nodes(tree) for name in newer_imports(node)]


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_needs_a_newer_python(path: Path) -> None:
    assert newer_imports(ast.parse(path.read_text())) == []
