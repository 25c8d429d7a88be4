"""Decide by the source whether a copy before an indexing op copies the index or the indexed tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from syncscan.attribute.source_file import OWN, SourceFiles, function_with
from syncscan.model.finding import Attribution, Source, SyncPoint

_COPIES = frozenset("to cuda as_tensor asarray tensor".split())
"""Functions that copy a host array to the device."""


def settled(
    points: Sequence[SyncPoint], places: Sequence[Attribution], files: SourceFiles = OWN
) -> tuple[SyncPoint, ...]:
    """Return the sync points with the diagnosis that their rule gives once the source line is known.

    Args:
        files: source files that may be read.
    """
    known: dict[Source, bool] = {}
    return tuple(_settle(point, place.source, files, known) for point, place in zip(points, places, strict=True))


def _settle(point: SyncPoint, source: Source | None, files: SourceFiles, decided: dict[Source, bool]) -> SyncPoint:
    other = point.diagnosis.copied
    if other is None or source is None:
        return point
    if source not in decided:
        decided[source] = copies_what_it_indexes(source, files)
    if not decided[source]:
        return point
    return replace(point, diagnosis=replace(other, intended=point.diagnosis.intended))


def copies_what_it_indexes(source: Source, files: SourceFiles = OWN) -> bool:
    """Return whether a line copies something to the device and then indexes it.

    Args:
        source: the line; False if it isn't exact.
        files: source files that may be read.
    """
    tree = files.tree_of(source.file)
    function = function_with(tree, source) or tree if tree else None
    if function is None or not source.exact:
        return False
    indexed = {id(inner) for value in _indexed(function) for inner in ast.walk(value)}
    return any(_copies(node) and _holds(node, source.line) and id(node) in indexed for node in ast.walk(function))


def _indexed(function: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions before brackets, and the values assigned to names that stand before brackets."""
    names: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            names.add(node.value.id)
        elif isinstance(node, ast.Subscript):
            yield node.value
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id in names for t in node.targets):
            yield node.value


def _copies(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in _COPIES


def _holds(node: ast.AST, line: int) -> bool:
    first = getattr(node, "lineno", 0)
    return bool(first <= line <= (getattr(node, "end_lineno", None) or first))
