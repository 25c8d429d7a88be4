"""From a copy that an indexing op follows to what is copied, as the source has it: the index, or what is indexed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from syncscan.attribute.source_file import OWN, SourceFiles, function_with
from syncscan.model.finding import Attribution, Source, SyncPoint

_COPIES = frozenset("to cuda as_tensor asarray tensor".split())
"""What a program calls to copy a host's array to the device."""


def settled(
    points: Sequence[SyncPoint], places: Sequence[Attribution], files: SourceFiles = OWN
) -> tuple[SyncPoint, ...]:
    """Return the sync points, each with what its rule says of it by the source of its line, where that is at hand.

    Args:
        points: as detected.
        places: of each, where it belongs.
        files: what may be read.
    """
    known: dict[Source, bool] = {}
    return tuple(_settled(point, place.source, files, known) for point, place in zip(points, places, strict=True))


def _settled(point: SyncPoint, source: Source | None, files: SourceFiles, known: dict[Source, bool]) -> SyncPoint:
    other = point.diagnosis.copied
    if other is None or source is None:
        return point
    if source not in known:
        known[source] = copies_what_it_indexes(source, files)
    if not known[source]:
        return point
    return replace(point, diagnosis=replace(other, intended=point.diagnosis.intended))


def copies_what_it_indexes(source: Source, files: SourceFiles = OWN) -> bool:
    """Return whether the program itself copies something to the device in this line, and indexes it.

    Args:
        source: the line; nothing is known where it is a guess.
        files: what may be read.
    """
    tree = files.tree_of(source.file)
    function = function_with(tree, source) or tree if tree else None
    if function is None or not source.exact:
        return False
    indexed = {id(inner) for value in _indexed(function) for inner in ast.walk(value)}
    return any(_copies(node) and _holds(node, source.line) and id(node) in indexed for node in ast.walk(function))


def _indexed(function: ast.AST) -> Iterator[ast.expr]:
    """What stands before brackets, and what is assigned to the names that stand there."""
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
