"""From a recorded path of a Python file to whose it is, a library's or the user's, and to the package it lies in."""

from __future__ import annotations

import re
from functools import lru_cache

LIBRARIES = frozenset(
    # torch and what ships or is built with it
    "torch functorch torchvision torchaudio torchtext torchdata torchao torchrec torchmetrics triton torch_xla "
    "torch_npu torch_tensorrt torch_tb_profiler "
    # trainers and runtimes
    "lightning pytorch_lightning lightning_fabric lightning_utilities ignite fastai accelerate deepspeed megatron apex "
    "xformers flash_attn bitsandbytes vllm "
    # models, losses, tensors of a kind
    "transformers diffusers peft trl sentence_transformers timm einops e3nn dgl monai ultralytics detectron2 mmcv "
    "mmengine mmdet gpytorch linear_operator torch_geometric torch_scatter torch_sparse torch_cluster "
    "torch_spline_conv pyg_lib torchdiffeq torchsde pyro botorch tensordict torchrl stable_baselines3 open_clip "
    "kornia segmentation_models_pytorch pytorch3d optimum unsloth liger_kernel sglang tensorrt_llm colossalai "
    "fairscale safetensors huggingface_hub tokenizers "
    # arrays, files, progress, logging
    "numpy scipy sklearn pandas fsspec tqdm wandb tensorboard tensorboardX mlflow clearml trackio syncscan".split()
)
"""Top-level packages of other people that training programs import, by the name they are imported under.

The profiler strips every `sys.path` prefix from a file's name, so the first part of the path is often all there is to
tell a library by; what lies in site-packages needs no entry. Whole names only: `torch_experiments` is a user's folder.
Hugging Face's `datasets` is left out, because so many programs have a folder of their own with that name.
"""

_STANDARD = frozenset(
    "runpy contextlib threading functools asyncio concurrent multiprocessing logging queue selectors socketserver "
    "unittest copy pickle weakref abc typing collections importlib".split()
)
"""Modules of the standard library that call other people's code, so that they stand between two frames.

Not `sys.stdlib_module_names`: users call their own scripts `profile.py`, `test/` or `trace.py`.
"""

_WRAPPERS = re.compile(
    r"(.*/)?torch/(_tensor|functional|_jit_internal|_ops|_compile|nn/functional|nn/modules/module|cuda/\w+|cuda/__init__"
    r"|autograd/\w+|utils/_contextlib|utils/_device|overrides|_dynamo/eval_frame|accelerator/\w+|xpu/\w+)\.py"
)
"""Torch files that only pass a call on: a sync in them is the caller's."""

_HELPERS = (
    "lightning_utilities",
    "lightning/fabric/utilities/apply_func.py",
    "lightning_fabric/utilities/apply_func.py",
    "deepspeed/accelerator",
)
"""What libraries go through to do a thing to each of many tensors, or on any kind of device: it says nothing of why."""

_KEPT = 1 << 16
"""Answers remembered: the same few files are asked about at every call."""

_DEMO = ("syncscan/capture/demo_step.py", "syncscan/capture/logged_step.py")
"""The program that `syncscan demo` profiles stands for a user's."""

_INSTALLED = re.compile(r".*(?:^|/)(?:(?:site|dist)-packages|lib(?:64)?/python3(?:\.\d+)?)/(?P<inside>.+)")
"""Up to the last folder of installed packages, or the standard library's on Linux and macOS."""
_STANDARD_FOLDER = re.compile(r".*/lib(?:64)?/python3(?:\.\d+)?/|[A-Za-z]:/(?:.*/)?Lib/")
_WINDOWS = re.compile(r"[A-Za-z]:/(?:.*/)?Lib/(?P<inside>.+)")
"""Up to the standard library of a Python on Windows, `C:/Python312/Lib/`; a user's folder may have this name too."""


@lru_cache(_KEPT)
def is_library(file: str) -> bool:
    """Whether a file isn't the user's own code, but a library's, the standard library's or generated (`<string>`).

    Args:
        file: as the profiler names it (`torch/nn/functional.py`) or as Python does (an absolute path, on Windows too).
    """
    path = file.replace("\\", "/")
    if path.endswith(_DEMO) or path.startswith("<ipython-input"):
        return False
    if path.startswith("<") or _INSTALLED.match(path):
        return True
    windows = _WINDOWS.match(path)
    top = _parts(windows["inside"] if windows else path)[0].removesuffix(".py")
    return top in LIBRARIES or top in _STANDARD


@lru_cache(_KEPT)
def in_package(file: str, package: str) -> bool:
    """Whether a file is this one or lies in this package, compared folder by folder: gpytorch isn't torch.

    Args:
        file: as for `is_library`.
        package: a folder or a file from the package's root on, `torch/distributions` or `torch/serialization.py`.
    """
    path, wanted = file.replace("\\", "/"), package.split("/")
    installed = _INSTALLED.match(path) or _WINDOWS.match(path)
    parts = _parts(installed["inside"] if installed else path)
    rooted = installed is not None or not _absolute(path)
    starts = range(1 if rooted else len(parts))  # a source tree's own root is unknown: the package may begin anywhere
    return any(parts[at : at + len(wanted)] == wanted for at in starts)


def path_in_package(file: str) -> str:
    """A library's file from its package's root on, the same in every environment: `transformers/trainer.py`.

    Args:
        file: as for `is_library`; a file outside of an environment is left as it stands, with forward slashes.
    """
    path = file.replace("\\", "/")
    installed = _INSTALLED.match(path) or _WINDOWS.match(path)
    return installed["inside"] if installed else path


@lru_cache(_KEPT)
def package_of(file: str) -> str | None:
    """The top-level package that a library's file belongs to, `python` for the standard library's and generated code.

    None for the user's own files. What torch's compiler has written is torch's.

    Args:
        file: as for `is_library`.
    """
    path = file.replace("\\", "/")
    if "/torchinductor_" in path:
        return "torch"
    if not is_library(file):
        return None
    inside = _parts(path_in_package(path))[0].removesuffix(".py")
    own = path.startswith("<") or _STANDARD_FOLDER.fullmatch(path.removesuffix(path_in_package(path)))
    return "python" if own or inside in _STANDARD else inside


@lru_cache(_KEPT)
def passes_on(file: str) -> bool:
    """Whether a library's file only passes calls on, so that what happens in it is decided by who called it.

    Args:
        file: of a library, as for `is_library`.
    """
    path = path_in_package(file).removeprefix("./")
    standard = _parts(path)[0].removesuffix(".py") in _STANDARD
    helps = any(in_package(file, package) for package in _HELPERS)
    return standard or helps or path.startswith("<") or _WRAPPERS.fullmatch(path) is not None


def _parts(path: str) -> list[str]:
    return path.lstrip("./").split("/")


def _absolute(path: str) -> bool:
    return path.startswith("/") or path[1:3] == ":/"


__all__ = ["LIBRARIES", "in_package", "is_library", "package_of", "passes_on", "path_in_package"]
