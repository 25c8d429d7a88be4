"""Find the functions and loops of a file that run in each step, where a read-back costs time every step."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set

import msgspec

from syncscan.lint.data_code import imports_transforms, made_for_data, transforms_data
from syncscan.lint.imported_names import FileNames, last_name, makes_module
from syncscan.lint.torch_names import LOADER_NAME, MODELS_OWN
from syncscan.lint.tree import children, walk

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While
_Name = tuple[ast.ClassDef | None, str]
"""A function as it is called: the class that it is a method of, None without, and its own name."""

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_ENVIRONMENT = re.compile(r"(^|_)env(s|ironment)?$", re.I)
"""How what an agent acts in is usually called."""
_BUFFER = re.compile(r"(Replay|Rollout)\w*$|Buffer$")
_METER = re.compile(r"(Meter|MetricLogger|SmoothedValue)\w*$")
_COMMON = frozenset(
    "forward update step reset get add append run log close save load eval train test backward sample to "
    "__call__ __init__ __len__ __getitem__ __iter__ __next__".split()
)
"""Names of methods that many classes have: a call of one doesn't tell whose it is."""
_OPTIMIZER = re.compile(r"(optim|^opt\d?$|_opt$|^opt_|^svi$)", re.I)
_MODULES = re.compile(r"(Module|Model|Mixin|Layer|Block|Loss|Net|Head|Attention|Encoder|Decoder|Function)\w*$")
_STEPS = tuple(
    "training_step train_step compute_loss training_losses on_train_batch_start on_train_batch_end on_before_zero_grad "
    "on_before_backward on_after_backward on_before_optimizer_step configure_gradient_clipping".split()
)
"""Methods that trainers call for each batch."""
_EVALUATIONS = tuple(
    "validation_step test_step predict_step prediction_step eval_step on_validation_batch_start "
    "on_validation_batch_end on_test_batch_start on_test_batch_end on_predict_batch_start on_predict_batch_end".split()
)
_EVALUATES = re.compile(r"(^|[._])(eval|valid|test)", re.I)
_NEVER = re.compile(
    r"^(test_|setUp|tearDown|__init__$|__repr__$|__str__$|extra_repr$|reset_parameters$|_?init_weights|_load|load_|save|export|from_|convert|main$|_?demo)"
)
"""Functions that run once, or not in training."""


_SELDOM = re.compile(r"debug|verbose|(^|_)(log|print|save|eval|dump|vis)(ging)?(_|$)|interval|every|freq|should_", re.I)
"""Names in a condition that say that what it guards runs seldom."""


def seldom(test: ast.expr) -> bool:
    """Return whether a condition says that it holds in some steps only: `step % 100 == 0`, `if verbose`."""
    for node in walk(test):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and not isinstance(node.left, ast.Constant):
            return True
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if name and _SELDOM.search(name):
            return True
    return False


class CodeContext(msgspec.Struct, frozen=True):
    """Where code stands, and what makes it run in each step."""

    said: str = ""
    """In words, with the line; empty where nothing tells that it runs often."""
    evaluation: bool = False
    root: str = ""
    """The place that calls this function, directly or through others, in words; empty for such a place itself."""

    def __bool__(self) -> bool:
        return bool(self.said)


NOWHERE = CodeContext()


class _Seen(msgspec.Struct, eq=False):
    """Steps, calls and loops of a function's own code."""

    node: Function | None
    """None for the module, and for what runs seldom."""
    owner: ast.ClassDef | None
    name: str
    within: ast.ClassDef | None = None
    """The class that `self` is of: its own, or that of the method it is nested in."""
    steps: list[tuple[Loop, ...]] = msgspec.field(default_factory=list)
    """The loops around each call of `backward` or an optimizer's `step`, outermost first."""
    calls: list[tuple[_Name, tuple[Loop, ...]]] = msgspec.field(default_factory=list)
    """Functions of the same file that it calls, with the loops around."""
    loops: list[Loop] = msgspec.field(default_factory=list)
    """All loops in it."""
    loaders: set[str] = msgspec.field(default_factory=set)
    """Names that it gives to data loaders."""
    models: set[str] = msgspec.field(default_factory=set)
    """Names that it gives to modules."""
    outer: set[str] = msgspec.field(default_factory=set)
    """Names that the file gives to modules."""
    parameters: set[str] = msgspec.field(default_factory=set)
    runs: list[Loop] = msgspec.field(default_factory=list)
    """The innermost loops around each call of a model."""
    acts: list[tuple[Loop, ...]] = msgspec.field(default_factory=list)
    """The loops around each call of an environment's `step`, outermost first."""
    made: dict[str, str] = msgspec.field(default_factory=dict)
    """Names that it gives to what a call of a name returns, with that name: `logger = Logger()`."""


