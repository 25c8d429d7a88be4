"""Reads the numbers of a comprehension at once: `[t.item() for t in losses]` stacks them and waits once.

Each element is one number of the same type, read from the device. The comprehension is a list, a dictionary's values,
or the only argument of `sum`, `max`, `min`, `sorted`, `list` or `tuple`. The numbers, their order and an empty result
stay the same; autograd's graphs aren't kept until the read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing import questions
from syncscan.fixing.edits import Draft, Render
from syncscan.fixing.flow.number_reads import FRESH, NumberRead, is_read_as_it_is, primary, sites
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "gathered-reads"
TITLE = "Numbers are read one by one in a comprehension"
RULES = ("item",)
SAFETY = Safety.SAFE
BEFORE = "result = sum(row.norm().item() for row in x)"
AFTER = "result = sum(torch.stack(values).tolist() if (values := [row.norm() for row in x]) else [])"
_TAKES_ALL = frozenset("sum max min sorted list tuple".split())
_Comprehension = ast.ListComp | ast.GeneratorExp | ast.DictComp
_PLAIN = frozenset("list tuple dict range enumerate zip torch.Tensor".split())


def find(file: File) -> Iterator[Proposal | Left]:
    """Yield the comprehensions whose numbers can be read at once."""
    for site in sites(file):
        comprehension = file.parents[site.node]
        if not isinstance(comprehension, _Comprehension) or _element(comprehension) is not site.node:
            continue
        runs = _runs(file, comprehension)
        if runs and site.count >= 2 * runs and _can_be_stacked(file, site, comprehension):
            yield _proposal(file, site, comprehension, runs)


def _element(comprehension: _Comprehension) -> ast.expr:
    return comprehension.value if isinstance(comprehension, ast.DictComp) else comprehension.elt


def _runs(file: File, comprehension: _Comprehension) -> int:
    """Return how often a comprehension ran whose numbers all are used; 0 for others."""
    if isinstance(comprehension, ast.GeneratorExp):
        call = file.parents[comprehension]
        takes = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in _TAKES_ALL
        if not takes or call.args != [comprehension] or call.keywords:  # type: ignore[attr-defined]
            return 0
    return file.seen(comprehension.generators[0].iter).count


def _can_be_stacked(file: File, site: NumberRead, comprehension: _Comprehension) -> bool:
    inner = list(ast.walk(comprehension))
    alone = not any(isinstance(n, ast.NamedExpr | ast.Await | ast.Yield) for n in inner)
    by_type = any(isinstance(n, ast.Attribute) and n.attr == "is_tensor" for n in inner)  # and of any dtype
    asynchronous = any(generator.is_async for generator in comprehension.generators)
    in_class = isinstance(file.parents[file.statement_of(comprehension)], ast.ClassDef)
    return (
        is_read_as_it_is(site)
        and alone
        and not by_type
        and not asynchronous
        and not in_class
        and not any(isinstance(n, ast.comprehension | ast.Lambda) for n in file.ancestors(comprehension))
    )


def _proposal(file: File, site: NumberRead, comprehension: _Comprehension, runs: int) -> Proposal:
    name = file.fresh("values")
    draft = Draft(file.text)
    has_graph = any(tensor.grad for tensor in file.seen(site.of).tensors)
    detach = ".detach()" if site.detached or has_graph else ""
    clone = "" if _stays(file, site, comprehension) else ".clone()"
    text = file.text.text
    begin, end = file.text.span(comprehension)  # the parentheses of `sum(…)` belong to the generator
    first, last = file.text.span(site.node)
    bare = isinstance(comprehension, ast.GeneratorExp) or isinstance(
        file.parents[comprehension], ast.Assign | ast.AugAssign | ast.Return
    )

    def stacked(render: Render) -> str:
        element = f"{primary(site.of, render)}{detach}{clone}"
        inner = f"{text[begin + 1 : first]}{element}{text[last : end - 1]}"
        if isinstance(comprehension, ast.DictComp):
            numbers = f"dict(zip({name}, torch.stack([*{name}.values()]).tolist()))"
            source = f"{numbers} if ({name} := {{{inner}}}) else {{}}"
        else:
            source = f"torch.stack({name}).tolist() if ({name} := [{inner}]) else []"
        return source if bare and not isinstance(comprehension, ast.GeneratorExp) else f"({source})"

    draft.replace(comprehension, stacked)
    return Proposal(
        node=site.node,
        draft=draft,
        rule="item",
        rewrite=ID,
        change="copy all numbers at once",
        waits=file.own_waits(site.node) - runs,
    )


def _stays(file: File, site: NumberRead, comprehension: _Comprehension) -> bool:
    """Return whether the next elements write to no memory of those before."""
    of = site.of
    if isinstance(of, ast.BinOp | ast.UnaryOp | ast.Compare):
        return True
    if isinstance(of, ast.Call):
        name = of.func.attr if isinstance(of.func, ast.Attribute) else getattr(of.func, "id", "")
        if name in FRESH:
            return True
    iterates = all(file.types(g.iter) and file.types(g.iter) <= _PLAIN for g in comprehension.generators)
    return iterates and questions.is_pure(file, of)
