"""Kinds of values that expressions have, and the names that tell them: of torch, Python and of usual programs.

Torch's are read off its documentation of 2.13; a name that is in none of the tables says nothing.
"""

from __future__ import annotations

import ast
import enum
import re
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from syncscan.source.code_pattern import argument, constant, key


class ValueKind(enum.Enum):
    """The kinds of values that matter for a wait."""

    UNKNOWN = "unknown"
    HOST = "host"
    """A Python number, string or container of such, a NumPy array: nothing to wait for."""
    CPU = "cpu"
    """A tensor that was made on the CPU, or read back to it."""
    BATCH = "batch"
    """A data loader's output: tensors on the CPU, or a container of them."""
    TENSOR = "tensor"
    """A tensor, not known to be on the CPU."""
    OUTPUT = "output"
    """A module's return value: a tensor, or something that holds tensors."""
    MODULE = "module"
    """A module, which returns an `OUTPUT` if it is called."""
    LOADER = "loader"
    EVENT = "event"
    """A CUDA event or stream."""
    DISTRIBUTION = "distribution"
    """One of torch.distributions that checks its arguments."""


class Value(msgspec.Struct, frozen=True):
    """Known facts about an expression's value."""

    kind: ValueKind = ValueKind.UNKNOWN
    mask: bool = False
    """A tensor of truth values."""
    scalar: bool = False
    """A tensor without dimensions."""
    sure: bool = False
    """A tensor that the source itself puts on a device."""
    test: str = ""
    """`isnan` and the like, where it answers that question."""
    pinned: bool = False
    """Whether a loader, or the loader of a batch, has or may have `pin_memory=True`."""
    listed: bool = False
    """A Python list of numbers, or a NumPy array: as an index it becomes a tensor, which is copied to the device."""
    line: int = 0
    """Line where a loader, or the loader of a batch, is made; 0 if that isn't in the same file."""

    @property
    def tensor(self) -> bool:
        """Whether it is a tensor that may lie on the device."""
        return self.kind is ValueKind.TENSOR

    @property
    def on_host(self) -> bool:
        """Whether nothing waits for it: it is no tensor, or one on the CPU."""
        return self.kind in (ValueKind.HOST, ValueKind.CPU, ValueKind.BATCH)

    def but(self, **changes: object) -> Value:
        """Return a copy with some facts replaced."""
        return replace(self, **changes)


UNKNOWN = Value()
HOST = Value(ValueKind.HOST)
CPU = Value(ValueKind.CPU)
BATCH = Value(ValueKind.BATCH)
TENSOR = Value(ValueKind.TENSOR)
OUTPUT = Value(ValueKind.OUTPUT)
MODULE = Value(ValueKind.MODULE)


def joined(values: list[Value]) -> Value:
    """Return the value that an op makes of these operands; torch refuses to mix devices, numbers aside."""
    kinds = {value.kind for value in values}
    if kinds & {ValueKind.TENSOR, ValueKind.OUTPUT}:
        scalar = all(v.scalar or v.kind is ValueKind.HOST for v in values)
        return Value(ValueKind.TENSOR, sure=any(v.sure for v in values), scalar=scalar)
    if kinds & {ValueKind.CPU, ValueKind.BATCH}:
        return CPU
    return HOST if kinds == {ValueKind.HOST} else UNKNOWN


def in_list(value: Value) -> Value:
    """Return the value of a list of such elements; a list of numbers can be an index."""
    return value.but(listed=True) if value.kind is ValueKind.HOST else value


def alike(values: Sequence[Value]) -> Value:
    return values[0] if values and all(value == values[0] for value in values) else UNKNOWN


