"""Tensors that a program makes on the host and sends, although the device can make them itself."""

from __future__ import annotations

import ast

from syncscan.fixing import questions
from syncscan.fixing.arguments import with_argument
from syncscan.fixing.edits import Render, Template
from syncscan.fixing.program_file import File

_MAKERS = frozenset("zeros ones full eye arange".split())
"""Functions of torch whose values are the same on each device; a range's only where they are integers."""
_SINGLE = {"0.0": "zeros(()", "1.0": "ones(()"}


def made_there(file: File, call: ast.Call) -> Template | None:
    """Return the source that makes a tensor on the device; None where the device can't make it.

    `torch.zeros(3).to(device)` becomes `torch.zeros(3, device=device)`, and `torch.tensor(0.0, device=device)` or
    `torch.tensor(0.0).to(device)` becomes `torch.zeros((), device=device)`.

    Args:
        file: the program.
        call: a call after which the tensor is on the device.
    """
    maker = call.func.value if isinstance(call.func, ast.Attribute) else None
    if maker is not None and questions.is_torch(maker):
        device = next((k.value for k in call.keywords if k.arg == "device"), None)
        return None if device is None else _made(file, call, call, file.text.code(device))
    device_words = _destination(file, call)
    if device_words and isinstance(maker, ast.Call):
        return _made(file, call, maker, device_words)
    return None


def _destination(file: File, call: ast.Call) -> str:
    """Return the source of the device that a tensor is sent to; empty where something else is asked for too."""
    if not isinstance(call.func, ast.Attribute) or call.keywords:
        return ""
    if call.func.attr == "cuda":
        return "" if call.args else '"cuda"'
    to_device = call.func.attr == "to" and len(call.args) == 1 and file.types(call.args[0]) <= {"str", "torch.device"}
    return file.text.code(call.args[0]) if to_device else ""


def _made(file: File, call: ast.Call, maker: ast.Call, device: str) -> Template | None:
    """Return the new source of a call, in which `maker` makes the tensor."""
    function = maker.func
    if not isinstance(function, ast.Attribute) or not questions.is_torch(function.value):
        return None
    keywords = {k.arg for k in maker.keywords}
    if function.attr in ("tensor", "as_tensor"):
        plain = keywords <= {"dtype", "device"} and len(maker.args) == 1 and file.is_number(maker.args[0])
        return _single(file, maker, device) if plain else None
    integers = all(t.dtype.startswith("int") for t in file.tensors(maker))
    if maker is call or not keywords <= {"dtype"} or function.attr not in _MAKERS:
        return None
    if function.attr == "arange" and not integers:
        return None
    return lambda render: with_argument(file.text, call, f"device={device}")(lambda _: render(maker))


def _single(file: File, maker: ast.Call, device: str) -> Template:
    """Return the source of one number on the device: `torch.tensor` copies it from the host."""
    torch = maker.func.value.id  # type: ignore[attr-defined]

    def source(render: Render) -> str:
        number = render(maker.args[0])
        start = _SINGLE.get(number if number[-1] != "." else f"{number}0", f"full((), {number}")
        dtype = "".join(f", dtype={render(k.value)}" for k in maker.keywords if k.arg == "dtype")
        return f"{torch}.{start}{dtype}, device={device})"

    return source