class CodeContexts:
    """The places of one file."""

    def __init__(self, tree: ast.Module) -> None:
        self._of_function: dict[ast.AST | None, CodeContext] = {}
        self._of_loop: dict[ast.AST, CodeContext] = {}
        self._of_running: dict[ast.AST, CodeContext] = {}
        self._around_steps: set[ast.AST] = set()
        self._seen = list(_functions(tree, FileNames(tree)))
        self._by_name: dict[_Name, list[_Seen]] = defaultdict(list)
        for seen in self._seen:
            if seen.node is not None:
                self._by_name[_called_as(seen)].append(seen)
        self._find_methods()
        self._resolve_instances()
        self._transforms = imports_transforms(tree)
        self._of_data = made_for_data(tree)
        self._find_steps()
        self._find_named()
        self._find_reached()

    def of_function(self, function: Function) -> CodeContext:
        """Return the place of a function's whole body, or `NOWHERE`."""
        return self._of_function.get(function, NOWHERE)

    def of_loop(self, loop: Loop) -> CodeContext:
        return self._of_loop.get(loop, NOWHERE)

    def of_running(self, loop: Loop) -> CodeContext:
        """Return the place of the body of a loop that runs a model, for use where nothing around it is a place."""
        return self._of_running.get(loop, NOWHERE)

    def _find_methods(self) -> None:
        """Map a method called on another object to the only method of that name in the file."""
        owners: dict[str, list[_Seen]] = defaultdict(list)
        for seen in self._seen:
            if seen.node is not None:
                owners[seen.node.name].append(seen)
        for name, those in owners.items():
            if len(those) == 1 and those[0].owner is not None and name not in _COMMON:
                self._by_name[None, f".{name}"] = those

    def _resolve_instances(self) -> None:
        """Take a method called on a name for that of the class of the file that the name is an instance of."""
        classes = {seen.owner.name: seen.owner for seen in self._seen if seen.owner is not None}
        module = self._seen[0].made
        for seen in self._seen:
            for number, ((owner, name), loops) in enumerate(seen.calls):
                receiver, dot, method = name.partition(".")
                if owner is not None or not dot or not receiver:
                    continue
                of = classes.get(seen.made.get(receiver) or module.get(receiver, ""))
                known = of is not None and (of, method) in self._by_name
                seen.calls[number] = ((of, method) if known else (None, f".{method}")), loops

    def _called(self, name: _Name) -> Sequence[_Seen]:
        """Return the functions that a call may mean: of the class itself, else the only method of this name."""
        return self._by_name.get(name, ()) or self._by_name.get((None, f".{name[1]}"), ())

    def _find_steps(self) -> None:
        """Find functions that make a step, and the innermost loops around one; through calls within the file."""
        stepping = {s for s in self._seen if any(not loops for loops in s.steps) and not _never(s)}
        grown = True
        while grown:
            grown = False
            for seen in self._seen:
                through = [loops for name, loops in seen.calls if any(s in stepping for s in self._called(name))]
                for loops in (*seen.steps, *through):
                    self._around_steps.update(loops)
                    if loops and not seen.name.startswith("test_"):
                        self._of_loop.setdefault(loops[-1], CodeContext(f"a training loop (line {loops[-1].lineno})"))
                    elif not loops and seen not in stepping and not _never(seen):
                        stepping.add(seen)
                        grown = True
        for seen in self._seen:
            if seen.node is not None and seen in stepping:
                self._of_function[seen.node] = CodeContext(f"{seen.name}, which runs a training step")

    def _find_named(self) -> None:
        """Find functions that a framework calls in each step, and loops over a data loader."""
        for seen in self._seen:
            node = seen.node
            if node is None or seen.owner is None or node in self._of_function:
                continue
            of = f"{seen.owner.name}.{node.name}"
            of_data = self._transforms or seen.owner.name in self._of_data
            if node.name == "forward" and of_data and transforms_data(node, seen.owner):
                continue
            if node.name == "forward" and seen.owner.bases and _MODULES.search(_base(seen.owner)):
                self._of_function[node] = CodeContext(f"{of}, a module's forward")
            elif node.name == "backward" and _base(seen.owner).endswith("Function"):
                self._of_function[node] = CodeContext(f"{of}, a backward pass")
            elif node.name in _STEPS:
                self._of_function[node] = CodeContext(f"{of}, called for each batch")
            elif node.name in _EVALUATIONS:
                self._of_function[node] = CodeContext(f"{of}, called for each batch", evaluation=True)
            elif _is_for_each_batch(node.name, seen.owner):
                self._of_function[node] = CodeContext(f"{of}, called for each batch")
        self._find_loops()

    def _find_loops(self) -> None:
        """Find loops over a data loader, and those that run a model: a generation, an agent in its environment."""
        own = self._seen[0].loaders
        for seen in self._seen:
            loaders = seen.loaders | own
            for loop in seen.loops:
                if isinstance(loop, ast.For) and _over_loader(loop, loaders):
                    steps = loop in self._around_steps
                    words = "a training loop" if steps else "a loop over a data loader"
                    self._of_loop.setdefault(loop, CodeContext(f"{words} (line {loop.lineno})", evaluation=not steps))
            if seen.name.startswith("test_"):
                continue
            for loops in seen.acts:
                around = next((loop for loop in reversed(loops) if loop in self._around_steps), None)
                if around is not None and loops[-1] is not around:
                    words = f"a rollout (line {loops[-1].lineno}) in a training loop (line {around.lineno})"
                    self._of_loop.setdefault(loops[-1], CodeContext(words))
            named = _EVALUATES.search(seen.name) is not None
            for loop in seen.runs:
                evaluates = named and loop not in self._around_steps
                self._of_running[loop] = CodeContext(f"a loop that runs a model (line {loop.lineno})", evaluates)

    def _find_reached(self) -> None:
        """Find the functions that such code calls, and those that they call."""
        waiting = sorted(self._seen, key=lambda s: not self._of_function.get(s.node, NOWHERE).evaluation)
        while waiting:
            seen = waiting.pop()
            whole = self._of_function.get(seen.node, NOWHERE) if seen.node is not None else NOWHERE
            for name, loops in seen.calls:
                place = whole or next((p for loop in loops if (p := self._of_loop.get(loop))), NOWHERE)
                if not place:
                    continue
                for other in self._called(name):
                    if other.node is None or other.node in self._of_function or _never(other):
                        continue
                    root = place.root or place.said
                    words = f"{other.name}, called from {root}"
                    self._of_function[other.node] = CodeContext(words, place.evaluation, root)
                    waiting.append(other)


