"""Reads all elements at once: `[v.item() for v in t]` becomes `t.tolist()`.

`t` has one dimension and isn't modified in the loop. The numbers are bitwise equal.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing import questions
from syncscan.fixing.edits import Draft
from syncscan.fixing.flow import memory
from syncscan.fixing.flow.number_reads import NumberRead, sites
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety
from syncscan.source.code_pattern import matched

ID = "element-loop"
TITLE = "Elements are read one by one"
RULES = ("item", "tolist")
SAFETY = Safety.SAFE
BEFORE = "result = [v.item() for v in x[0]]"
AFTER = "result = x[0].tolist()"


def find(file: File) -> Iterator[Proposal | Left]:
    for site in sites(file):
        draft = (_comprehension(file, site) or _loop(file, site)) if _keeps_type(site) else None
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
    source = file.text.code(code.t)
    numbers = f"{source if questions.is_simple(code.t) else f'({source})'}.tolist()"
    alone = isinstance(comprehension, ast.GeneratorExp) and file.text.code(comprehension).startswith("(")
    draft = Draft(file.text)
    draft.replace(comprehension, f"({numbers})" if alone else numbers)
    return draft


def _is_name(node: ast.expr, name: str = "") -> bool:
    return isinstance(node, ast.Name) and name in ("", node.id)


def _loop(file: File, site: NumberRead) -> Draft | None:
    """Return the draft for `t[i].item()` in a loop over i."""
    loops, item = file.loops_of(site.node), matched("$t[$i]", site.of)
    loop = loops[-1] if loops else None
    if not item or not isinstance(loop, ast.For) or not questions.is_path(item.t):
        return None
    tensor, of_loop = file.device_tensor(item.t), _is_name(item.i) and item.i.id in questions.targets(loop)
    if tensor is None or tensor.dims != 1 or file.types(item.i) != {"int"} or not of_loop:
        return None
    if not file.is_steady(item.t, loop) or not memory.stays(file, item.t, loop):
        return None
    draft, source = Draft(file.text), file.text.code(item.t)
    fresh = file.fresh(f"{source.rpartition('.')[2].partition('[')[0]}_values")
    draft.put_before(loop, f"{fresh} = {source}.tolist()")
    draft.replace(site.node, f"{fresh}[{file.text.code(item.i)}]")
    return draft
