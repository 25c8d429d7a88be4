"""Return the captured script and its arguments as they were typed, so that a report's next command can be pasted.

Secrets among them are hidden: traces are shared.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

HIDDEN = "***"
MOST_CHARACTERS = 1_000
"""A longer command is no use on a line."""
_SECRET_OPTION = re.compile(
    r"(?i)^-*\+*(?:[\w.-]*[._-])?(token|secret|password|passwd|pwd|key|apikey|auth|credentials?)$"
)
"""Name of an option, or of a setting such as `wandb.api_key=…`, whose value nobody else may read."""
_SECRET = re.compile(r"://[^/]*@|://.*\?|^(hf_|sk-|ghp_|github_pat_|glpat-|xox[a-z]-|AKIA)[\w-]{12,}$")
"""An address with a user or a query in it, or what services give out as a token."""


def program_words() -> tuple[str, ...]:
    """Return the script of this process and its arguments; empty for anything but a script, and for one rank of many.

    A module, or a rank's script, is run by a command of which this process knows nothing.
    """
    script, *arguments = sys.argv or [""]
    is_module = getattr(sys.modules.get("__main__"), "__spec__", None) is not None
    if is_module or not script.endswith(".py") or not os.path.isfile(script):  # noqa: PTH113
        return ()
    if int(os.environ.get("WORLD_SIZE") or 1) > 1:
        return ()
    words = (script, *without_secrets(arguments))
    return words if sum(map(len, words)) <= MOST_CHARACTERS else ()


def without_secrets(arguments: Sequence[str]) -> list[str]:
    """Return arguments with the values of options such as `--hf-token` hidden, and addresses with a user in them."""
    shown: list[str] = []
    for before, word in zip(["", *arguments], arguments, strict=False):
        name, equals, value = word.partition("=")
        if before.startswith("-") and _SECRET_OPTION.fullmatch(before):
            shown.append(HIDDEN)
        elif equals and _SECRET_OPTION.fullmatch(name):
            shown.append(f"{name}={HIDDEN}")
        else:
            shown.append(HIDDEN if _SECRET.search(value or word) else word)
    return shown
