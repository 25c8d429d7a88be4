"""Proposals of rewrites, what they need to stand alone, and the waits that are left to the author."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from syncscan.fixing.edits import Clash, Draft, Edit
from syncscan.fixing.program_file import File
from syncscan.model.fix import Safety

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_LINES = 2
"""Lines that may be added for each place that no longer waits."""


FEWEST = 3
"""Runs or waits of a place in the whole run, below which nothing is to be gained."""


class Proposal(msgspec.Struct, frozen=True):
    node: ast.AST
    """The waiting expression or statement, whose lines are the fix's."""
    draft: Draft
    change: str
    """The change in a few words: `keep the value on the device and read it after the loop`."""
    waits: int
    """How many waits there were that it takes away."""
    rule: str = ""
    """The rule that knows the wait, where the dry run names no other there; by default the first of the rewrite."""
    rewrite: str = ""
    """Its id, title and safety are filled in by `Rewrite.answers`."""
    title: str = ""
    safety: Safety = Safety.SAFE
    why: str = ""
    reads: tuple[ast.AST, ...] = ()
    """Where else the number is read instead, more rarely: a line that shows it."""
    group: tuple[ast.AST, ...] = ()
    """Other nodes whose waits go with it."""
    shared: bool = False
    """Whether one wait stays, for the node and its group together."""
    setting: str = ""
    """Words of a library rule's advice: the wait is the one whose advice names them."""
    pageable: bool = False
    """Whether what it copies stays in pageable memory that is too large for the driver to stage without a wait."""

    __hash__ = object.__hash__


class Left(msgspec.Struct, frozen=True):
    """A wait that only the author can remove, and why."""

    node: ast.AST
    why: str
    setting: str = ""
    """As in `Proposal`."""

    __hash__ = object.__hash__


Answers = Iterator[Proposal | Left]


class Rewrite(msgspec.Struct, frozen=True):
    """A pattern of code that waits, and what takes the wait away, as `rewrites.toml` describes it."""

    id: str
    title: str
    rules: tuple[str, ...]
    """Rules whose waits it removes."""
    before: str
    after: str
    text: str
    """Its change and conditions, as Markdown."""
    find: Callable[[File], Answers]
    """Yields what it would change in a file, and what it knows and has to leave."""
    unsafe: bool = False

    @property
    def safety(self) -> Safety:
        return Safety.UNSAFE if self.unsafe else Safety.SAFE

    def answers(self, file: File) -> Answers:
        """Yield what it finds in a file, with its own name, title and safety."""
        for answer in self.find(file):
            if isinstance(answer, Left):
                yield answer
            else:
                rule = answer.rule or self.rules[0]
                yield replace(answer, rule=rule, rewrite=self.id, title=self.title, safety=self.safety)


@functools.cache
def described() -> dict[str, dict[str, Any]]:
    """Return the descriptions of all rewrites by their ids, in order of precedence."""
    rows: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).parent / "rewrites.toml").read_text("utf-8"))
    return rows


def rewrite(find: Callable[[File], Answers]) -> Rewrite:
    """Make a rewrite of the function that finds its pattern."""
    name = find.__name__.replace("_", "-")
    return Rewrite(id=name, find=find, **described()[name])


def is_too_long(proposal: Proposal) -> bool:
    """Return whether a change adds more lines than its places are worth."""
    if proposal.safety is Safety.UNSAFE:
        return False  # it was asked for
    places = 1 + len(proposal.group) - proposal.shared
    return _added(proposal) > MOST_LINES * max(1, places)


def _added(proposal: Proposal) -> int:
    text = proposal.draft.text.text
    return sum(edit.text.count("\n") - text[edit.begin : edit.end].count("\n") for edit in _edits(proposal))


def by_hand(proposal: Proposal) -> str:
    """Return the reason for leaving a change that is too long, with the lines that it would add."""
    lines = [line.strip() for edit in _edits(proposal) if edit.begin == edit.end for line in edit.text.split("\n")]
    code = "; ".join(f"`{line}`" for line in lines if line)
    return f"it would take {_added(proposal)} more lines: to {proposal.change}, add {code}"


def _edits(proposal: Proposal) -> list[Edit]:
    try:
        return proposal.draft.edits()
    except Clash:
        return []


def import_torch(file: File, draft: Draft) -> None:
    """Have a draft import torch, if it needs that."""
    words = "".join(edit.text for edit in draft.edits())
    imports = [n for n in file.nodes if isinstance(n, ast.Import)]
    names = {(a.asname or a.name).partition(".")[0] for n in imports for a in n.names}
    if "torch." not in words or "torch" in names:
        return
    body = [n for n in file.tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    body = [n for n in body if not (isinstance(n, ast.ImportFrom) and n.module == "__future__")]
    if body:
        draft.put_before(body[0], "import torch")


def with_torch(file: File, draft: Draft) -> Draft:
    """Return a draft that stands on its own: with the import that it needs."""
    alone = draft.copy()
    import_torch(file, alone)
    return alone
