"""Reads the numbers of several statements at once: `a = x.item()` and `b = y.item()` stack both and wait once.

The statements follow each other, and each assigns one number to a name of its own. All numbers have the same dtype and
are read as its own type. No statement needs the number of another one, and none of the numbers controls what runs next
or is a size: those reads are left where they are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from syncscan.fixing import questions
from syncscan.fixing.edits import Draft, Render
from syncscan.fixing.flow.number_reads import NumberRead, is_read_as_it_is, sites
from syncscan.fixing.flow.reads_at_once import stacked
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
    """Yield each series of statements whose numbers can be read at once."""
    if questions.names_several_devices(file):
        return
    reads = {site.node: site for site in sites(file)}
    series: list[tuple[ast.Assign, NumberRead]] = []
    for statement in sorted((n for n in file.nodes if isinstance(n, ast.stmt)), key=lambda n: (n.lineno, n.col_offset)):
        site = _read_by(file, statement, reads)
        if site is None or not _continues(file, series, statement, site):
            yield from _of(file, series)
            series = []
        if site is not None:
            assert isinstance(statement, ast.Assign)
            series.append((statement, site))
    yield from _of(file, series)


def _read_by(file: File, statement: ast.stmt, reads: dict[ast.expr, NumberRead]) -> NumberRead | None:
    """Return the read that a statement assigns to a name, if it can be one of several."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, site = statement.targets[0], reads.get(statement.value)
    if not isinstance(target, ast.Name) or site is None or site.count < FEWEST:
        return None
    as_it_is = is_read_as_it_is(site) and questions.is_pure(file, site.of)
    return site if as_it_is and _stands_bare(file, statement) and not _steers(file, target) else None


def _continues(
    file: File, series: Sequence[tuple[ast.Assign, NumberRead]], statement: ast.stmt, site: NumberRead
) -> bool:
    """Return whether a statement may be read with those before it; the first of a series may."""
    if not series:
        return True
    last, first = series[-1][0], series[0][1]
    block = file.block_of(statement)
    follows = last in block and block.index(statement) == block.index(last) + 1
    names = {target.id for one, _ in series for target in one.targets if isinstance(target, ast.Name)}
    own = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
    return follows and site.tensor.dtype == first.tensor.dtype and site.count == first.count and not names & own


def _of(file: File, series: Sequence[tuple[ast.Assign, NumberRead]]) -> Iterator[Proposal]:
    if len(series) < 2 or any(isinstance(n, ast.Try) for n in file.ancestors(series[0][0])):
        return
    statements, reads = [one for one, _ in series], [site for _, site in series]
    draft = Draft(file.text)
    draft.replace(statements[0], lambda render: _written(file, statements, reads, render))
    for statement in statements[1:]:
        draft.remove(statement)
    yield Proposal(
        node=reads[0].node,
        draft=draft,
        change="copy the numbers of these statements at once",
        waits=sum(file.own_waits(site.node) for site in reads) - reads[0].count,
        group=tuple(site.node for site in reads[1:]),
        shared=True,
    )


def _written(file: File, statements: Sequence[ast.Assign], reads: Sequence[NumberRead], render: Render) -> str:
    names = [file.text.code(one.targets[0]) for one in statements]
    return stacked(file, statements[0], names, reads, render)


def _stands_bare(file: File, statement: ast.stmt) -> bool:
    """Return whether a statement has one line for itself, without a comment."""
    line = file.text.lines[statement.lineno - 1]
    whole = statement.lineno == statement.end_lineno and questions.stands_alone(file, statement)
    return whole and line.strip() == file.text.code(statement)


def _steers(file: File, target: ast.Name) -> bool:
    """Return whether a name controls what the host runs, or is an index or a size."""
    uses = (n for n in file.names(file.home_of(target), target.id) if isinstance(n.ctx, ast.Load))
    return any(isinstance(outer, _STEERS) for use in uses for outer in _around(file, use))


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
