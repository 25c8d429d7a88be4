"""Numbers that are read near each other, of one tensor or in one comprehension: read at once, or once."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence

from syncscan.fixing import expressions
from syncscan.fixing.edits import Draft, template
from syncscan.fixing.flow import callees, tensor_writes
from syncscan.fixing.flow.number_reads import (
    NumberRead,
    detached,
    is_read_as_it_is,
    may_go_first,
    name_of_number,
    on_the_device,
    sites,
    stacked,
    stands_first,
)
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import FEWEST, Answers, Proposal, rewrite
from syncscan.source.code_pattern import key, matched

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


@rewrite
def statement_reads(file: File) -> Answers:
    if expressions.names_several_devices(file):
        return
    groups: list[list[NumberRead]] = []
    for site in sorted(sites(file), key=lambda site: file.text.span(site.node)):
        often = site.count >= FEWEST and is_read_as_it_is(site)
        if often and may_go_first(file, site) and on_the_device(file, site.of):
            group = next((group for group in groups if _may_join(file, group, site)), None)
            if group is None:
                groups.append([site])
            else:
                group.append(site)
    for reads in groups:
        if len({file.text.code(site.of) for site in reads}) > 1:
            yield _read_at_once(file, reads)


def _may_join(file: File, reads: Sequence[NumberRead], site: NumberRead) -> bool:
    """Return whether a number may be read with others: all in one statement, or each in an assignment of its own."""
    last, statement = file.statement_of(reads[-1].node), file.statement_of(site.node)
    if _kind(site) != _kind(reads[0]) or site.count != reads[0].count:
        return False
    if statement is last:
        return True
    names = [_name_given(file, read) for read in (*reads, site)]
    follows = file.above(statement)[-1:] == [last] and all(names)
    return follows and not {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)} & set(names[:-1])


def _kind(site: NumberRead) -> str:
    """Return which reads may be stacked: numbers of the same dtype, and floating ones."""
    return "float" if site.type == "float" else site.tensor.dtype


def _name_given(file: File, site: NumberRead) -> str:
    """Return the name to which a statement with a line of its own only assigns a read; empty for others."""
    statement = file.statement_of(site.node)
    assign = matched("$name = $number", statement)
    if not assign or assign.number is not site.node or not isinstance(assign.name, ast.Name):
        return ""
    bare = file.text.lines[statement.lineno - 1].strip() == file.text.code(statement)
    guarded = any(isinstance(n, ast.Try) for n in file.ancestors(statement))
    return "" if guarded or not bare or _steers(file, assign.name) else assign.name.id


def _read_at_once(file: File, reads: Sequence[NumberRead]) -> Proposal:
    draft, statement = Draft(file.text), file.statement_of(reads[0].node)
    sources = [file.text.code(site.of) for site in reads]
    different = [site for number, site in enumerate(reads) if sources.index(sources[number]) == number]
    given, names = [_name_given(file, site) for site in reads], dict[str, str]()
    if all(given):
        draft.replace(statement, stacked(file, statement, given, reads))
        for site in reads[1:]:
            draft.remove(file.statement_of(site.node))
    elif isinstance(statement, ast.Assign) and getattr(statement.value, "elts", None) == [s.node for s in different]:
        draft.replace(statement.value, stacked(file, statement, [], different))
    else:
        for site in different:
            names[file.text.code(site.of)] = name_of_number(file, site, *names.values())
        draft.put_before(statement, stacked(file, statement, [*names.values()], different, in_front=True))
        for site, source in zip(reads, sources, strict=True):
            draft.replace(site.node, names[source])
    waits = sum(file.own_waits(site.node) for site in reads) - (0 if names else reads[0].count)
    change, group = "copy the numbers of these statements at once", tuple(site.node for site in reads[1:])
    if len({file.statement_of(site.node) for site in reads}) == 1:
        change = "copy the numbers of this statement at once"
    return Proposal(node=reads[0].node, draft=draft, change=change, waits=waits, group=group, shared=True)


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


@rewrite
def repeated_read(file: File) -> Answers:
    alike: dict[tuple[ast.AST, str, str], list[NumberRead]] = defaultdict(list)
    for site in sites(file):
        if site.count >= FEWEST and site.equal is None and _name(site) is not None:
            alike[file.function_of(site.node), file.text.code(site.of), site.type].append(site)
    for reads in alike.values():
        reads.sort(key=lambda site: file.text.span(site.node))
        while len(reads) > 1:
            same = [reads[0], *(site for site in reads[1:] if _is_same(file, reads[0], site))]
            if len(same) > 1:
                yield _read_once(file, same)
            reads = [site for site in reads[1:] if site not in same]


def _name(site: NumberRead) -> ast.Name | None:
    """Return the name whose tensor is read: of `loss`, `loss.data`."""
    data = matched("$x.data", site.of)
    of = data.x if data else site.of
    return of if isinstance(of, ast.Name) else None


def _is_same(file: File, first: NumberRead, other: NumberRead) -> bool:
    """Return whether a later read certainly gives the number of the first."""
    anchor, name = file.statement_of(first.node), _name(first)
    between = [anchor, *file.below(anchor)]
    last = next((n for n in between if file.within(other.node, n)), None)
    if name is None or last is None or not may_go_first(file, first):
        return False
    scope = file.scope_of(first.node)
    if file.scope_of(other.node) is not scope or file.home_of(name) is not scope or file.seen(name).version:
        return False
    between = between[: between.index(last) + 1]
    nodes = [n for statement in between for n in ast.walk(statement)]
    rebound = any(store in nodes for store in file.stores(name))
    function = file.function_of(first.node)
    timed = len(between) > 1 and any(file.function_of(clock) is function for clock in callees.clocks(file))
    return not (rebound or timed or tensor_writes.may_change(file, name, nodes, anchor.lineno))


def _read_once(file: File, reads: Sequence[NumberRead]) -> Proposal:
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


@rewrite
def element_loop(file: File) -> Answers:
    for site in sites(file):
        draft = (_comprehension(file, site) or _in_loop(file, site)) if is_read_as_it_is(site) else None
        if draft is not None:
            change = "copy all elements at once with tolist()"
            yield Proposal(node=site.node, draft=draft, change=change, waits=file.own_waits(site.node))


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
    if not item or not isinstance(loop, ast.For) or not key(item.t):
        return None
    tensor, of_loop = file.device_tensor(item.t), _is_name(item.i) and item.i.id in expressions.targets(loop)
    if tensor is None or tensor.dims != 1 or file.types(item.i) != {"int"} or not of_loop:
        return None
    if not file.is_steady(item.t, loop) or not tensor_writes.stays(file, item.t, loop):
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
    clone = "" if _is_unchanged(file, site, comprehension) else ".clone()"
    text = file.text.text
    begin, end = file.text.span(comprehension)  # the parentheses of `sum(…)` belong to the generator
    first, last = file.text.span(site.node)

    if not _collected(file, site, comprehension):
        inner = f"$before$x{detached(file, site)}{clone}$behind"
        code = f"$name = {{{inner}}}" if isinstance(comprehension, ast.DictComp) else f"$name = [{inner}]"
        parts = {"before": text[begin + 1 : first], "behind": text[last : end - 1]}
        draft.put_before(file.statement_of(comprehension), template(code, name=name, x=site.of, **parts))
    draft.replace(comprehension, _numbers(file, comprehension, name))
    waits = file.own_waits(site.node) - runs
    return Proposal(node=site.node, draft=draft, change="copy all numbers at once", waits=waits)


def _collected(file: File, site: NumberRead, comprehension: _Comprehension) -> str:
    """Return the name of a list whose numbers a comprehension reads as they are; empty for others."""
    alone = matched("[$x.$read() for $x in $list] | ($x.$read() for $x in $list)", comprehension)
    listed = alone and alone.x is site.of and file.types(alone.list) <= {"list", "tuple"}
    return alone.list.id if alone and listed and isinstance(alone.list, ast.Name) else ""


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
    if tensor_writes.is_new(file, site.of):
        return True
    iterates = all(file.types(g.iter) and file.types(g.iter) <= _PLAIN for g in comprehension.generators)
    return iterates and expressions.is_pure(file, site.of)