ITERATORS = {"range": HOST, "parameters": TENSOR, "named_parameters": TENSOR}
"""Functions and methods → what their result yields."""
READS = {"cpu": CPU, "item": HOST, "tolist": in_list(HOST), "numpy": in_list(HOST)}
_EVENT = Value(ValueKind.EVENT)
TORCH = {
    **dict.fromkeys(("cuda.Event", "cuda.Stream", "cuda.current_stream", "Event", "Stream"), _EVENT),
    **dict.fromkeys(("nn.Parameter", "nn.parameter.Parameter", "autograd.grad"), TENSOR),
    **dict.fromkeys(
        ("nn.utils.clip_grad_norm_", "nn.utils.clip_grad.clip_grad_norm_", "nn.utils.get_total_norm"),
        Value(ValueKind.TENSOR, scalar=True),
    ),
}
"""Functions of torch → what they return."""


FACTORIES = frozenset(
    "tensor as_tensor zeros ones empty full rand randn randint randperm arange range linspace logspace eye normal "
    "scalar_tensor tril_indices triu_indices hann_window hamming_window".split()
)
"""They make a tensor on the CPU unless `device=` says otherwise."""
OF_TYPE = frozenset(
    "Tensor FloatTensor DoubleTensor HalfTensor LongTensor IntTensor ShortTensor ByteTensor BoolTensor".split()
)
"""Old-style types, which make a tensor on the CPU when they are called."""
FROM_HOST = frozenset("from_numpy frombuffer from_dlpack asarray".split())
LIKE = frozenset("zeros_like ones_like empty_like full_like rand_like randn_like randint_like".split())
NEW = frozenset("new_zeros new_ones new_full new_empty new_tensor".split())

NO_TENSOR = frozenset(
    "device dtype Size Generator compile no_grad enable_grad inference_mode autocast load save manual_seed seed "
    "typename numel equal allclose finfo iinfo promote_types result_type can_cast get_default_dtype Tag Tensor "
    "initial_seed use_deterministic_algorithms are_deterministic_algorithms_enabled cond while_loop vmap func "
    "nn optim utils cuda distributed jit autograd backends overrides fx library ops export version _dynamo".split()
)
"""Names right below `torch` that return no tensor."""
NAMESPACES = ("nn.functional.", "linalg.", "fft.", "special.")
MODULES_OWN = re.compile(
    r"(^|[._])(model|net|network|module|criterion|loss_fn|loss_func|loss_function|criterion\w*)$", re.I
)
"""How a module, or a loss, is usually called."""
MODELS_OWN = re.compile(r"(^|_)(model|net|network|policy|actor|critic)$", re.I)
"""How a whole model is usually called."""
LOSSES = re.compile(r"_loss$|^cross_entropy$|^(binary_)?cross_entropy|^nll_loss|^mse_loss")

