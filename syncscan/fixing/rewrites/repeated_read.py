"""Reads a number once that is read several times in a step: `total += loss.item()`, later `print(loss.item())`.

From the first read to the last, nothing rebinds the tensor, writes to it or to a view of it, or gets the tensor without
being known to leave it alone; no optimizer steps, unless the tensor surely is memory of its own. The first read is
certainly done, and no clock is read in the function between other calls.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence

from syncscan.fixing import clock_reads
from syncscan.fixing.edits import Draft
from syncscan.fixing.flow import memory
from syncscan.fixing.flow.early_reads import may_go_first, name_of_number
from syncscan.fixing.flow.number_reads import NumberRead, sites
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "repeated-read"
TITLE = "The same number is read several times in a step"
RULES = ("item",)
SAFETY = Safety.SAFE
BEFORE = 'for loss in losses:\n    result = f"{loss.item():.3f} {2 ** loss.item():.3f}"'
AFTER = 'for loss in losses:\n    loss_value = loss.item()\n    result = f"{loss_value:.3f} {2 ** loss_value:.3f}"'
FEWEST = 3


def find(file: File) -> Iterator[Proposal | Left]:
    """Yield the numbers that can be read once."""
    alike: dict[tuple[ast.AST, str, str], list[NumberRead]] = defaultdict(list)
    for site in sites(file):
        if site.count >= FEWEST and site.equal is None and _name(site) is not None:
            alike[file.function_of(site.node), file.text.code(site.of), site.type].append(site)
    for reads in alike.values():
        reads.sort(key=lambda site: file.text.span(site.node))
        while len(reads) > 1:
            same = [reads[0], *(site for site in reads[1:] if _is_same(file, reads[0], site))]
            if len(same) > 1:
                yield _proposal(file, same)
            reads = [site for site in reads[1:] if site not in same]


def _name(site: NumberRead) -> ast.Name | None:
    """Return the name whose tensor is read: of `loss`, `loss.data`."""
    of = site.of.value if isinstance(site.of, ast.Attribute) and site.of.attr == "data" else site.of
    return of if isinstance(of, ast.Name) else None


def _is_same(file: File, first: NumberRead, other: NumberRead) -> bool:
    """Return whether a later read certainly gives the number of the first."""
    anchor, name = file.statement_of(first.node), _name(first)
    block = file.block_of(anchor)
    last = next((n for n in [other.node, *file.ancestors(other.node)] if n in block), None)
    if name is None or last is None or not may_go_first(file, first):
        return False
    if file.scope_of(other.node) is not file.scope_of(first.node):
        return False
    between = block[block.index(anchor) : block.index(last) + 1]
    nodes = [n for statement in between for n in ast.walk(statement)]
    if file.home_of(name) is not file.scope_of(name) or file.seen(name).version:
        return False
    rebound = any(isinstance(n, ast.Name) and n.id == name.id and not isinstance(n.ctx, ast.Load) for n in nodes)
    return (
        not rebound
        and not memory.may_change(file, name, nodes, anchor.lineno)
        and not _times(file, first, other, nodes)
    )


def _times(file: File, first: NumberRead, other: NumberRead, nodes: Sequence[ast.AST]) -> bool:
    """Return whether a clock may be read for what runs between two reads."""
    function = file.function_of(first.node)
    reads = {site.node for site in sites(file)}
    if not any(file.function_of(clock) is function for clock in clock_reads.clocks(file)):
        return False
    after = {*reads, *file.ancestors(other.node)}
    return not all(_only_prints(n) for n in nodes if isinstance(n, ast.Call) and n not in after)


def _only_prints(call: ast.Call) -> bool:
    """Return whether a call only writes text, so that no time is taken of it: `print`, `"…".format`."""
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr == "format" and isinstance(function.value, ast.Constant)
    return isinstance(function, ast.Name) and function.id in ("print", "str", "len")


def _proposal(file: File, reads: Sequence[NumberRead]) -> Proposal:
    first, draft = reads[0], Draft(file.text)
    anchor = file.statement_of(first.node)
    target = anchor.targets[0] if isinstance(anchor, ast.Assign) and anchor.value is first.node else None
    kept = _kept_name(file, target, reads[-1]) if isinstance(target, ast.Name) else ""
    name = kept or name_of_number(file, first)
    if not kept:
        draft.put_before(anchor, f"{name} = {file.text.code(first.node)}")
        draft.replace(first.node, name)
    for site in reads[1:]:
        draft.replace(site.node, name)
    return Proposal(
        node=first.node,
        draft=draft,
        change="read the number once",
        waits=sum(file.own_waits(site.node) for site in (reads[1:] if kept else reads)),
        group=tuple(site.node for site in reads[1:]),
        shared=True,
    )


def _kept_name(file: File, target: ast.Name, last: NumberRead) -> str:
    """Return the name that the first read is assigned to, if it still has that number at the last."""
    end = file.text.span(last.node)[1]
    begin = file.text.span(target)[0]
    stores = (n for n in file.names(file.home_of(target), target.id) if not isinstance(n.ctx, ast.Load))
    again = any(n is not target and begin <= file.text.span(n)[0] <= end for n in stores)
    return "" if again or file.home_of(target) is not file.scope_of(target) else target.id
