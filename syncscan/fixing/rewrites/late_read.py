"""Shows a number in a progress bar one step late: `bar.set_postfix(loss=loss.item())`.

The number is copied into pinned memory without a wait, and shown in the next step, if an event that was recorded after
the copy says that it is there. The bar lags by a step, the last number isn't shown, and the program needs a GPU; so
this is unsafe. That nothing reads the memory too early is checked by the dry run, which finds such races. Pull requests
of 2026 do the same: Nerogar/OneTrainer#1608 (the loss), sgl-project/sglang#29075.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing import questions
from syncscan.fixing.edits import Draft, Render
from syncscan.fixing.flow.moved_reads import stands_first
from syncscan.fixing.flow.number_reads import NumberRead, is_read_as_it_is, primary, sites
from syncscan.fixing.program_file import File, Loop
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety
from syncscan.source.code_pattern import matched

ID = "late-read"
TITLE = "A progress bar shows a number in every step"
RULES = ("item", "log-scalar")
SAFETY = Safety.UNSAFE
BEFORE = "for loss in losses:\n    bar.set_postfix(loss=loss.item())"
AFTER = (
    "late = None\nfor loss in losses:\n    if late is not None and late[1].query():\n"
    "        bar.set_postfix(loss=late[0].item())\n"
    '    late = loss.detach().to("cpu", non_blocking=True), torch.cuda.Event()\n    late[1].record()'
)
FEWEST = 3
READY = "{late} is not None and {late}[1].query()"
"""The condition under which the copy of the step before may be read."""
WHY = "the bar lags by one step, and the program needs a GPU"
_BARS = frozenset("set_postfix set_postfix_str set_description set_description_str".split())


def find(file: File) -> Iterator[Proposal | Left]:
    reads = sites(file)
    for site in reads:
        statement = file.statement_of(site.node)
        loops = file.loops_of(statement)
        alone = [other for other in reads if file.statement_of(other.node) is statement] == [site]
        if loops and alone and site.count >= FEWEST and is_read_as_it_is(site) and _is_shown(file, site, statement):
            yield _proposal(file, site, statement, loops[-1])


def _is_shown(file: File, site: NumberRead, statement: ast.stmt) -> bool:
    """Return whether a statement on a line of its own only shows the number in a progress bar."""
    call = matched("$bar.$shows(...)", statement.value) if isinstance(statement, ast.Expr) else None
    whole = statement.lineno == statement.end_lineno and questions.stands_alone(file, statement)
    shows = call is not None and call.shows in _BARS
    return shows and whole and questions.is_pure(file, site.of) and stands_first(file, site.node)


def _proposal(file: File, site: NumberRead, statement: ast.stmt, loop: Loop) -> Proposal:
    late, draft = file.fresh("late"), Draft(file.text)
    indent, end = file.text.indent(statement), file.text.line_end

    def shown(render: Render) -> str:
        return f"if {READY.format(late=late)}:{end}{indent}    {render(statement)}"

    def copied(render: Render) -> str:
        return f'{late} = {primary(site.of, render)}.detach().to("cpu", non_blocking=True), torch.cuda.Event()'

    draft.put_before(loop, f"{late} = None")
    draft.replace(statement, shown)
    draft.replace(site.node, f"{late}[0].item()")
    draft.put_behind(statement, copied, f"{late}[1].record()")
    change, waits = "show the number one step later, copied without a wait", file.own_waits(site.node)
    return Proposal(node=site.node, draft=draft, change=change, waits=waits, why=WHY, shown_late=True)
