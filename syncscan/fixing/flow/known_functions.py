"""Functions that are known to give new memory, to only read, or to leave alone what they aren't given.

Names are full ones, as `callees.names` gives them. What isn't here may do anything.
"""

from __future__ import annotations

from collections.abc import Iterable

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
