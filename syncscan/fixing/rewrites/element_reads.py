"""Numbers of one tensor or of one comprehension, read at once."""

from __future__ import annotations

import ast

from syncscan.fixing import expressions
from syncscan.fixing.edits import Draft, template
from syncscan.fixing.flow import memory
from syncscan.fixing.flow.number_reads import NumberRead, is_read_as_it_is, sites, stands_first
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Answers, Proposal, rewrite
from syncscan.source.code_pattern import matched


@rewrite
def element_loop(file: File) -> Answers:
    for site in sites(file):
        draft = (_comprehension(file, site) or _in_loop(file, site)) if _keeps_type(site) else None
        if draft is not None:
            change = "copy all elements at once with tolist()"
            yield Proposal(node=site.node, draft=draft, change=change, waits=file.own_waits(site.node))


def _keeps_type(site: NumberRead) -> bool:
    """Return whether `tolist` gives numbers of this type."""
    dtype = site.tensor.dtype
    return site.type == ("bool" if dtype == "bool" else "int" if "int" in dtype else "float")


def _comprehension(file: File, site: NumberRead) -> Draft | None:
    """Return the draft for `[v.item() for v in t]`."""
    comprehension = file.parents[site.node]
    code = matched("[$number for $v in $t] | ($number for $v in $t)", comprehension)
    if not code or code.number is not site.node or not _is_name(code.v) or not _is_name(site.of, code.v.id):
        return None
    tensor = file.device_tensor(code.t)
    if tensor is None or tensor.dims != 1:
        return None
    alone = isinstance(comprehension, ast.GeneratorExp) and file.text.code(comprehension).startswith("(")
    draft = Draft(file.text)
    draft.replace(comprehension, template("($t.tolist())" if alone else "$t.tolist()", t=file.text.code(code.t)))
    return draft


def _is_name(node: ast.expr, name: str = "") -> bool:
    return isinstance(node, ast.Name) and name in ("", node.id)


def _in_loop(file: File, site: NumberRead) -> Draft | None:
    """Return the draft for `t[i].item()` in a loop over i."""
    loops, item = file.loops_of(site.node), matched("$t[$i]", site.of)
    loop = loops[-1] if loops else None
    if not item or not isinstance(loop, ast.For) or not expressions.is_path(item.t):
        return None
    tensor, of_loop = file.device_tensor(item.t), _is_name(item.i) and item.i.id in expressions.targets(loop)
    if tensor is None or tensor.dims != 1 or file.types(item.i) != {"int"} or not of_loop:
        return None
    if not file.is_steady(item.t, loop) or not memory.stays(file, item.t, loop):
        return None
    draft, source = Draft(file.text), file.text.code(item.t)
    fresh = file.fresh(f"{source.rpartition('.')[2].partition('[')[0]}_values")
    draft.put_before(loop, f"{fresh} = {source}.tolist()")
    draft.replace(site.node, f"{fresh}[{file.text.code(item.i)}]")
    return draft


_TAKES_ALL = frozenset("sum max min sorted list tuple".split())
_Comprehension = ast.ListComp | ast.GeneratorExp | ast.DictComp
_PLAIN = frozenset("list tuple dict range enumerate zip torch.Tensor".split())


@rewrite
def gathered_reads(file: File) -> Answers:
    names: list[str] = []
    for site in sites(file):
        comprehension = file.parents[site.node]
        if not isinstance(comprehension, _Comprehension) or _element(comprehension) is not site.node:
            continue
        runs = _runs(file, comprehension)
        if runs and site.count >= 2 * runs and _can_be_stacked(file, site, comprehension):
            names.append(_collected(file, site, comprehension) or file.fresh("values", *names))
            yield _at_once(file, site, comprehension, runs, names[-1])


def _element(comprehension: _Comprehension) -> ast.expr:
    return comprehension.value if isinstance(comprehension, ast.DictComp) else comprehension.elt


