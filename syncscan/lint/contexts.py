"""Find the functions and loops of a file that run in each step, where a read-back costs time every step."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Container, Sequence
from types import SimpleNamespace

import msgspec

from syncscan.lint.values import LOADER_NAME, MODELS_OWN, is_cpu
from syncscan.source.code_pattern import called, constant, key, last_name, matched, parameters
from syncscan.source.modules import Modules
from syncscan.source.tree import Function, Loop, Scope, SourceTree, walk_own

_Around = tuple[Loop, ...]
"""The loops of its function around a piece of code, outermost first."""
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
    return any(
        (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and not isinstance(node.left, ast.Constant))
        or (isinstance(node, ast.Name | ast.Attribute) and _SELDOM.search(last_name(node)) is not None)
        for node in ast.walk(test)
    )


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


class _Code(msgspec.Struct, eq=False):
    """A function's own code, or the module's: what it calls, and its loops."""

    node: Function | ast.Module
    owner: ast.ClassDef | None
    name: str
    steps: list[_Around] = msgspec.field(default_factory=list)
    """Around each call of `backward` or an optimizer's `step`."""
    calls: list[tuple[ast.Call, _Around]] = msgspec.field(default_factory=list)
    loops: list[Loop] = msgspec.field(default_factory=list)


class CodeContexts:
    """The places of one file."""

    def __init__(self, modules: Modules) -> None:
        self._tree = tree = modules.tree
        self._of_function: dict[ast.AST, CodeContext] = {}
        self._of_loop: dict[ast.AST, CodeContext] = {}
        self._of_running: dict[ast.AST, CodeContext] = {}
        self._around_steps: set[ast.AST] = set()
        functions = sorted(tree.functions, key=lambda function: function.lineno)
        self._codes = [*map(self._code, (tree.tree, *functions))]
        self._named: dict[str, list[_Code]] = defaultdict(list)
        for code in self._codes[1:]:
            self._named[code.name.rpartition(".")[2]].append(code)
        self._classes = {code.owner.name: code.owner for code in self._codes if code.owner is not None}
        self._models: set[tuple[Scope, str]] = set()
        self._loaders: set[tuple[Scope, str]] = set()
        self._made: dict[tuple[Scope, str], str] = {}
        """Names that are given what a call of a name returns, with that name: `logger = Logger()`."""
        self._assign(modules)
        self._callees = {
            code: [(self._called(code, call), loops) for call, loops in code.calls] for code in self._codes
        }
        self._find_steps()
        self._find_named()
        self._find_loops()
        self._find_reached()

    def of_function(self, function: Function) -> CodeContext:
        """Return the place of a function's whole body, or `NOWHERE`."""
        return self._of_function.get(function, NOWHERE)

    def of_loop(self, loop: Loop) -> CodeContext:
        return self._of_loop.get(loop, NOWHERE)

    def of_running(self, loop: Loop) -> CodeContext:
        """Return the place of the body of a loop that runs a model, for use where nothing around it is a place."""
        return self._of_running.get(loop, NOWHERE)

    def _code(self, node: Function | ast.Module) -> _Code:
        """Return what a function, or the module, calls and goes round itself; of what runs seldom only the steps."""
        owner = self._tree.class_of(node)
        code = _Code(
            node, owner, ".".join(part.name for part in (owner, node) if isinstance(part, Function | ast.ClassDef))
        )
        for part in walk_own(node):
            if isinstance(part, Loop):
                code.loops.append(part)
            elif isinstance(part, ast.Call):
                loops = tuple(loop for loop in self._tree.loops_of(part, over=True) if not self._is_rare(loop))
                if _is_step(part):
                    code.steps.append(loops)
                elif not self._is_rare(part):
                    code.calls.append((part, loops))
                    if mapped := matched("map($function, ...)", part):
                        code.calls.append((ast.Call(mapped.function, [], []), loops))
        return code

    def _is_rare(self, node: ast.AST) -> bool:
        """Return whether a node of a function runs seldom: in a handler, or under a condition that says so."""
        for outer in self._tree.ancestors(node):
            guarded = isinstance(outer, ast.If) and node in outer.body and seldom(outer.test)
            if guarded or isinstance(outer, Function | ast.ExceptHandler):
                return not isinstance(outer, Function)
            node = outer
        return False

    def _assign(self, modules: Modules) -> None:
        """Note what names are given: modules, loaders, objects of classes."""
        for node in self._tree.nodes:
            for target in node.targets if isinstance(node, ast.Assign) else ():
                if isinstance(node, ast.Assign) and isinstance(target, ast.Name):
                    name = self._tree.home_of(target), target.id
                    if modules.makes(node.value, {n for _, n in self._models}.__contains__):
                        self._models.add(name)
                    elif called(node.value) == "DataLoader":
                        self._loaders.add(name)
                    elif made := matched("$function(...)", node.value):
                        self._made[name] = getattr(made.function, "id", "")

    def _is_among(self, node: ast.AST, names: Container[tuple[Scope, str]]) -> bool:
        return isinstance(node, ast.Name) and (self._tree.home_of(node), node.id) in names

    def _called(self, code: _Code, call: ast.Call) -> list[_Code]:
        """Return the functions that a call may mean: of the class itself, else the only method of this name."""
        method, owner = matched("$of.$name(...)", call), None
        if method and isinstance(method.of, ast.Name):
            made = self._made.get((self._tree.home_of(method.of), method.of.id), "")
            own = next((n for n in self._tree.ancestors(code.node) if isinstance(n, ast.ClassDef)), None)
            owner = own if method.of.id in ("self", "cls") else self._classes.get(made)
        named = self._named[called(call)]
        same = [other for other in named if other.owner is owner and (owner is None) == (method is None)]
        alone = len(named) == 1 and named[0].owner is not None and called(call) not in _COMMON
        return same or (named if method and alone else [])

    def _find_steps(self) -> None:
        """Find functions that make a step, and the innermost loops around one; through calls within the file."""
        stepping: set[_Code] = set()
        before = -1
        while before < len(stepping):
            before = len(stepping)
            for code in self._codes:
                through = [loops for callees, loops in self._callees[code] if stepping.intersection(callees)]
                for loops in (*code.steps, *through):
                    self._around_steps.update(loops)
                    if loops and not code.name.startswith("test_"):
                        self._of_loop.setdefault(loops[-1], CodeContext(f"a training loop (line {loops[-1].lineno})"))
                    elif not loops and not _never(code):
                        stepping.add(code)
        for code in stepping:
            self._of_function[code.node] = CodeContext(f"{code.name}, which runs a training step")

    def _find_named(self) -> None:
        """Find functions that a framework calls in each step."""
        transforms, of_data = imports_transforms(self._tree), made_for_data(self._tree)
        for code in self._codes:
            node, owner = code.node, code.owner
            if isinstance(node, ast.Module) or owner is None or node in self._of_function:
                continue
            base = last_name(owner.bases[0]) if owner.bases else ""
            if node.name == "forward" and (transforms or owner.name in of_data) and transforms_data(node, owner):
                continue
            if node.name == "forward" and _MODULES.search(base):
                why = "a module's forward"
            elif node.name == "backward" and base.endswith("Function"):
                why = "a backward pass"
            elif node.name in (*_STEPS, *_EVALUATIONS) or _is_for_each_batch(node.name, owner):
                why = "called for each batch"
            else:
                continue
            self._of_function[node] = CodeContext(f"{code.name}, {why}", evaluation=node.name in _EVALUATIONS)

    def _find_loops(self) -> None:
        """Find loops over a data loader, and those that run a model: a generation, an agent in its environment."""
        for code in self._codes:
            for loop in code.loops:
                if isinstance(loop, ast.For) and self._is_over_loader(loop):
                    steps = loop in self._around_steps
                    words = "a training loop" if steps else "a loop over a data loader"
                    self._of_loop.setdefault(loop, CodeContext(f"{words} (line {loop.lineno})", evaluation=not steps))
            for call, loops in code.calls if not code.name.startswith("test_") else ():
                if loops:
                    self._find_running(code, call, loops)

    def _find_running(self, code: _Code, call: ast.Call, loops: _Around) -> None:
        inner = loops[-1]
        if self._is_among(call.func, self._models) or MODELS_OWN.search(last_name(call.func)):
            evaluates = _EVALUATES.search(code.name) is not None and inner not in self._around_steps
            self._of_running[inner] = CodeContext(f"a loop that runs a model (line {inner.lineno})", evaluates)
        step = matched("$environment.step(...)", call)
        if step and _ENVIRONMENT.search(last_name(step.environment)):
            around = next((loop for loop in reversed(loops) if loop in self._around_steps), None)
            if around is not None and inner is not around:
                words = f"a rollout (line {inner.lineno}) in a training loop (line {around.lineno})"
                self._of_loop.setdefault(inner, CodeContext(words))

    def _is_over_loader(self, loop: ast.For) -> bool:
        names = (node for node in ast.walk(loop.iter) if isinstance(node, ast.Name | ast.Attribute))
        return any(LOADER_NAME.search(last_name(n)) or self._is_among(n, self._loaders) for n in names)

    def _find_reached(self) -> None:
        """Find the functions that such code calls, and those that they call."""
        waiting = sorted(self._codes, key=lambda code: not self._of_function.get(code.node, NOWHERE).evaluation)
        while waiting:
            code = waiting.pop()
            for callees, loops in self._callees[code]:
                places = (self._of_function.get(code.node), *map(self._of_loop.get, loops))
                place = next(filter(None, places), NOWHERE)
                for other in callees if place else ():
                    if other.node not in self._of_function and not _never(other):
                        root = place.root or place.said
                        words = f"{other.name}, called from {root}"
                        self._of_function[other.node] = CodeContext(words, place.evaluation, root)
                        waiting.append(other)


