"""Reads the numbers of one statement at once: `print(a.item(), b.item())` stacks both and waits once.

All of them are certainly read, and lie on the device wherever they come from. Floating numbers of several dtypes are
stacked in the widest, which holds each exactly. What the statement computes before a read neither reads a clock nor may
write to the tensor.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence

from syncscan.fixing import questions
from syncscan.fixing.edits import Draft, Render
from syncscan.fixing.flow.moved_reads import may_go_first, name_of_number, on_the_device, stacked
from syncscan.fixing.flow.number_reads import NumberRead, is_read_as_it_is, sites
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "statement-reads"
TITLE = "Numbers are read one by one in a statement"
RULES = ("item",)
SAFETY = Safety.SAFE
BEFORE = 'result = f"{x.sum().item():.3f} {x.mean().item():.3f}"'
AFTER = 'x_sum, x_mean = torch.stack([x.sum(), x.mean()]).tolist()\nresult = f"{x_sum:.3f} {x_mean:.3f}"'
FEWEST = 3
"""Runs of the statement below which nothing is to be gained."""


def find(file: File) -> Iterator[Proposal | Left]:
    if questions.names_several_devices(file):
        return
    groups: dict[tuple[ast.stmt, str], list[NumberRead]] = defaultdict(list)
    for site in sites(file):
        if site.count >= FEWEST and is_read_as_it_is(site) and may_go_first(file, site):
            groups[file.statement_of(site.node), _kind(site)].append(site)
    for (statement, _), reads in groups.items():
        reads = [site for site in reads if on_the_device(file, site.of)]
        if len({file.text.code(site.of) for site in reads}) > 1 and len({site.count for site in reads}) == 1:
            yield _proposal(file, statement, sorted(reads, key=lambda site: file.text.span(site.node)))


def _kind(site: NumberRead) -> str:
    """Return which reads may be stacked: numbers of the same dtype, and floating ones."""
    return "float" if site.type == "float" else site.tensor.dtype


def _proposal(file: File, statement: ast.stmt, reads: Sequence[NumberRead]) -> Proposal:
    draft = Draft(file.text)
    code = [file.text.code(site.of) for site in reads]
    different = [site for number, site in enumerate(reads) if code.index(code[number]) == number]
    container = _takes_all(statement, reads)
    if container is not None and len(different) == len(reads):
        draft.replace(container, lambda render: _at_once(file, statement, different, render))
    else:
        names: dict[str, str] = {}
        for site in different:
            names[file.text.code(site.of)] = name_of_number(file, site, *names.values())
        draft.put_before(
            statement, lambda render: stacked(file, statement, [*names.values()], different, render, in_front=True)
        )
        for site, source in zip(reads, code, strict=True):
            draft.replace(site.node, names[source])
    waits = sum(file.own_waits(site.node) for site in reads) - (reads[0].count if container is not None else 0)
    change, group = "copy the numbers of this statement at once", tuple(site.node for site in reads[1:])
    return Proposal(node=reads[0].node, draft=draft, change=change, waits=waits, group=group, shared=True)


def _takes_all(statement: ast.stmt, reads: Sequence[NumberRead]) -> ast.expr | None:
    """Return the tuple of a statement that returns or unpacks exactly these numbers."""
    match statement:
        case ast.Return(value=ast.Tuple(elts=numbers) as value):
            takes = True
        case ast.Assign(targets=targets, value=ast.Tuple(elts=numbers) as value):
            takes = all(isinstance(target, ast.Tuple) for target in targets)
        case _:
            return None
    return value if takes and numbers == [site.node for site in reads] else None


def _at_once(file: File, statement: ast.stmt, reads: Sequence[NumberRead], render: Render) -> str:
    source = stacked(file, statement, [], reads, render)
    return f"tuple({source})" if isinstance(statement, ast.Return) else source
