"""Questions about expressions that several rewrites ask, and calls with one argument more."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

from syncscan.fixing.edits import Render, Template
from syncscan.fixing.flow import callees, tensor_writes
from syncscan.fixing.messages import Tensor
from syncscan.fixing.program_file import File
from syncscan.source.code_pattern import filled, usual_name
from syncscan.source.text import Text
from syncscan.source.tree import calls_in

SIMPLE = ast.Expr | ast.Return | ast.Assign | ast.AnnAssign | ast.AugAssign
"""Statements that evaluate their expressions once."""
SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
_SIDE_EFFECTS = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)


def names_several_devices(file: File) -> bool:
    """Return whether a file names more than one GPU, so that its tensors may lie on different ones."""
    return len(set(re.findall(r"[\"']cuda:\d+[\"']", file.text.text))) > 1


def is_pure(file: File, node: ast.AST) -> bool:
    """Return whether an expression has no side effects: it only calls methods of tensors and torch."""
    for inner in ast.walk(node):
        if isinstance(inner, _SIDE_EFFECTS) or (isinstance(inner, ast.Call) and not _is_pure_call(file, inner)):
            return False
    return True


def _is_pure_call(file: File, call: ast.Call) -> bool:
    function = call.func
    if isinstance(function, ast.Name):
        return function.id in ("len", "int", "float", "abs", "range") and hasattr(builtins, function.id)
    if not isinstance(function, ast.Attribute) or function.attr not in callees.PURE:
        return False
    return usual_name(function.value) == "torch" or bool(file.tensors(function.value))


def names_in(node: ast.AST) -> Iterator[ast.Name]:
    """Yield the names that an expression reads."""
    yield from (n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def targets(loop: ast.For) -> set[str]:
    """Return the names that a loop gives its values to."""
    return {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}


def mask_of(file: File, node: ast.expr) -> Tensor | None:
    """Return the kind of tensor of an index that is a mask on the device."""
    if isinstance(node, ast.Tuple | ast.Slice | ast.Constant):
        return None
    tensor = file.device_tensor(node)
    return tensor if tensor is not None and tensor.dtype == "bool" and tensor.dims else None


def with_dims(source: str, more: int) -> str:
    """Return the source of a mask that is to be broadcast over further dimensions behind its own."""
    return filled(f"$mask[..., {', '.join(['None'] * more)}]", mask=source) if more else source


def begin_with(shapes: list[list[int]], masks: list[list[int]]) -> bool:
    """Return whether each of some shapes starts with that of a mask."""
    return bool(shapes and masks) and all(any(shape[: len(mask)] == mask for mask in masks) for shape in shapes)


def with_guard(file: File, statement: ast.stmt) -> ast.stmt:
    """Return a statement, or the `if` that holds it alone and only asks whether there is a GPU."""
    parent = file.parents[statement]
    alone = isinstance(parent, ast.If) and parent.body == [statement] and not parent.orelse
    return parent if alone and asks_for_gpu(parent.test) else statement  # type: ignore[attr-defined, return-value]


def asks_for_gpu(test: ast.expr) -> bool:
    """Return whether a condition calls nothing but `torch.cuda.is_available()`."""
    return all(ast.unparse(call.func) == "torch.cuda.is_available" for call in calls_in(test))


def same_source(file: File, one: ast.AST, other: ast.AST) -> bool:
    return ast.dump(one) == ast.dump(other) or file.text.code(one) == file.text.code(other)


def stands_alone(file: File, statement: ast.stmt) -> bool:
    """Return whether nothing but comments shares the lines of a statement."""
    return file.text.begins_its_line(statement) and file.text.ends_its_line(statement)


_LITERAL = ast.Constant | ast.List | ast.Tuple | ast.UnaryOp | ast.BinOp
_PARTS = ast.operator | ast.unaryop | ast.expr_context


def constant(file: File, node: ast.expr) -> bool:
    """Return whether an expression has the same value whenever it runs: literals, and the module's names for such."""
    parts = (n for n in ast.walk(node) if not isinstance(n, _LITERAL | _PARTS))
    return all(isinstance(n, ast.Name) and is_constant_name(file, n) for n in parts)


