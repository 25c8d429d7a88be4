"""Tensors that a program makes on the host and sends, although the device can make them itself."""

from __future__ import annotations

import ast

from syncscan.fixing import questions
from syncscan.fixing.arguments import with_argument
from syncscan.fixing.edits import Template
from syncscan.fixing.program_file import File

_MAKERS = frozenset("zeros ones full eye arange".split())
"""Functions of torch whose values are the same on each device; a range's only where they are integers."""


def made_there(file: File, call: ast.Call) -> Template | None:
    """Return `torch.zeros(3, device=device)` for `torch.zeros(3).to(device)`; None where the device can't make it."""
    maker = call.func.value if isinstance(call.func, ast.Attribute) else None
    function = maker.func if isinstance(maker, ast.Call) else None
    device = _destination(file, call)
    if not device or not isinstance(maker, ast.Call) or not isinstance(function, ast.Attribute):
        return None
    plain = all(keyword.arg == "dtype" for keyword in maker.keywords) and function.attr in _MAKERS
    if not plain or not questions.is_torch(function.value):
        return None
    if function.attr == "arange" and not all(t.dtype.startswith("int") for t in file.tensors(maker)):
        return None
    return lambda render: with_argument(file.text, call, f"device={device}")(lambda _: render(maker))


def _destination(file: File, call: ast.Call) -> str:
    """Return the source of the device that a tensor is sent to; empty where something else is asked for too."""
    if not isinstance(call.func, ast.Attribute) or call.keywords:
        return ""
    if call.func.attr == "cuda":
        return "" if call.args else '"cuda"'
    to_device = call.func.attr == "to" and len(call.args) == 1 and file.types(call.args[0]) <= {"str", "torch.device"}
    return file.text.code(call.args[0]) if to_device else ""