def _is_step(call: ast.Call) -> bool:
    step = matched("$of.step($scaled) | $of.step(...)", call)
    if step is None:
        backward = matched("$of.backward(...) | $of.manual_backward(...)", call)
        return backward is not None and not matched("super(...)", backward.of)
    scaled = [vars(step)["scaled"]] if "scaled" in vars(step) and "scaler" in last_name(step.of).lower() else []
    return any(_OPTIMIZER.search(last_name(of)) is not None for of in (step.of, *scaled))


def _never(code: _Code) -> bool:
    return isinstance(code.node, ast.Module) or _NEVER.search(code.node.name) is not None


def _is_for_each_batch(name: str, owner: ast.ClassDef) -> bool:
    """Return whether a class calls this method with each batch, by its name: a replay buffer, a meter, a loss."""
    if name in ("sample", "_get_samples"):
        return _BUFFER.search(owner.name) is not None
    if name == "update":
        return _METER.search(owner.name) is not None
    if name in ("__call__", "loss") and re.search(r"(Loss|Criterion)$", owner.name):
        return True
    return name == "__call__" and not owner.bases and owner.name.endswith("Model")


_TRANSFORMS = ("torchvision.transforms", "torchvision.tv_tensors")
_DATA = re.compile(r"^(img|image|images|pic|clip|video|sample|inpt|batch|target)$")