def is_constant_name(file: File, name: ast.Name) -> bool:
    """Return whether a module's name is given a literal once, and never changed."""
    value = file.only_value(name)
    if file.home_of(name) is not file.tree or value is None or not constant(file, value):
        return False
    if file.statement_of(value) not in file.tree.body:
        return False
    holds_list = any(isinstance(n, ast.List) for n in ast.walk(value))
    return not holds_list or not tensor_writes.spread_of(file, name, file.nodes).may_be_written


def only(file: File, *types: str) -> ast.Call | None:
    """Return the file's only call that makes an object of a type that begins so, where it ran once."""
    calls = [n for n in file.nodes if isinstance(n, ast.Call) and any(t.startswith(types) for t in file.types(n))]
    return calls[0] if len(calls) == 1 and file.seen(calls[0]).count == 1 else None


def takes(call: ast.Call, *names: str) -> bool:
    """Return whether a call can be given arguments of these names: it has none of them, and no `*` or `**`."""
    given = {keyword.arg for keyword in call.keywords}
    return not any(isinstance(a, ast.Starred) for a in call.args) and not given & {None, *names}


FARTHEST = 50
"""Column up to which a new line is aligned with the first argument."""


def with_argument(text: Text, call: ast.Call, words: str, *, alone: bool = False) -> Template:
    """Return a call's source with one argument more, and its lines and comments as they are.

    The argument gets a line of its own where the last one has one, or where the line would be longer than the file's.
    With `alone`, what stands beside the call on its lines goes elsewhere.
    """

    def source(render: Render) -> str:
        code = render(call)
        spans = _arguments(code)
        if not spans:
            return f"{code[:-1].rstrip()}{words})"
        last = spans[-1][1]
        while code[last:].lstrip().startswith(")") and code.index(")", last) < len(code) - 1:
            last = code.index(")", last) + 1  # of parentheses around the last argument
        before, after = ("", "") if alone else _beside(text, call)
        at = [len(before) + position for position in (spans[0][0], spans[-1][0], last)]
        indent = _indent(Text("", before + code + after), *at, width=text.width - len(words))
        return f"{code[:last]},{' ' if indent is None else text.line_end + indent}{words}{code[last:]}"

    return source


def _arguments(code: str) -> list[tuple[int, int]]:
    """Return the spans of a call's arguments in its source, without parentheses around them."""
    call, text = ast.parse(code, mode="eval").body, Text("", code)
    assert isinstance(call, ast.Call)
    return sorted(text.span(part) for part in (*call.args, *call.keywords))


def _beside(text: Text, call: ast.Call) -> tuple[str, str]:
    """Return what stands in front of a call on its first line, and behind it on its last."""
    begin, end = text.span(call)
    first, last = text.line_of(begin) - 1, text.line_of(end) - 1
    return text.text[text.starts[first] : begin], text.lines[last][end - text.starts[last] :]


def _indent(lines: Text, first: int, begin: int, end: int, *, width: int) -> str | None:
    """Return what stands in front of a new argument on a line of its own; None where it stays on the last one's line.

    `width` is how long that line may be without it.
    """
    row = lines.line_of(end) - 1
    if "#" in lines.lines[row][end - lines.starts[row] :]:
        return None
    in_front = [lines.text[lines.starts[lines.line_of(at) - 1] : at] for at in (first, begin)]
    if lines.line_of(begin) > 1 and not in_front[1].strip():
        return in_front[1]
    is_full = len(lines.lines[row]) + len(", ") > width
    return re.sub(r"\S", " ", in_front[0]) if is_full and len(in_front[0]) <= FARTHEST else None
