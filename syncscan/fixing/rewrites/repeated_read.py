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
from syncscan.fixing.flow.moved_reads import may_go_first, name_of_number
from syncscan.fixing.flow.number_reads import NumberRead, sites
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety
from syncscan.source.code_pattern import matched

ID = "repeated-read"
TITLE = "The same number is read several times in a step"
RULES = ("item",)
SAFETY = Safety.SAFE
BEFORE = 'for loss in losses:\n    result = f"{loss.item():.3f} {2 ** loss.item():.3f}"'
AFTER = 'for loss in losses:\n    loss_value = loss.item()\n    result = f"{loss_value:.3f} {2 ** loss_value:.3f}"'
FEWEST = 3


def find(file: File) -> Iterator[Proposal | Left]:
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
    data = matched("$x.data", site.of)
    of = data.x if data else site.of
    return of if isinstance(of, ast.Name) else None


def _is_same(file: File, first: NumberRead, other: NumberRead) -> bool:
    """Return whether a later read certainly gives the number of the first."""
    anchor, name = file.statement_of(first.node), _name(first)
    block = file.block_of(anchor)
    last = next((n for n in [other.node, *file.ancestors(other.node)] if n in block), None)
    if name is None or last is None or not may_go_first(file, first):
        return False
    scope = file.scope_of(first.node)
    if file.scope_of(other.node) is not scope or file.home_of(name) is not scope or file.seen(name).version:
        return False
    between = block[block.index(anchor) : block.index(last) + 1]
    nodes = [n for statement in between for n in ast.walk(statement)]
    rebound = any(store in nodes for store in file.stores(name))
    return (
        not rebound
        and not memory.may_change(file, name, nodes, anchor.lineno)
        and not _times(file, first, other, nodes)
    )


def _times(file: File, first: NumberRead, other: NumberRead, nodes: Sequence[ast.AST]) -> bool:
    """Return whether a clock may be read for what runs between two reads."""
    function = file.function_of(first.node)
    if not any(file.function_of(clock) is function for clock in clock_reads.clocks(file)):
        return False
    after = {*(site.node for site in sites(file)), *file.ancestors(other.node)}
    return not all(_only_prints(n) for n in nodes if isinstance(n, ast.Call) and n not in after)


def _only_prints(call: ast.Call) -> bool:
    """Return whether a call only writes text, so that no time is taken of it: `print`, `"…".format`."""
    form = matched("$text.format(...)", call)
    writes = matched("print(...) | str(...) | len(...)", call)
    return writes is not None or (form is not None and isinstance(form.text, ast.Constant))


def _proposal(file: File, reads: Sequence[NumberRead]) -> Proposal:
    first, draft = reads[0], Draft(file.text)
    anchor = file.statement_of(first.node)
    target = anchor.targets[0] if isinstance(anchor, ast.Assign) and anchor.value is first.node else None
    given = isinstance(target, ast.Name) and _is_kept(file, target, reads[-1])
    name = file.text.code(target) if given and target is not None else name_of_number(file, first)
    if not given:
        draft.put_before(anchor, f"{name} = {file.text.code(first.node)}")
        draft.replace(first.node, name)
    for site in reads[1:]:
        draft.replace(site.node, name)
    waits = sum(file.own_waits(site.node) for site in (reads[1:] if given else reads))
    group = tuple(site.node for site in reads[1:])
    return Proposal(node=first.node, draft=draft, change="read the number once", waits=waits, group=group, shared=True)


def _is_kept(file: File, target: ast.Name, last: NumberRead) -> bool:
    """Return whether the name that the first read is assigned to still has that number at the last."""
    begin, end = file.text.span(target)[0], file.text.span(last.node)[1]
    again = any(n is not target and begin <= file.text.span(n)[0] <= end for n in file.stores(target))
    return not again and file.home_of(target) is file.scope_of(target)
