"""Tensors that a program makes on the host and sends, although the device can make them itself."""

from __future__ import annotations

import ast

from syncscan.facts.code_pattern import matched
from syncscan.fixing.arguments import with_argument
from syncscan.fixing.edits import Template
from syncscan.fixing.program_file import File

_MAKERS = frozenset("zeros ones full eye arange".split())
"""Functions of torch whose values are the same on each device; a range's only where they are integers."""


def made_there(file: File, call: ast.Call) -> Template | None:
    """Return `torch.zeros(3, device=device)` for `torch.zeros(3).to(device)`; None where the device can't make it."""
    sent = matched("$maker.cuda() | $maker.to($device)", call)
    made = matched("torch.$function(...)", sent.maker) if sent else None
    if not sent or not made or made.function not in _MAKERS or any(k.arg != "dtype" for k in sent.maker.keywords):
        return None
    if made.function == "arange" and not all(t.dtype.startswith("int") for t in file.tensors(sent.maker)):
        return None
    device = getattr(sent, "device", None)
    if device is not None and not file.types(device) <= {"str", "torch.device"}:
        return None
    words = '"cuda"' if device is None else file.text.code(device)
    return lambda render: with_argument(file.text, call, f"device={words}")(lambda _: render(sent.maker))
