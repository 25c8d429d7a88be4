"""Tells what a call runs, what that does to memory, and whether it reads a clock.

It runs a function of the same file, or by its full name one of another file: `torch.relu`. Some of those are known to
give new memory, to only read, or to leave alone what they aren't given; what isn't here may do anything. What is timed
must go on waiting where it waits.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Iterable, Iterator

from syncscan.fixing.program_file import File
from syncscan.source.code_pattern import called, dotted, last_name, parameters
from syncscan.source.tree import Function, Scope, calls_in

NEW = frozenset(
    "abs acos adaptive_avg_pool2d add addmm all allclose amax amin any arange argmax argmin argsort asin atan atan2 "
    "avg_pool2d baddbmm bernoulli binary_cross_entropy binary_cross_entropy_with_logits bincount bitwise_and "
    "bitwise_not bitwise_or bmm cat cdist ceil clamp clone concat concatenate conv1d conv2d cos cosh "
    "cosine_similarity count_nonzero cross cross_entropy ctc_loss cumprod cumsum data_ptr dim dist div dot einsum "
    "element_size elu embedding empty empty_like eq erf exp eye flip floor fmax fmin fmod full full_like gather "
    "gaussian_nll_loss ge gelu get_device gt hinge_embedding_loss histc huber_loss hypot index_add index_fill "
    "index_select interpolate inverse is_floating_point isclose isfinite isinf isnan item kl_div kthvalue l1_loss "
    "layer_norm le leaky_relu lerp linear linspace log log10 log1p log2 log_softmax logical_and logical_not "
    "logical_or logical_xor logit logsumexp lt masked_fill masked_scatter masked_select matmul max max_pool2d "
    "maximum mean median min minimum mm mode mse_loss mul multinomial mv nan_to_num nanmean nansum ne neg nelement "
    "new_full new_ones new_tensor new_zeros nll_loss nonzero norm normal normalize numel one_hot ones ones_like "
    "outer pad pairwise_distance pow prod quantile rand rand_like randint randn randn_like randperm reciprocal relu "
    "remainder repeat_interleave roll round rsqrt sample scaled_dot_product_attention scatter scatter_add "
    "searchsorted selu sigmoid sign silu sin sinh size smooth_l1_loss softmax softmin softplus sort sqrt square "
    "stack std std_mean sub sum take take_along_dim tan tanh tensor tolist topk tril tril_indices "
    "triplet_margin_loss triu triu_indices trunc unique var var_mean vecdot where zeros zeros_like".split()
)
"""Functions of torch and methods of tensors that give memory of their own, or no tensor."""
_RANDOM = frozenset("bernoulli multinomial normal rand rand_like randint randn randn_like randperm sample".split())
_VIEWS = frozenset(
    "as_tensor bool broadcast_to chunk contiguous cpu detach diagonal double expand expand_as flatten float half "
    "int long movedim narrow permute ravel reshape select split squeeze swapaxes t to transpose type type_as unbind "
    "unflatten unsqueeze view view_as".split()
)
"""Functions of torch and methods of tensors that may give a view of what they take, or that itself."""
PURE = (NEW - _RANDOM) | _VIEWS
"""Functions of torch and methods of tensors that do no more than to compute, the same each time."""
_OWNERS = frozenset("torch torch.Tensor torch.nn.functional torch.linalg torch.functional torch.nn.utils".split())
"""Where these are found."""
_READ = (
    "builtins.abs builtins.bool builtins.divmod builtins.float builtins.format builtins.hasattr builtins.hash "
    "builtins.id builtins.int builtins.isinstance builtins.len builtins.pow builtins.print builtins.range "
    "builtins.repr builtins.round builtins.str builtins.type json. logging. math. str. warnings. "
    "torch.nn.modules.loss. torch.utils.tensorboard. tensorboardX."
).split()
"""Functions that only look at what they are given, and give nothing of its memory back.

A name with a dot at the end stands for all below it."""
_TAKE = (
    *_READ,
    *(
        "builtins.all builtins.any builtins.enumerate builtins.getattr builtins.iter builtins.list builtins.max "
        "builtins.min builtins.next builtins.reversed builtins.set builtins.sorted builtins.sum builtins.tuple "
        "builtins.zip dict.get dict.items dict.keys dict.values torch.* torch.nn.functional.* torch.functional.* "
        "torch.linalg.* torch.fft.* torch.special.* torch.Tensor.* torch.nn.modules.linear. torch.nn.modules.conv. "
        "torch.nn.modules.sparse. torch.nn.modules.normalization. torch.nn.modules.rnn. torch.nn.modules.pooling."
    ).split(),
)
"""Functions that don't write to what they are given, but may give it back, or a view.

