"""The code, its tests and its benchmarks keep to docs/style.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = sorted(path.name for path in (ROOT / "syncscan").iterdir() if path.is_dir() and (path / "__init__.py").exists())
RECORDED = {ROOT / "syncscan" / "capture" / f"{name}_step.py" for name in ("demo", "logged")}
"""Programs that recordings show line by line: they stay as they were recorded."""
SAMPLES = (Path(__file__), ROOT / "tests" / "lint" / "code")
"""This file, which spells out what it refuses, and programs that lint is tried on."""
OPENINGS = re.compile(r"(What |The same|That of |Of |From )")
"""Openings of docstrings that don't say what a function does or returns."""
NAMES = frozenset("told said found kept asked mine gone".split())
LONGEST_SCOPE = 3
"""Lines of a scope in which such a name may stand."""
BRITISH = re.compile(
    r"\b\w*(?:nchronis|nalys[ei]|okenis|olour|ehaviour|onour)(?:e[ds]?|ing|ation|ed)?\w*\b", re.IGNORECASE
)
AMERICAN_TOO = re.compile(r"analysis|analyses", re.IGNORECASE)
PUBLIC = re.compile(r'tokenise[-_]on[-_]step|"tokenise"')
"""British names that users rely on: a rule's id, its module, and its recording."""

FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def bad_openings(tree: ast.Module) -> list[str]:
    """Docstrings of modules, classes, functions and attributes that open with one of `OPENINGS`."""
    bodies = [n.body for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef | FUNCTIONS)]
    strings = [s for body in bodies for s in body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)]
    docs = [s.value.value for s in strings if isinstance(s.value, ast.Constant) and isinstance(s.value.value, str)]
    return [doc.splitlines()[0] for doc in docs if OPENINGS.match(doc)]


def bad_names(tree: ast.Module) -> list[str]:
    """Names of `NAMES` that a function with more than `LONGEST_SCOPE` lines binds."""
    long = (f for f in functions(tree) if f.body[-1].end_lineno - f.body[0].lineno >= LONGEST_SCOPE)  # type: ignore[operator]
    bound = (n for f in long for n in ast.walk(f) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return [f"{node.id}, line {node.lineno}" for node in bound if node.id in NAMES]


def british(text: str) -> list[str]:
    """British spellings of the words that CUDA and torch spell the American way."""
    return [word for word in BRITISH.findall(PUBLIC.sub("", text)) if not AMERICAN_TOO.search(word)]


def faults(path: Path) -> list[str]:
    """The openings, names and spellings of a file that docs/style.md refuses, each with the file."""
    text = path.read_text()
    tree = ast.parse(text)
    return [f"{path.relative_to(ROOT)}: {w}" for w in (*bad_openings(tree), *bad_names(tree), *british(text))]


def test_a_docstring_that_says_nothing_is_refused() -> None:
    tree = ast.parse('def f():\n    """The same, of all."""\ndef g():\n    """Return the rows of a trace."""')
    assert bad_openings(tree) == ["The same, of all."]


def test_an_attribute_s_docstring_that_says_nothing_is_refused() -> None:
    tree = ast.parse(
        'N = 3\n"""Of those."""\nclass C:\n    n: int\n    """What it has."""\n    m: int\n    """Rows."""'
    )
    assert bad_openings(tree) == ["Of those.", "What it has."]


def test_a_listed_name_is_refused_beyond_three_lines() -> None:
    short, long = (
        "def f():\n    found = 1\n    return found\n",
        "def g():\n    told = 1\n    a = 1\n    b = 2\n    return told\n",
    )
    assert bad_names(ast.parse(short + long)) == ["told, line 5"]


def test_british_spelling_is_refused() -> None:
    assert british("cudaStreamSynchronize synchronises; an analysis is analysed") == ["synchronises", "analysed"]


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_keeps_to_the_style(room: str) -> None:
    """Its docstrings say what is done or returned, its names are nouns, its spelling is American."""
    wrong = []
    for path in sorted(set((ROOT / "syncscan" / room).rglob("*.py")) - RECORDED):
        wrong += faults(path)
    assert wrong == []


def test_the_package_s_own_modules_keep_to_the_style() -> None:
    assert [fault for path in sorted((ROOT / "syncscan").glob("*.py")) for fault in faults(path)] == []


@pytest.mark.parametrize("folder", ["tests", "benchmarks"])
def test_tests_and_benchmarks_keep_to_the_style(folder: str) -> None:
    """Their docstrings and names are held to the same rules as the package's."""
    paths = sorted(path for path in (ROOT / folder).rglob("*.py") if not set(SAMPLES) & {path, *path.parents})
    assert [fault for path in paths for fault in faults(path)] == []
