"""Turns off the argument checks of distributions, which wait for their result.

It adds `validate_args=False` to the call that creates the distribution. An invalid argument then raises later, or
never, so this is unsafe.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing.arguments import with_argument
from syncscan.fixing.edits import Draft
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "distribution-checks"
TITLE = "A distribution checks its arguments"
RULES = ("distribution-args",)
SAFETY = Safety.UNSAFE
BEFORE = "from torch.distributions import Normal\nresult = Normal(x, 1.0).log_prob(x)"
AFTER = "from torch.distributions import Normal\nresult = Normal(x, 1.0, validate_args=False).log_prob(x)"
FEWEST = 3
WHY = "an invalid argument raises later, or never"


def find(file: File) -> Iterator[Proposal | Left]:
    """Yield the calls that make distributions in each step."""
    for node in file.nodes:
        if isinstance(node, ast.Call) and file.seen(node).count >= FEWEST and file.own_waits(node):
            types = file.types(node)
            is_distribution = all(name.startswith("torch.distributions.") for name in types) and bool(types)
            known = any(k.arg in ("validate_args", None) for k in node.keywords)
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if is_distribution and not known and name[:1].isupper():
                yield _proposal(file, node)


def _proposal(file: File, node: ast.Call) -> Proposal:
    draft = Draft(file.text)
    draft.replace(node, with_argument(file.text, node, "validate_args=False"))
    return Proposal(
        node=node,
        draft=draft,
        change="turn off the argument checks with validate_args=False",
        waits=file.own_waits(node),
        why=WHY,
    )
