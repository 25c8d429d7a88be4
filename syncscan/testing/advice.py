"""Advice of a rule: the code to write instead."""

from __future__ import annotations


def instead(rule: str) -> str:
    """Return what a rule's documentation says to write instead: its sentence and its code; "" for no rule."""
    from syncscan import api

    document = next((document for document in api.rules() if document.id == rule), None)
    if document is None:
        return ""
    code = document.code("Use instead").rstrip()
    head = f"{document.summary} Instead (syncscan explain {rule}):"
    return "\n".join([head, *("    " + line for line in code.splitlines())])