ONLY_TENSORS = frozenset(
    "backward detach detach_ unsqueeze masked_fill masked_fill_ log_softmax contiguous expand_as view_as type_as "
    "scatter_ scatter_add scatter_add_ index_select logsumexp bmm cuda requires_grad_ masked_scatter masked_select "
    "index_add_ index_fill_ index_copy_ addmm addcmul_ addcdiv_ lerp_ permute narrow unbind numel "
    "new_zeros new_ones new_full new_tensor new_empty argsort_ softmax sigmoid relu amax amin "
    "cumsum_ record_stream data_ptr is_contiguous "
    "repeat_interleave nonzero_static".split()
)
"""Methods that neither NumPy arrays nor other values in training code have."""
HOST_METHODS = frozenset(
    "item tolist size dim ndimension numel nelement stride storage_offset is_contiguous data_ptr element_size "
    "is_floating_point is_complex is_pinned get_device has_names untyped_storage storage is_shared equal allclose "
    "numpy keys register_hook".split()
)
"""Methods of tensors whose result lies on the host."""
HOST_ATTRIBUTES = frozenset(
    "shape ndim dtype device is_cuda requires_grad grad_fn layout itemsize nbytes is_leaf is_sparse is_nested names "
    "is_meta is_mps is_cpu __class__".split()
)
SAME_ATTRIBUTES = frozenset("grad data T mT H mH real imag values indices".split())
METHODS_OF_OUTPUTS = frozenset("keys items values get to_tuple pop update append extend copy sample rsample".split())
"""Methods of outputs that are no tensors: dictionaries, lists, distributions."""
TENSOR_ATTRIBUTES = frozenset("loss logits last_hidden_state pooler_output".split())
"""Attributes that are tensors in the outputs of transformers' models."""
OF_DISTRIBUTIONS = frozenset("sample rsample log_prob entropy cdf icdf".split())
"""Methods of a distribution whose result is a tensor."""
REDUCTIONS = frozenset(
    "sum mean max min any all prod norm argmax argmin std var median amax amin count_nonzero".split()
)
KEEP_MASK = frozenset(
    "view reshape flatten unsqueeze squeeze expand expand_as repeat roll clone detach contiguous transpose permute t "
    "logical_not logical_and logical_or logical_xor any all triu tril flip bool to cuda fill_diagonal_ bitwise_not "
    "stack cat isin new_zeros".split()
)
"""Functions and methods that return a mask if given a mask."""
QUESTIONS = frozenset(
    "isnan isinf isfinite isneginf isposinf eq ne gt lt ge le greater less logical_not logical_and logical_or "
    "logical_xor isin isclose is_nonzero signbit isreal".split()
)
"""Functions and methods that return a mask if given tensors."""
NOT_FINITE = frozenset("isnan isinf isfinite isneginf isposinf".split())

TENSOR_TYPES = re.compile(r"\b(Tensor|LongTensor|FloatTensor|BoolTensor|IntTensor|HalfTensor)\b")
HOST_TYPES = re.compile(r"^(int|float|bool|str|bytes|complex|np\.ndarray|numpy\.ndarray|ndarray)$")
DEVICE_NAME = re.compile(r"(^|[._])(dev|device|cuda|gpu|DEV|DEVICE|local_rank|gpu_id|device_id)$", re.I)
"""How what names a device is usually called."""
LOADER_NAME = re.compile(
    r"(data_?loader|_loader|^loader|^(train|test|val|valid|eval|dev)(set)?loader|_dl$|^dl$|train_iter|^batches$)s?$",
    re.I,
)
"""How a data loader is usually called."""

HOST_FUNCTIONS = frozenset(
    "len range str repr int float bool complex round isinstance issubclass hasattr type id hash ord chr format input "
    "open callable dir vars print time sorted_names".split()
)
ARRAYS = frozenset(
    "numpy.array numpy.asarray numpy.arange numpy.flatnonzero numpy.argsort numpy.random.permutation "
    "numpy.random.choice numpy.random.randint".split()
)
"""Functions that return an array that can be an index."""
HOST_MODULES = ("numpy.", "math.", "time.", "os.", "random.", "json.", "re.", "pathlib.", "copy.", "itertools.", "sys.")
"""Their functions return host values, except `copy`, which is handled separately."""


def is_cpu(node: ast.expr | None) -> bool:
    """Return whether an expression is the CPU: `"cpu"`, `torch.device("cpu")`."""
    if isinstance(node, ast.Call) and node.args and key(node.func).rpartition(".")[2] == "device":
        return is_cpu(node.args[0])
    value = constant(node)
    return isinstance(value, str) and value.partition(":")[0] == "cpu"


def loader_of(call: ast.Call) -> Value:
    given = argument(call, "pin_memory")
    unclear = any(k.arg is None for k in call.keywords) or (given is not None and constant(given) is None)
    return Value(ValueKind.LOADER, pinned=constant(given) is True or unclear, line=call.lineno)


def test_of(name: str, inner: Value) -> str:
    """Return the question for what isn't finite that a function answers, or that it only summarizes."""
    return name if name in NOT_FINITE else inner.test if name in ("any", "all") else ""
