"""Reads the numbers of several statements at once: `a = x.item()` and `b = y.item()` stack both and wait once.

The statements follow each other, and each assigns one number to a name of its own. All numbers have the same dtype and
are read as its own type. No statement needs the number of another one, and none of the numbers controls what runs next
or is a size: those reads are left where they are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from syncscan.fixing import questions
from syncscan.fixing.edits import Draft
from syncscan.fixing.flow.moved_reads import stacked
from syncscan.fixing.flow.number_reads import NumberRead, is_read_as_it_is, sites
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "stacked-reads"
TITLE = "Numbers are read one by one in successive statements"
RULES = ("item",)
SAFETY = Safety.SAFE
BEFORE = "total = x.sum().item()\nmean = x.mean().item()\nresult = total, mean"
AFTER = "total, mean = torch.stack([x.sum(), x.mean()]).tolist()\nresult = total, mean"
FEWEST = 3
"""Runs of the statements below which nothing is to be gained."""
_STEERS = (
    ast.Compare,
    ast.If,
    ast.IfExp,
    ast.While,
    ast.BoolOp,
    ast.Assert,
    ast.Subscript,
    ast.Slice,
    ast.comprehension,
)


def find(file: File) -> Iterator[Proposal | Left]:
    if questions.names_several_devices(file):
        return
    reads = {site.node: site for site in sites(file)}
    series: list[_Read] = []
    for statement in sorted((n for n in file.nodes if isinstance(n, ast.stmt)), key=lambda n: (n.lineno, n.col_offset)):
        read = _read_by(file, statement, reads)
        if read is None or not _continues(file, series, read):
            yield from _of(file, series)
            series = []
        series += [read] if read else []
    yield from _of(file, series)


class _Read(NamedTuple):
    """A statement that assigns a read number to a name."""

    statement: ast.Assign
    name: ast.Name
    site: NumberRead


def _read_by(file: File, statement: ast.stmt, reads: dict[ast.expr, NumberRead]) -> _Read | None:
    """Return the read that a statement assigns to a name, if it can be one of several."""
    match statement:
        case ast.Assign(targets=[ast.Name() as name], value=value) if value in reads:
            site = reads[value]
        case _:
            return None
    as_it_is = site.count >= FEWEST and is_read_as_it_is(site) and questions.is_pure(file, site.of)
    fits = as_it_is and _stands_bare(file, statement) and not _steers(file, name)
    return _Read(statement, name, site) if fits else None


def _continues(file: File, series: Sequence[_Read], read: _Read) -> bool:
    """Return whether a statement may be read with those before it; the first of a series may."""
    if not series:
        return True
    first, last, block = series[0].site, series[-1].statement, file.block_of(read.statement)
    follows = last in block and block.index(read.statement) == block.index(last) + 1
    own = {n.id for n in ast.walk(read.statement) if isinstance(n, ast.Name)}
    alike = read.site.tensor.dtype == first.tensor.dtype and read.site.count == first.count
    return follows and alike and not own & {earlier.name.id for earlier in series}


def _of(file: File, series: Sequence[_Read]) -> Iterator[Proposal]:
    if len(series) < 2 or any(isinstance(n, ast.Try) for n in file.ancestors(series[0].statement)):
        return
    names, reads = [read.name.id for read in series], [read.site for read in series]
    first, draft = series[0].statement, Draft(file.text)
    draft.replace(first, lambda render: stacked(file, first, names, reads, render))
    for read in series[1:]:
        draft.remove(read.statement)
    waits = sum(file.own_waits(site.node) for site in reads) - reads[0].count
    change, group = "copy the numbers of these statements at once", tuple(site.node for site in reads[1:])
    yield Proposal(node=reads[0].node, draft=draft, change=change, waits=waits, group=group, shared=True)


def _stands_bare(file: File, statement: ast.stmt) -> bool:
    """Return whether a statement has one line for itself, without a comment."""
    line = file.text.lines[statement.lineno - 1]
    whole = statement.lineno == statement.end_lineno and questions.stands_alone(file, statement)
    return whole and line.strip() == file.text.code(statement)


def _steers(file: File, target: ast.Name) -> bool:
    """Return whether a name controls what the host runs, or is an index or a size."""
    return any(isinstance(outer, _STEERS) for use in file.loads(target) for outer in _around(file, use))


def _around(file: File, use: ast.Name) -> Iterator[ast.AST]:
    """Yield what holds a name, up to its statement; of a branch or loop only the condition counts."""
    inner: ast.AST = use
    for outer in file.ancestors(use):
        if isinstance(outer, ast.If | ast.While | ast.For) and inner is not getattr(outer, "test", None):
            return
        yield outer
        if isinstance(outer, ast.stmt):
            return
        inner = outer
