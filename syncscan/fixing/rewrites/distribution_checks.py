"""Turns off the argument checks of distributions, which wait for their result.

It adds `validate_args=False` to the call that creates the distribution. An invalid argument then raises later, or
never, so this is unsafe.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing import makers
from syncscan.fixing.arguments import with_argument
from syncscan.fixing.edits import Draft
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety
from syncscan.source.code_pattern import called

ID = "distribution-checks"
TITLE = "A distribution checks its arguments"
RULES = ("distribution-args",)
SAFETY = Safety.UNSAFE
BEFORE = "from torch.distributions import Normal\nresult = Normal(x, 1.0).log_prob(x)"
AFTER = "from torch.distributions import Normal\nresult = Normal(x, 1.0, validate_args=False).log_prob(x)"
FEWEST = 3
WHY = "an invalid argument raises later, or never"


def find(file: File) -> Iterator[Proposal | Left]:
    for node in file.nodes:
        if isinstance(node, ast.Call) and file.seen(node).count >= FEWEST and (waits := file.own_waits(node)):
            types = file.types(node)
            makes = bool(types) and all(name.startswith("torch.distributions.") for name in types)
            if makes and makers.takes(node, "validate_args") and called(node)[:1].isupper():
                draft = Draft(file.text)
                draft.replace(node, with_argument(file.text, node, "validate_args=False"))
                change = "turn off the argument checks with validate_args=False"
                yield Proposal(node=node, draft=draft, change=change, waits=waits, why=WHY)
