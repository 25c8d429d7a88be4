"""Copies a number that Lightning logs to the device with `non_blocking=True`.

Lightning makes a tensor of the default dtype on the module's device of each number that `self.log` and `self.log_dict`
get; the rewritten call gives it that tensor, copied from memory that the driver stages.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing.edits import Draft, Render
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "logged-numbers"
TITLE = "A logged number is copied to the device"
RULES = ("lightning",)
SAFETY = Safety.SAFE
BEFORE = 'self.log("tokens", tokens)'
AFTER = (
    "number = torch.tensor(tokens, dtype=torch.get_default_dtype())\n"
    'self.log("tokens", number.to(self.device, non_blocking=True))'
)
FEWEST = 3
SETTING = "self.log(name, "
"""As the rule's advice begins."""


def find(file: File) -> Iterator[Proposal | Left]:
    """Yield the calls of `self.log` and `self.log_dict` that wait to copy numbers."""
    for node in file.nodes:
        if isinstance(node, ast.Call) and file.waits_for(node, SETTING) >= FEWEST and _is_log(node):
            numbers = [value for value in _values(node) if file.is_number(value)]
            if numbers:
                yield _proposal(file, node, numbers)


def _is_log(call: ast.Call) -> bool:
    function = call.func
    named = isinstance(function, ast.Attribute) and function.attr in ("log", "log_dict")
    return named and isinstance(function.value, ast.Name)  # type: ignore[attr-defined]


def _values(call: ast.Call) -> list[ast.expr]:
    """Return what `log(name, value)` and `log_dict({name: value})` log."""
    positions = {"log": (1, "value"), "log_dict": (0, "dictionary")}
    assert isinstance(call.func, ast.Attribute)
    position, name = positions[call.func.attr]
    given = call.args[position] if len(call.args) > position else None
    value = given or next((k.value for k in call.keywords if k.arg == name), None)
    if call.func.attr == "log":
        return [value] if value is not None and not isinstance(value, ast.Starred) else []
    return list(value.values) if isinstance(value, ast.Dict) else []


def _proposal(file: File, call: ast.Call, numbers: list[ast.expr]) -> Proposal:
    assert isinstance(call.func, ast.Attribute)
    module = file.text.code(call.func.value)
    draft = Draft(file.text)
    for number in numbers:
        draft.replace(number, _copied(number, module))
    return Proposal(
        node=call,
        draft=draft,
        rule="lightning",
        rewrite=ID,
        change="copy the logged number with non_blocking=True",
        waits=file.waits_for(call, SETTING),
        setting=SETTING,
    )


def _copied(number: ast.expr, module: str):  # type: ignore[no-untyped-def]
    def source(render: Render) -> str:
        tensor = f"torch.tensor({render(number)}, dtype=torch.get_default_dtype())"
        return f"{tensor}.to({module}.device, non_blocking=True)"

    return source