A name that ends with a star stands for what is directly below it."""
_ALONE = (
    *_TAKE,
    *(
        "builtins.callable builtins.dict builtins.open builtins.slice builtins.super collections. dict. itertools. "
        "list. numpy. os. random. set. sys. time. torch.cuda. torch.nn.modules.activation. torch.nn.modules.dropout. "
        "tqdm. tuple."
    ).split(),
)
"""Functions that don't write to a tensor that they aren't given."""
_QUIET = frozenset("children eval modules named_parameters parameters state_dict train zero_grad".split())
"""Methods of modules and optimizers that write to no values."""


def gives_new(name: str) -> bool:
    """Return whether a function gives new memory: one of torch's, or a loss."""
    owner, _, function = name.rpartition(".")
    return (owner in _OWNERS and function in NEW) or name.startswith("torch.nn.modules.loss.")


def is_of_tensor(name: str) -> bool:
    """Return whether a function is a method of tensors that doesn't write in place."""
    return _is_among(name, ("torch.Tensor.*",))


def only_reads(name: str) -> bool:
    """Return whether a function gives nothing back of the memory of what it is given, and doesn't write to it."""
    return gives_new(name) or _is_among(name, _READ)


def takes(name: str) -> bool:
    """Return whether a function doesn't write to what it is given."""
    return gives_new(name) or _is_among(name, _TAKE)


def leaves_alone(name: str) -> bool:
    """Return whether a function doesn't write to a tensor that it isn't given."""
    quiet = name.startswith(("torch.nn.", "torch.optim.")) and name.rpartition(".")[2] in _QUIET
    return quiet or _is_among(name, _ALONE)


