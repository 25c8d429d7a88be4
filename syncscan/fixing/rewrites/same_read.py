"""Reads a number once before the loop if it is the same in every iteration.

Neither the loop's own lines nor the functions of the file that it calls modify the tensor, and no other function gets
it or may reach it.
"""

from __future__ import annotations

from collections.abc import Iterator

from syncscan.fixing import questions
from syncscan.fixing.edits import Draft
from syncscan.fixing.flow import memory
from syncscan.fixing.flow.number_reads import NumberRead, sites
from syncscan.fixing.program_file import File, Loop
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "same-read"
TITLE = "The same number is read in every iteration of a loop"
RULES = ("item",)
SAFETY = Safety.SAFE
BEFORE = "for block in blocks:\n    x = block(x, scale.item())"
AFTER = "scale_value = scale.item()\nfor block in blocks:\n    x = block(x, scale_value)"


def find(file: File) -> Iterator[Proposal | Left]:
    """Yield the reads that can be done once, before a loop."""
    for site in sites(file):
        loops = [loop for loop in file.loops_of(site.node) if _stays(file, site, loop)]
        if loops and file.entered(loops[0]).count < site.count:
            yield _proposal(file, site, loops[0])


def _stays(file: File, site: NumberRead, loop: Loop) -> bool:
    """Return whether what is read is the same tensor, unchanged, as long as the loop runs."""
    of = site.of
    return questions.is_path(of) and file.is_steady(of, loop) and memory.stays(file, of, loop)


def _proposal(file: File, site: NumberRead, loop: Loop) -> Proposal:
    draft = Draft(file.text)
    word = file.text.code(site.of).rpartition(".")[2].partition("[")[0]
    name = file.fresh(f"{word}_value") if not file.is_new(word) else word
    draft.put_before(loop, f"{name} = {file.text.code(site.node)}")
    draft.replace(site.node, name)
    return Proposal(
        node=site.node,
        draft=draft,
        rule="item",
        rewrite=ID,
        change="read the number once, before the loop",
        waits=file.own_waits(site.node) - file.entered(loop).count,
    )
