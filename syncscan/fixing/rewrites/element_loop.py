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
from syncscan.fixing.program_file import File, Loop
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "element-loop"
TITLE = "Elements are read one by one"
RULES = ("item", "tolist")
SAFETY = Safety.SAFE
BEFORE = "result = [v.item() for v in x[0]]"
AFTER = "result = x[0].tolist()"


def find(file: File) -> Iterator[Proposal | Left]:
    """Yield what reads a tensor's elements one at a time."""
    for site in sites(file):
        draft = _comprehension(file, site) or _loop(file, site)
        if draft is not None:
            yield Proposal(
                node=site.node,
                draft=draft,
                change="copy all elements at once with tolist()",
                waits=file.own_waits(site.node),
            )


def _comprehension(file: File, site: NumberRead) -> Draft | None:
    parent = file.parents[site.node]
    if not isinstance(parent, ast.GeneratorExp | ast.ListComp) or len(parent.generators) != 1:
        return None
    generator = parent.generators[0]
    name = generator.target
    plain = isinstance(name, ast.Name) and isinstance(site.of, ast.Name) and site.of.id == name.id
    tensor = file.device_tensor(generator.iter)
    if not plain or generator.ifs or parent.elt is not site.node or tensor is None or not _keeps_type(site):
        return None
    draft = Draft(file.text)
    if tensor.dims == 1:
        source = file.text.code(generator.iter)
        whole = source if questions.is_simple(generator.iter) else f"({source})"
        alone = isinstance(parent, ast.GeneratorExp) and file.text.code(parent).startswith("(")
        draft.replace(parent, f"({whole}.tolist())" if alone else f"{whole}.tolist()")
        return draft
    return None


def _keeps_type(site: NumberRead) -> bool:
    """Return whether `tolist` gives numbers of this type."""
    dtype = site.tensor.dtype
    kind = "bool" if dtype == "bool" else "int" if "int" in dtype else "float"
    return kind == site.type


def _loop(file: File, site: NumberRead) -> Draft | None:
    """Return the draft for `t[i].item()` in a loop over i."""
    loops = file.loops_of(site.node)
    of = site.of
    if not loops or not isinstance(of, ast.Subscript) or not questions.is_path(of.value) or not _keeps_type(site):
        return None
    tensor = file.device_tensor(of.value)
    loop = loops[-1]
    if tensor is None or tensor.dims != 1 or file.types(of.slice) != {"int"} or not _goes_over(file, loop, of.slice):
        return None
    if not file.is_steady(of.value, loop) or not memory.stays(file, of.value, loop):
        return None
    draft = Draft(file.text)
    fresh = file.fresh(f"{file.text.code(of.value).rpartition('.')[2].partition('[')[0]}_values")
    draft.put_before(loop, f"{fresh} = {file.text.code(of.value)}.tolist()")
    draft.replace(site.node, f"{fresh}[{file.text.code(of.slice)}]")
    return draft


def _goes_over(file: File, loop: Loop, index: ast.expr) -> bool:
    """Return whether an index is the loop's own number."""
    if not isinstance(loop, ast.For) or not isinstance(index, ast.Name):
        return False
    return any(isinstance(n, ast.Name) and n.id == index.id for n in ast.walk(loop.target))