def _is_among(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a name is a known one, or of a known kind, and no function that writes in place."""
    owner = name.rpartition(".")[0]
    in_place = name.endswith("_") and not name.endswith("__")
    return not in_place and any(
        name == p or owner == p.removesuffix(".*") or (p[-1] == "." and name.startswith(p)) for p in patterns
    )


_RUN_BESIDE = frozenset("Thread Timer submit signal run_in_executor to_thread add_done_callback".split())
"""Calls after which a function that they are given runs on its own, beside the rest of the program."""
OWN = "this file"
"""Name for the functions, methods and classes of the same file, which can be followed."""
_FUNCTIONS = frozenset({"function", "builtin_function_or_method", "method", "type"})
"""Types of what the recorder notes with its own name among the elements."""
_VALUES = frozenset("NoneType bool bytes dict float frozenset int list range set str tuple".split())
_LIBRARIES = sys.stdlib_module_names | frozenset(
    "torch torchvision torchaudio numpy scipy pandas sklearn tqdm PIL matplotlib cv2 einops gym gymnasium "
    "tensorboard tensorboardX torchmetrics".split()
)
"""Packages whose functions know nothing of a program's objects but what they are given."""


def callee(file: File, call: ast.Call) -> Function | None:
    """Return the function or method of this file that a call calls; of a class its `__init__`. None for others."""
    function = call.func
    if isinstance(function, ast.Name):
        return _function(file, function) or _of_instance(file, function)
    if isinstance(function, ast.Attribute):
        methods = {id(m): m for owner in owners(file, function.value) if (m := method(file, owner, function.attr))}
        return next(iter(methods.values())) if len(methods) == 1 else None
    return None


def owners(file: File, base: ast.expr) -> set[str]:
    """Return the names of the classes that an expression's values are of; of `self` the class around it too."""
    if isinstance(base, ast.Name):
        scope = file.function_of(base)
        owner = file.class_of(scope)
        first = scope.args.args[:1] if owner is not None and isinstance(scope, ast.FunctionDef) else []
        if owner is not None and first and base.id == first[0].arg:
            return {owner.name}
    return {name.rpartition(".")[2] for name in file.types(base)}


def method(file: File, owner: str, name: str) -> Function | None:
    """Return a class's method, its own or that of a base class in this file."""
    classes = file.classes(owner)
    if len(classes) != 1:
        return None
    node = classes[0]
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == name:
            return statement
    bases = (method(file, base.id, name) for base in node.bases if isinstance(base, ast.Name) and base.id != owner)
    return next((m for m in bases if m is not None), None)


def has_parameter(function: Scope, name: str) -> bool:
    """Return whether a function has a parameter of this name, whose value its callers hold too."""
    return not isinstance(function, ast.Module) and name in [a.arg for a in parameters(function)]


def calls_of(file: File, function: Function) -> list[ast.Call] | None:
    """Return all calls of a function; None where it is called in other ways too, or may be from elsewhere."""
    if not file.main and _is_public(file, function):
        return None
    calls = [n for n in file.nodes if isinstance(n, ast.Call) and callee(file, n) is function]
    counted = sum(file.seen(call).count for call in calls)
    functions = {call.func for call in calls}
    elsewhere = file.class_of(function) is None and any(n not in functions for n in _loads(file, function))
    return None if elsewhere or is_value(file, function) or file.entered(function).count != counted else calls


def _is_public(file: File, function: Function) -> bool:
    """Return whether other files can call a function: no function holds it, and its name isn't private."""
    private = function.name.startswith("_") and not function.name.endswith("__")
    return isinstance(file.scope_of(function), ast.Module) and not private


def _loads(file: File, function: Function) -> list[ast.Name] | list[ast.Attribute]:
    """Return the uses of a function by its name; of a method all of its name."""
    if file.class_of(function) is not None:
        return [n for n in file.attributes(function.name) if isinstance(n.ctx, ast.Load)]
    return [n for n in file.names(file.scope_of(function), function.name) if isinstance(n.ctx, ast.Load)]


def is_value(file: File, function: Function) -> bool:
    """Return whether a function is used as a value: as the handler of a signal it may run at any time."""
    return not all(map(file.is_called, _loads(file, function)))


def runs_on_its_own(file: File, function: Function) -> bool:
    """Return whether a function is given to a thread or to a timer, so that it runs beside the rest of the program."""
    around = [file.parents[n] for n in _loads(file, function) if not file.is_called(n)]
    calls = (file.parents[n] if isinstance(n, ast.keyword) else n for n in around)
    return any(isinstance(call, ast.Call) and called(call) in _RUN_BESIDE for call in calls)


def _function(file: File, name: ast.Name) -> Function | None:
    match file.definitions(name):
        case [ast.ClassDef(name=owner)]:
            return method(file, owner, "__init__")
        case [ast.FunctionDef() | ast.AsyncFunctionDef() as function]:
            return function
    return None


def _of_instance(file: File, name: ast.Name) -> Function | None:
    """Return the `__call__` or `forward` that calling this name runs, if the name holds an object of this file."""
    value = file.only_value(name)
    types = {t.rpartition(".")[2] for t in file.types(value)} if value is not None else set()
    owner = types.pop() if len(types) == 1 else ""
    return method(file, owner, "__call__") or method(file, owner, "forward")


# by full names


def names(file: File, call: ast.Call) -> frozenset[str]:
    """Return the full names of what a call may run; empty where that may be anything.

    A method is named with its object's class, and a call of an object as its class's `__call__`.
    """
    function = call.func
    if callee(file, call) is not None:
        return frozenset({OWN})
    of_value = _of_value(file, function)
    if of_value or not isinstance(function, ast.Attribute):
        return of_value
    owners = file.types(function.value)
    methods = [_of_method(file, owner, function) for owner in owners]
    return frozenset().union(*methods) if methods and all(methods) else frozenset()


def runs_only(file: File, call: ast.Call, known: Callable[[str], bool]) -> bool:
    """Return whether a call runs nothing but functions of the file, and known ones of others."""
    functions = names(file, call)
    return bool(functions) and all(name == OWN or known(name) for name in functions)


def full_name(file: File, function: ast.expr) -> str:
    """Return a function's name with its module, by the file's imports; empty for what isn't imported."""
    first = dotted(function).partition(".")[0]
    return dotted(function, file.imported) if file.imported.get(first) else ""


def is_of_library(name: str) -> bool:
    """Return whether a name is a library's or Python's own, and no other file's of the program."""
    package = name.partition(".")[0]
    return package in _LIBRARIES or package == "builtins" or package in _VALUES - {"NoneType"}


def _of_value(file: File, function: ast.expr) -> frozenset[str]:
    if isinstance(function, ast.Lambda):
        return frozenset({OWN})
    if isinstance(function, ast.Name):
        if file.definitions(function) or isinstance(file.only_value(function), ast.Lambda):
            return frozenset({OWN})
        if hasattr(builtins, function.id) and file.is_free(function):
            return frozenset({f"builtins.{function.id}"})
    if full := full_name(file, function):
        stored = isinstance(function, ast.Name) and file.stores(function)
        return frozenset() if stored else frozenset({full})
    return _of_observed(file, function)


def _of_observed(file: File, function: ast.expr) -> frozenset[str]:
    seen = file.seen(function)
    types = set(seen.types)
    if not types:
        return frozenset()
    functions = {_of_object(file, kind) for kind in types - _FUNCTIONS}
    if types & _FUNCTIONS:
        functions |= set(seen.elements) or {""}
    return frozenset(functions) if "" not in functions else frozenset()


def _of_object(file: File, kind: str) -> str:
    """Return what calling an object runs; empty for Python's own kinds, which call others: `functools.partial`."""
    if file.classes(kind):
        return OWN
    return "" if kind.partition(".")[0] in sys.stdlib_module_names or "." not in kind else f"{kind}.__call__"


def _of_method(file: File, owner: str, function: ast.Attribute) -> frozenset[str]:
    if owner == "module" or ("." not in owner and owner not in _VALUES):
        return frozenset()
    if not file.classes(owner):
        return frozenset({f"{owner}.{function.attr}"})
    if method(file, owner.rpartition(".")[2], function.attr) is not None:
        return frozenset({OWN})
    stores = [n for n in file.attributes(function.attr) if not isinstance(n.ctx, ast.Load)]
    if stores:
        values = [file.value_given(store) for store in stores]
        given = [_of_value(file, value) if value is not None else frozenset() for value in values]
        return frozenset().union(*given) if all(given) else frozenset()
    return frozenset(f"{base}.{function.attr}" for base in _library_bases(file, owner))


def _library_bases(file: File, owner: str) -> Iterator[str]:
    """Yield the classes of other files that a class of this one is derived from."""
    for node in file.classes(owner):
        for base in node.bases:
            if full := full_name(file, base):
                yield full
            elif isinstance(base, ast.Name) and base.id != node.name:
                yield from _library_bases(file, base.id)


_CLOCKS = frozenset(
    "time perf_counter perf_counter_ns monotonic monotonic_ns time_ns process_time process_time_ns default_timer "
    "now utcnow clock elapsed elapsed_time timeit tic toc tick stopwatch".split()
)


def is_timed(file: File, node: ast.expr) -> bool:
    """Return whether each turn of a loop around a node, or around a call of its function, times it separately."""
    calls = [node]
    function = file.function_of(node)
    if not isinstance(function, ast.Module):
        calls += calls_of(file, function) or []
    return any(_is_inside(file, call, loop) for call in calls for loop in file.loops_of(call))


def _is_inside(file: File, node: ast.expr, loop: ast.AST) -> bool:
    lines = [n.lineno for n in calls_in(loop) if is_clock(file, n)]
    return any(n < node.lineno for n in lines) and any(n > node.lineno for n in lines)


def clocks(file: File) -> list[ast.Call]:
    """Return the calls that read a clock themselves, in the order of the text."""
    return [n for n in file.nodes if isinstance(n, ast.Call) and _is_named(file, n)]


def follows_sync(file: File, clock: ast.Call) -> bool:
    """Return whether the statement in front of a clock's waits for the whole device."""
    above = file.above(file.statement_of(clock))[-1:]
    return any(_some_call(file, calls_in(statement), _synchronizes) for statement in above)


def _some_call(file: File, calls: Iterable[ast.Call], asks: Callable[[File, ast.Call], bool], depth: int = 2) -> bool:
    """Return whether a question has a yes for one of some calls, or for one in the functions of the file they call."""
    for call in calls:
        function = callee(file, call) if depth else None
        if asks(file, call) or (function is not None and _some_call(file, calls_in(function), asks, depth - 1)):
            return True
    return False


def reads_clock(file: File, node: ast.AST) -> bool:
    return _some_call(file, calls_in(node), _is_named)


def is_clock(file: File, call: ast.Call) -> bool:
    """Return whether a call reads a clock: a known one under any name, or a function of the file that reads one."""
    return _some_call(file, [call], _is_named)


def _synchronizes(file: File, call: ast.Call) -> bool:
    return called(call) == "synchronize"


def _is_named(file: File, call: ast.Call) -> bool:
    """Return whether a call reads a clock, by its name, or by what an import or assignment gives that name."""
    stores = file.stores(call.func) if isinstance(call.func, ast.Name) else ()
    given = [value for store in stores if (value := file.value_given(store)) is not None]
    names = {called(call), file.full_name(call.func).rpartition(".")[2], *map(last_name, given)}
    return not names.isdisjoint(_CLOCKS) or "timer" in ast.unparse(call.func).lower()