def _runs(file: File, comprehension: _Comprehension) -> int:
    """Return how often a comprehension ran whose numbers all are used; 0 for others."""
    if isinstance(comprehension, ast.GeneratorExp):
        call = matched("$function($values)", file.parents[comprehension])
        if not call or not isinstance(call.function, ast.Name) or call.function.id not in _TAKES_ALL:
            return 0
    return file.seen(comprehension.generators[0].iter).count


def _can_be_stacked(file: File, site: NumberRead, comprehension: _Comprehension) -> bool:
    inner = list(ast.walk(comprehension))
    alone = not any(isinstance(n, ast.NamedExpr | ast.Await | ast.Yield) for n in inner)
    by_type = any(isinstance(n, ast.Attribute) and n.attr == "is_tensor" for n in inner)  # and of any dtype
    asynchronous = any(generator.is_async for generator in comprehension.generators)
    in_class = isinstance(file.parents[file.statement_of(comprehension)], ast.ClassDef)
    plain = alone and not by_type and not asynchronous and not in_class
    return plain and is_read_as_it_is(site) and stands_first(file, comprehension)


def _at_once(file: File, site: NumberRead, comprehension: _Comprehension, runs: int, name: str) -> Proposal:
    draft = Draft(file.text)
    has_graph = any(tensor.grad for tensor in file.seen(site.of).tensors)
    detach = ".detach()" if site.detached or has_graph else ""
    clone = "" if _is_unchanged(file, site, comprehension) else ".clone()"
    text = file.text.text
    begin, end = file.text.span(comprehension)  # the parentheses of `sum(…)` belong to the generator
    first, last = file.text.span(site.node)

    if not _collected(file, site, comprehension):
        inner = f"$before$x{detach}{clone}$behind"
        code = f"$name = {{{inner}}}" if isinstance(comprehension, ast.DictComp) else f"$name = [{inner}]"
        parts = {"before": text[begin + 1 : first], "behind": text[last : end - 1]}
        draft.put_before(file.statement_of(comprehension), template(code, name=name, x=site.of, **parts))
    draft.replace(comprehension, _numbers(file, comprehension, name))
    waits = file.own_waits(site.node) - runs
    return Proposal(node=site.node, draft=draft, change="copy all numbers at once", waits=waits)


def _collected(file: File, site: NumberRead, comprehension: _Comprehension) -> str:
    """Return the name of a list or dictionary whose numbers a comprehension reads as they are; empty for others."""
    generator = comprehension.generators[0]
    if len(comprehension.generators) > 1 or generator.ifs or not isinstance(site.of, ast.Name):
        return ""
    code, of, names, types = file.text.code, generator.iter, [generator.target], {"list", "tuple"}
    element = [site.of.id]
    if isinstance(comprehension, ast.DictComp):
        items, pair = matched("$of.items()", of), matched("$key, $value", generator.target)
        if not items or not pair:
            return ""
        of, names, types = items.of, [pair.key, pair.value], {"dict"}
        element.insert(0, code(comprehension.key))
    return of.id if isinstance(of, ast.Name) and [*map(code, names)] == element and file.types(of) <= types else ""


def _numbers(file: File, comprehension: _Comprehension, name: str) -> str:
    """Return the source of the numbers of what has a name; where it is empty, of nothing."""
    if isinstance(comprehension, ast.DictComp):
        source = f"dict(zip({name}, torch.stack([*{name}.values()]).tolist())) if {name} else {{}}"
    else:
        source = f"torch.stack({name}).tolist() if {name} else []"
    outer = file.parents[comprehension]
    alone = isinstance(outer, ast.Assign | ast.AugAssign | ast.Return) or matched("$function($values)", outer)
    # a generator's parentheses are those of its call
    return source if alone and not isinstance(comprehension, ast.GeneratorExp) else f"({source})"


def _is_unchanged(file: File, site: NumberRead, comprehension: _Comprehension) -> bool:
    """Return whether the next elements write to no memory of those before."""
    if memory.is_new(file, site.of):
        return True
    iterates = all(file.types(g.iter) and file.types(g.iter) <= _PLAIN for g in comprehension.generators)
    return iterates and expressions.is_pure(file, site.of)
