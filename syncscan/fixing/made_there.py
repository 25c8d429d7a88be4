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
    sent = matched("$call.cuda() | $call.to($device)", call)
    maker = matched("torch.$function(...)", sent.call) if sent else None
    if not sent or not maker or maker.function not in _MAKERS or any(k.arg != "dtype" for k in sent.call.keywords):
        return None
    if maker.function == "arange" and not all(t.dtype.startswith("int") for t in file.tensors(sent.call)):
        return None
    device = getattr(sent, "device", None)
    if device is not None and not file.types(device) <= {"str", "torch.device"}:
        return None
    words = '"cuda"' if device is None else file.text.code(device)
    return lambda render: with_argument(file.text, call, f"device={words}")(lambda _: render(sent.call))
