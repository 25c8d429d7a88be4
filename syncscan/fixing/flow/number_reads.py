"""Reads of one number from the device: where they are, how they are deferred, and whether they may be moved."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import msgspec

from syncscan.fixing import expressions
from syncscan.fixing.edits import Line, Render, Template, template
from syncscan.fixing.flow import tensor_writes
from syncscan.fixing.flow.callees import reads_clock
from syncscan.fixing.messages import Tensor
from syncscan.fixing.program_file import NUMBERS, File
from syncscan.source.code_pattern import called, filled, matched
from syncscan.source.tree import calls_in, contexts_of

PEELED = frozenset({"cpu", "detach", "numpy"})
"""Methods between a tensor and the read of its number that have nothing to do any more."""
_SWITCHES = frozenset("enable_grad inference_mode no_grad requires_grad requires_grad_ set_grad_enabled".split())
"""Names by which a program turns gradients on and off."""
_BINDS = ast.Name | ast.Attribute | ast.Subscript | ast.Call
"""Expressions that need no parentheses wherever they stand."""
_INTEGERS = frozenset("uint8 int8 int16 int32 int64 bool".split())
_COUNT = "$values.numel() | $values.size(0) | len($values) | $values.shape[0]"
_ONE_VALUE: dict[tuple[type, object], bool] = {
    (ast.Gt, 1): False,
    (ast.NotEq, 1): False,
    (ast.GtE, 2): False,
    (ast.Eq, 1): True,
    (ast.LtE, 1): True,
    (ast.Lt, 2): True,
}
"""A comparison of the number of distinct values → what it says where there is one."""


class NumberRead(msgspec.Struct, frozen=True):
    """A read of one number: `x.item()`, `float(x)`, `int(x)`, `x.detach().cpu().numpy().item()`."""

    node: ast.expr
    of: ast.expr
    """The tensor that is read, without what only led to the read: `x`."""
    tensor: Tensor
    detached: bool
    """Whether the source says already that no gradient flows."""
    type: str
    """Type of the number: `float`, `int`, `bool`."""
    count: int
    """How often it ran."""
    equal: bool | None = None
    """Value of `torch.unique(x).numel() > 1` if all elements are equal; None for other reads."""

    __hash__ = object.__hash__


def sites(file: File) -> list[NumberRead]:
    """Return the reads of numbers that the host waited for, in the order of the text."""
    result = []
    for node in file.nodes:
        if isinstance(node, ast.Call | ast.Compare) and file.seen(node).waits:
            site = _site(file, node) if isinstance(node, ast.Call) else _unique(file, node)
            result += [site] if site else []
    return result


def _unique(file: File, node: ast.Compare) -> NumberRead | None:
    """Return the read in a test whether a tensor of integers has several values: `torch.unique(x).numel() > 1`."""
    count = matched(_COUNT, node.left)
    distinct = matched("$x.unique() | torch.unique($x)", count.values) if count else None
    if distinct is None or len(node.ops) != 1 or not isinstance(node.comparators[0], ast.Constant):
        return None
    of, key = distinct.x, (type(node.ops[0]), node.comparators[0].value)
    tensor, plain = file.device_tensor(of), isinstance(of, ast.Name | ast.Attribute)
    if tensor is None or tensor.dtype not in _INTEGERS - {"bool"} or key not in _ONE_VALUE or not plain:
        return None
    if file.seen(of).shortest < 1:
        return None
    return NumberRead(node, of, tensor, True, "bool", file.seen(node).count, _ONE_VALUE[key])


def _site(file: File, call: ast.Call) -> NumberRead | None:
    read, types = matched("$x.item() | $x.tolist() | float($x) | int($x) | bool($x)", call), file.types(call)
    if read is None or len(types) != 1 or not types <= NUMBERS:
        return None
    of, detached = peeled(read.x)
    tensor = file.device_tensor(of)
    seen = file.seen(of)
    if tensor is None or seen.shortest != 1 or seen.longest != 1:
        return None
    number = next(iter(types))
    if number == "bool" and tensor.dtype != "bool":
        return None
    if number == "int" and tensor.dtype not in _INTEGERS:
        return None  # it cuts, and raises for what isn't finite
    return NumberRead(call, of, tensor, detached, number, file.seen(call).count)


def peeled(node: ast.expr) -> tuple[ast.expr, bool]:
    """Return a tensor without what only leads to the read, and whether the source says that no gradient flows."""
    detached = False
    while (call := matched("$x.$method()", node)) and call.method in PEELED:
        detached = detached or call.method == "detach"
        node = call.x
    return node, detached or is_data(node)


def is_read_as_it_is(site: NumberRead) -> bool:
    """Return whether a read gives what `tolist()` gives: one number without dimensions, of the type of its dtype."""
    own = {"float": "float", "bfloat": "float", "bool": "bool"}.get(site.tensor.dtype.rstrip("0123456789"), "int")
    return site.equal is None and site.tensor.dims == 0 and site.type == own


class Deferral(msgspec.Struct):
    computed: bool = False
    """Whether something is computed of it: in double precision then, as Python does."""
    copied: bool = False
    """Whether it has to be a copy, as what it is read of may change before it is read."""
    types: frozenset[str] = frozenset()
    """Types that the number has to have besides its own: `float` for an integer."""
    cast: str = ""
    """Conversion for a tensor that takes the number; empty if the dtypes agree."""
    raw: bool = False
    """Whether a tensor takes it, so that its own type serves."""


def written(file: File, site: NumberRead, how: Deferral) -> Line:
    """Return the code of a read that is deferred: `loss.detach().double()`."""
    parent, converted = file.parents[site.node], _convert(site, how)
    if site.equal is not None:
        test = f"$x.amax() {'==' if site.equal else '!='} $x.amin()"
        return template(test if isinstance(parent, ast.Assign) else f"({test}){converted}", x=site.of)
    suffix = f"{'.squeeze()' if site.tensor.dims else ''}{detached(file, site)}{converted}"
    alone = isinstance(parent, ast.Call | ast.keyword | ast.Assign) or isinstance(site.of, _BINDS)
    return template(f"$x{suffix}" if suffix or alone else "($x)", x=site.of)


def detached(file: File, site: NumberRead) -> str:
    """Return `.detach()` where what is kept has a graph in this run, or may have one under other settings."""
    is_float = site.tensor.dtype.startswith(("float", "bfloat"))
    may_have = is_float and not _has_no_graph(site.of) and _switches_gradients(file, site.node)
    has_graph = site.detached or may_have or any(t.grad for t in file.seen(site.of).tensors)
    return ".detach()" if has_graph and not is_data(site.of) else ""


def _switches_gradients(file: File, node: ast.expr) -> bool:
    """Return whether gradients may be computed at a node in some runs and not in others."""
    around = (called(context) for outer in file.ancestors(node) for context in contexts_of(outer))
    if any(name in ("no_grad", "inference_mode") for name in around):
        return False
    words = {getattr(n, key, None) for n in file.nodes for key in ("id", "attr", "arg")}
    return not file.main or not words.isdisjoint(_SWITCHES)


def _has_no_graph(node: ast.expr) -> bool:
    """Return whether an expression is made by methods of a comparison, a gradient or what is detached."""
    while (call := matched("$x.$method(...)", node)) and call.method != "detach":
        node = call.x
    return call is not None or isinstance(node, ast.Compare) or getattr(node, "attr", "") in ("grad", "data")


def _convert(site: NumberRead, how: Deferral) -> str:
    copied = ".clone()" if how.copied else ""
    if how.raw:
        return f"{how.cast}" or copied
    dtype = "bool" if site.equal is not None else site.tensor.dtype
    to_float = site.type == "float" or "float" in how.types
    if to_float and dtype == "float64":
        return ".clone()"
    if to_float and (how.computed or dtype in _INTEGERS):
        return ".double()"
    if not to_float and how.computed and dtype not in ("int64", "bool"):
        return ".long()"
    if "int" in how.types and dtype == "bool":
        return ".long()"
    return copied


def in_double(site: NumberRead, how: Deferral) -> bool:
    return _convert(site, how) == ".double()"


def is_data(node: ast.expr) -> bool:
    """Return whether an expression is `x.data`, which needs no `detach()`."""
    return isinstance(node, ast.Attribute) and node.attr == "data"


def copies(file: File, site: NumberRead, region: list[ast.AST]) -> bool:
    """Return whether a deferred read needs a copy: its memory may change in the region, which runs until it is read."""
    of = site.of
    if site.equal is not None or tensor_writes.is_new(file, of):
        return False
    if not isinstance(of, ast.Name):
        return True
    nodes, loops = set(region), file.loops_of(site.node)
    given = [n for n in file.stores(of) if n in nodes]
    if not any(loops and file.within(n, loops[-1]) for n in given) or not all(_is_given_new(file, n) for n in given):
        return True
    return tensor_writes.spread_of(file, of, nodes).may_change


def _is_given_new(file: File, target: ast.Name) -> bool:
    """Return whether an assignment gives a name new memory; of a tuple of targets all of it."""
    statement = file.statement_of(target)
    value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    return all(part is not None and tensor_writes.is_new(file, part) for part in parts)


_MAY_SKIP = (
    ast.Lambda,
    ast.IfExp,
    ast.BoolOp,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.NamedExpr,
    ast.Await,
    ast.Yield,
    ast.YieldFrom,
)
"""Expressions whose parts run in another order than they are written in, several times, or not at all."""
_HARMLESS = frozenset("len str int float round abs min max sum range format repr".split())
"""Functions of Python that change nothing."""
_HARMLESS_METHODS = frozenset("format join item tolist get_last_lr get_lr".split())


def may_go_first(file: File, site: NumberRead) -> bool:
    """Return whether a read may run right before its statement.

    What the statement computes before it then neither reads a clock nor writes to the tensor: only calls that are known
    to do neither may stand there.
    """
    return expressions.is_pure(file, site.of) and not reads_clock(file, site.of) and stands_first(file, site.node)


def stands_first(file: File, node: ast.expr) -> bool:
    """Return whether an expression is certainly computed in its statement, and behind nothing but harmless calls."""
    statement = file.statement_of(node)
    around = [n for n in file.ancestors(node) if file.within(n, statement)]
    if not isinstance(statement, expressions.SIMPLE) or any(isinstance(n, _MAY_SKIP) for n in around):
        return False
    begin, _ = file.text.span(node)
    calls = (call for call in calls_in(statement) if call not in around and not file.within(call, node))
    return all(_is_harmless(file, call) for call in calls if file.text.span(call)[0] < begin)


def _is_harmless(file: File, call: ast.Call) -> bool:
    if isinstance(call.func, ast.Name):
        return call.func.id in _HARMLESS
    known = isinstance(call.func, ast.Attribute) and call.func.attr in _HARMLESS_METHODS
    return known or expressions.is_pure(file, call)


def name_of_number(file: File, site: NumberRead, *taken: str) -> str:
    """Return a new name for the number that a read gives: `loss_value`, `output_mean`."""
    words: list[str] = []
    node: ast.AST = site.of
    while not words or isinstance(node, ast.Call):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and not node.func.attr.startswith("_"):
                words.insert(0, node.func.attr)
            node = node.func.value if isinstance(node.func, ast.Attribute) else node.func
        elif isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr == "data"):
            node = node.value
        else:
            break
    root = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    named = [root] if root and root not in ("torch", "F", "self") else []
    words = [*named, *words[-1:]]
    return file.fresh("_".join(words if len(words) > 1 else [*(words or ["number"]), "value"]), *taken)


def stacked(
    file: File,
    statement: ast.stmt,
    names: Sequence[str],
    reads: Sequence[NumberRead],
    *,
    in_front: bool = False,
) -> Template:
    """Return the code that reads numbers at once, and assigns them to names if there are any.

    It takes the statement's place; `in_front` of it, its lines get the statement's indentation.
    """
    indent, start = file.text.indent(statement), f"{', '.join(names)} = " if names else ""

    def source(render: Render) -> str:
        detached = [site.detached and not is_data(site.of) for site in reads]
        values = [filled("$x.detach()" if d else "$x", x=render(r.of)) for r, d in zip(reads, detached, strict=True)]
        line = f"{start}torch.stack([{', '.join(values)}]).tolist()"
        if len(indent) + len(line) <= file.text.width:
            return line
        rows = [f"{start}torch.stack([", *(f"    {value}," for value in values), "]).tolist()"]
        return ("\n" if in_front else f"{file.text.line_end}{indent}").join(rows)

    return source


def on_the_device(file: File, node: ast.expr) -> bool:
    """Return whether an expression lies on the device also on paths that the run didn't take.

    All that its function assigns to a name that it is computed of was on the device, or a number.
    """
    for name in expressions.names_in(node):
        for store in file.stores(name):
            assign = file.parents[store]
            if not isinstance(assign, ast.Assign) or store not in assign.targets:
                continue
            ran = bool(file.seen(assign.value).count) or expressions.constant(file, assign.value)
            if not ran or any(not tensor.on_device for tensor in file.tensors(assign.value)):
                return False
    return True
