"""What a line called goes in, the rule that knows such a wait comes out, with what to write instead."""

from __future__ import annotations

from syncscan.guarding.seen import GuardedSync

_RULES = {
    "float": "item",
    "int": "item",
    "complex": "item",
    "if": "tensor-bool",
    "bool": "tensor-bool",
    "[]": "boolean-index",
    "[]=": "boolean-assign",
    "in": "contains",
    "format": "print-tensor",
    "print": "print-tensor",
    "to": "to-device",
    "cuda": "to-device",
    "tensor": "tensor-constructor",
    "as_tensor": "tensor-constructor",
    "synchronize": "explicit-sync",
    "clip_grad_norm_": "clip-grad",
    "unique_consecutive": "unique",
    "argwhere": "nonzero",
}
"""What a line calls → the rule, where the rule isn't called the same."""
_KINDS = {"device": "explicit-sync", "event": "explicit-sync", "copy": "pageable-readback"}


def rule_of(sync: GuardedSync) -> str:
    """The rule of a sync that a guard saw, by what its line called; "" where that doesn't tell.

    A trace tells more: a guard sees neither ops nor copies.
    """
    from syncscan import api

    if sync.kind in _KINDS:
        return _KINDS[sync.kind]
    rule = _RULES.get(sync.called, sync.called.replace("_", "-"))
    return rule if rule in {document.id for document in api.rules()} else ""


def instead(rule: str) -> str:
    """What a rule's documentation says to write instead: its sentence, and the code; "" for no rule."""
    from syncscan import api

    document = next((document for document in api.rules() if document.id == rule), None)
    if document is None:
        return ""
    code = document.code("Use instead").rstrip()
    head = f"{document.summary} Instead (syncscan explain {rule}):"
    return "\n".join([head, *("    " + line for line in code.splitlines())])