def _functions(tree: ast.Module, names: FileNames) -> Iterator[_Seen]:
    """Yield a record of the module, each function and each statement that runs seldom, apart from what is around it."""
    module = _Seen(None, None, "the module")
    yield module
    todo: list[tuple[ast.AST, _Seen, ast.ClassDef | None, tuple[Loop, ...]]] = [(tree, module, None, ())]
    while todo:
        node, seen, owner, loops = todo.pop()
        for child in children(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{owner.name}.{child.name}" if owner else child.name
                inner = _Seen(
                    child, owner, name, owner or seen.within, outer=module.models, parameters=_parameters(child)
                )
                yield inner
                todo.append((child, inner, None, ()))
            elif isinstance(child, ast.ClassDef):
                todo.append((child, module, child, ()))
            elif isinstance(child, ast.Lambda | ast.ExceptHandler):
                _note_guarded(child, seen, loops)
            elif isinstance(node, ast.If) and child in node.body and seldom(node.test):
                _note_guarded(child, seen, loops)
                apart = _Seen(None, None, seen.name, seen.within, loaders=seen.loaders, models=seen.models)
                yield apart
                todo.append((child, apart, owner, _noted(child, apart, (), names)))
            else:
                todo.append((child, seen, owner, _noted(child, seen, loops, names)))


def _noted(node: ast.AST, seen: _Seen, loops: tuple[Loop, ...], names: FileNames) -> tuple[Loop, ...]:
    """Take down a loop or a call; the loops around what is in the node."""
    if isinstance(node, _LOOPS):
        seen.loops.append(node)
        return (*loops, node)
    if isinstance(node, ast.Call):
        _note(node, seen, loops)
    elif isinstance(node, ast.Assign) and makes_module(node.value, names, seen.models.__contains__):
        seen.models.update(target.id for target in node.targets if isinstance(target, ast.Name))
    elif isinstance(node, ast.Assign) and _makes_loader(node.value):
        seen.loaders.update(target.id for target in node.targets if isinstance(target, ast.Name))
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name):
        made = node.value.func.id
        seen.made.update({target.id: made for target in node.targets if isinstance(target, ast.Name)})
    return loops


