"""Former ids of rules: they still select and explain the rule, with a note."""

from __future__ import annotations

RENAMED = {"tokenise-on-step": "tokenize-on-step"}
"""Current ids by former ones."""


def current_id(name: str) -> str:
    """Return the current id of a rule for its former one; any other name as it is."""
    return RENAMED.get(name, name)


def deprecation(name: str) -> str:
    """Return a sentence that names the current id of a rule; empty unless the name is a former one."""
    return f"{name} is deprecated: use {RENAMED[name]}." if name in RENAMED else ""