def imports_transforms(tree: SourceTree) -> bool:
    """Return whether a file works with torchvision's transforms of images."""
    return any(name.startswith(_TRANSFORMS) for name in tree.imported.values())


def made_for_data(tree: SourceTree) -> frozenset[str]:
    """Return the names of classes that a dataset of the file makes instances of, for its `__getitem__` to call."""
    datasets = (tree.class_of(function) for function in tree.functions if function.name == "__getitem__")
    made = (matched("$name(...)", part) for dataset in datasets if dataset for part in ast.walk(dataset))
    return frozenset(call.name.id for call in made if call and isinstance(call.name, ast.Name))


def transforms_data(node: Function, owner: ast.ClassDef) -> bool:
    """Return whether a forward is a transform's, which a loader's workers run: it takes data and has no layers."""
    given = parameters(node)[1:2]
    calls = (matched("$of.$layer(...)", part) for part in ast.walk(owner))
    layers = any(call and last_name(call.of) == "nn" for call in calls)
    return bool(given) and _DATA.match(given[0].arg) is not None and not layers


_COLD = re.compile(r"is_tracing|is_scripting|is_compiling|is_exporting|is_torchdynamo_compiling|is_fx_tracing")
_OTHERS = ("mps", "xpu", "hpu", "npu", "xla", "tpu", "meta")
"""Devices that aren't CUDA's, as a program asks for them."""
_CLOCKS = re.compile(r"(perf_counter|monotonic|time\.time|elapsed_time|\btime\(\))")


def guard_of(test: ast.expr) -> str:
    """Return a condition as written if what it guards runs in some steps only; empty for others."""
    return _short(test) if seldom(test) else ""


def made_once(node: ast.If) -> str:
    """Return a condition as written if what it guards is made where it isn't there yet: `if self.mask is None`."""
    missing = {key(test.x) for part in ast.walk(node.test) if (test := matched("$x is None", part))}
    made = {key(target) for part in node.body if isinstance(part, ast.Assign) for target in part.targets}
    return _short(node.test) if any("." in name for name in missing & made) else ""


def _short(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"{text[:57]}..."


def gives_up(body: Sequence[ast.stmt]) -> bool:
    """Return whether a block ends in an error: it runs once at most."""
    return bool(body) and isinstance(body[-1], ast.Raise)


def branch_off_device(test: ast.expr) -> str:
    """Return the branch that doesn't run on a device, or only while a graph is captured: `body`, `else` or none."""
    negation = matched("not $test", test)
    inner, yes, no = (negation.test, "else", "body") if negation else (test, "body", "else")
    if call := matched("$function(...)", inner):
        name = key(call.function)
        if _COLD.search(name):
            return yes
        return no if name.endswith("cuda.is_available") else ""
    same = matched("$a == $b", inner)
    sides = vars(same or matched("$a != $b", inner) or SimpleNamespace()).values()
    if any(is_cpu(side) or constant(side) in _OTHERS for side in sides):
        return yes if same else no
    if any(constant(side) == "cuda" for side in sides):
        return no if same else yes
    return ""


def is_off_device(node: Function) -> bool:
    """Return whether a function does work that doesn't run on a device: collating, reading data, tests."""
    return bool(re.search(r"collate|__getitem__|^test_|^setUp$|__init__$|^__repr__$", node.name))


def reads_clock(scope: Function | ast.Module) -> bool:
    return any(
        isinstance(part, ast.Attribute | ast.Name) and _CLOCKS.search(key(part)) is not None for part in walk_own(scope)
    )