def _note_guarded(node: ast.AST, seen: _Seen, loops: tuple[Loop, ...]) -> None:
    """Record a step that is made in what runs seldom, as with gradient accumulation, as a step of the loops around."""
    if any(isinstance(part, ast.Call) and _is_step(part) for part in walk(node)):
        seen.steps.append(loops)


def _is_step(call: ast.Call) -> bool:
    function = call.func
    if not isinstance(function, ast.Attribute):
        return False
    if function.attr in ("backward", "manual_backward"):
        return not _is_super(function.value)
    scaled = call.args[:1] if function.attr == "step" and "scaler" in last_name(function.value).lower() else []
    of = [function.value, *scaled]
    return function.attr == "step" and any(_OPTIMIZER.search(last_name(one)) is not None for one in of)


def _note(call: ast.Call, seen: _Seen, loops: tuple[Loop, ...]) -> None:
    function = call.func
    if loops and (_is_model(function, seen) or MODELS_OWN.search(last_name(function))):
        seen.runs.append(loops[-1])
    if isinstance(function, ast.Name):
        seen.calls.append(((None, function.id), loops))
        if function.id == "map" and call.args and isinstance(call.args[0], ast.Attribute):
            _note(ast.Call(call.args[0], [], []), seen, loops)
    elif isinstance(function, ast.Attribute):
        receiver = function.value
        if _is_step(call):
            seen.steps.append(loops)
        elif seen.within and isinstance(receiver, ast.Name) and receiver.id in ("self", "cls"):
            seen.calls.append(((seen.within, function.attr), loops))
        else:
            of = receiver.id if isinstance(receiver, ast.Name) else ""
            seen.calls.append(((None, f"{of}.{function.attr}"), loops))
        if function.attr == "step" and loops and _ENVIRONMENT.search(last_name(receiver)):
            seen.acts.append(loops)


def _is_model(function: ast.expr, seen: _Seen) -> bool:
    """Return whether a name is that of a module, as the file shows."""
    if not isinstance(function, ast.Name):
        return False
    return function.id in seen.models or (function.id in seen.outer and function.id not in seen.parameters)


def _called_as(seen: _Seen) -> _Name:
    return seen.owner, seen.node.name if seen.node is not None else ""


def _never(seen: _Seen) -> bool:
    return seen.node is None or _NEVER.search(seen.node.name) is not None


def _is_for_each_batch(name: str, owner: ast.ClassDef) -> bool:
    """Return whether a class calls this method with each batch, by its name: a replay buffer, a meter, a loss."""
    if name in ("sample", "_get_samples"):
        return _BUFFER.search(owner.name) is not None
    if name == "update":
        return _METER.search(owner.name) is not None
    if name in ("__call__", "loss") and re.search(r"(Loss|Criterion)$", owner.name):
        return True
    return name == "__call__" and not owner.bases and owner.name.endswith("Model")


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _base(owner: ast.ClassDef) -> str:
    return last_name(owner.bases[0]) if owner.bases else ""


def _over_loader(loop: ast.For, loaders: Set[str] = frozenset()) -> bool:
    return any(
        isinstance(node, ast.Name | ast.Attribute)
        and (LOADER_NAME.search(last_name(node)) is not None or (isinstance(node, ast.Name) and node.id in loaders))
        for node in walk(loop.iter)
    )


def _parameters(function: Function) -> set[str]:
    arguments = function.args
    return {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}


def _makes_loader(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and last_name(value.func) == "DataLoader"


__all__ = ["NOWHERE", "CodeContext", "CodeContexts", "Function", "Loop", "seldom"]
