"""Classify a recorded path of a Python file: a library's, the user's, or one that only starts a program."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

LIBRARIES = frozenset(
    # torch and what ships or is built with it
    "torch functorch torchvision torchaudio torchtext torchdata torchao torchrec torchmetrics triton torch_xla "
    "torch_npu torch_tensorrt torch_tb_profiler "
    # trainers and runtimes
    "lightning pytorch_lightning lightning_fabric lightning_utilities ignite fastai accelerate deepspeed megatron apex "
    "xformers flash_attn bitsandbytes vllm "
    # models, losses, special tensors
    "transformers diffusers peft trl sentence_transformers timm einops e3nn dgl monai ultralytics detectron2 mmcv "
    "mmengine mmdet gpytorch linear_operator torch_geometric torch_scatter torch_sparse torch_cluster "
    "torch_spline_conv pyg_lib torchdiffeq torchsde pyro botorch tensordict torchrl stable_baselines3 open_clip "
    "kornia segmentation_models_pytorch pytorch3d optimum unsloth liger_kernel sglang tensorrt_llm colossalai "
    "fairscale safetensors huggingface_hub tokenizers "
    # arrays, files, progress, logging
    "numpy scipy sklearn pandas fsspec tqdm wandb tensorboard tensorboardX mlflow clearml trackio syncscan".split()
)
"""Top-level packages of other people that training programs import, by import name.

The profiler strips every `sys.path` prefix from a file's name, so the first part of the path is often the only hint at
a library; files in site-packages need no entry. Whole names only: `torch_experiments` is a user's folder. Hugging
Face's `datasets` is left out, because many programs have a folder of that name.
"""

_STANDARD = frozenset(
    "runpy contextlib threading functools asyncio concurrent multiprocessing logging queue selectors socketserver "
    "unittest copy pickle weakref abc typing collections importlib".split()
)
"""Standard library modules that call other people's code, and so stand between two frames.

Not `sys.stdlib_module_names`: users call their own scripts `profile.py`, `test/` or `trace.py`.
"""

_WRAPPERS = re.compile(
    r"(.*/)?torch/(_tensor|functional|_jit_internal|_ops|_compile|nn/functional|nn/modules/module|cuda/\w+|cuda/__init__"
    r"|autograd/\w+|utils/_contextlib|utils/_device|overrides|_dynamo/eval_frame|accelerator/\w+|xpu/\w+)\.py"
)
"""Torch files that only pass a call on: a sync in them belongs to the caller."""

_HELPERS = (
    "lightning_utilities",
    "lightning/fabric/utilities/apply_func.py",
    "lightning_fabric/utilities/apply_func.py",
    "deepspeed/accelerator",
)
"""Library code that applies a function to many tensors or devices, which says nothing about why."""

_KEPT = 1 << 16
"""Number of cached answers: the same few files are looked up at every call."""

_DEMO = ("syncscan/capture/demo_step.py", "syncscan/capture/logged_step.py")
"""Programs as the demo's recordings name them, which count as the user's."""

_INSTALLED = re.compile(r".*(?:^|/)(?:(?:site|dist)-packages|lib(?:64)?/python3(?:\.\d+)?)/(?P<inside>.+)")
"""Path up to the last folder of installed packages, or of the standard library on Linux and macOS."""
_STANDARD_FOLDER = re.compile(r".*/lib(?:64)?/python3(?:\.\d+)?/|[A-Za-z]:/(?:.*/)?Lib/")
_WINDOWS = re.compile(r"[A-Za-z]:/(?:.*/)?Lib/(?P<inside>.+)")
"""Path up to the standard library of a Python on Windows, `C:/Python312/Lib/`; a user's folder may match too."""


@lru_cache(_KEPT)
def is_library(file: str) -> bool:
    """Return whether a file isn't the user's own, but a library's, the standard library's or generated (`<string>`).

    It is named as by the profiler (`torch/nn/functional.py`) or as by Python (an absolute path, on Windows too).
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
    """Return whether a file is this one or lies in this package, compared folder by folder: gpytorch isn't torch.

    A package is a folder or a file from its root on, `torch/distributions` or `torch/serialization.py`.
    """
    path, wanted = file.replace("\\", "/"), package.split("/")
    installed = _INSTALLED.match(path) or _WINDOWS.match(path)
    parts = _parts(installed["inside"] if installed else path)
    rooted = installed is not None or not _absolute(path)
    starts = range(1 if rooted else len(parts))  # a source tree's own root is unknown: the package may begin anywhere
    return any(parts[at : at + len(wanted)] == wanted for at in starts)


def path_in_package(file: str) -> str:
    """Return a library's file relative to its package's root, as in every environment: `transformers/trainer.py`.

    A file outside of an environment is left as it stands, with forward slashes.
    """
    path = file.replace("\\", "/")
    installed = _INSTALLED.match(path) or _WINDOWS.match(path)
    return installed["inside"] if installed else path


@lru_cache(_KEPT)
def package_of(file: str) -> str | None:
    """Return the top-level package of a library's file; `python` for the standard library and generated code.

    None for the user's own files. Code that torch's compiler wrote belongs to torch.
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
    """Return whether a library's file only passes calls on, so that its caller decides what happens in it."""
    path = path_in_package(file).removeprefix("./")
    standard = _parts(path)[0].removesuffix(".py") in _STANDARD
    helps = any(in_package(file, package) for package in _HELPERS)
    return standard or helps or path.startswith("<") or _WRAPPERS.fullmatch(path) is not None


@lru_cache(_KEPT)
def calls_modules(file: str) -> bool:
    """Return whether a file is the one whose functions call the `forward` of a module."""
    return path_in_package(file).removeprefix("./") == "torch/nn/modules/module.py"


def _parts(path: str) -> list[str]:
    return path.lstrip("./").split("/")


def _absolute(path: str) -> bool:
    return path.startswith("/") or path[1:3] == ":/"


_LONGEST = 2000
"""Bytes; what pip, uv and setuptools write takes 200 to 900."""
_CALLS = re.compile(rb"^\s*sys\.exit\((?:[\w.]+|load_entry_point\([^)]*\)|importlib_load_entry_point\([^)]*\))\(", re.M)
"""How such a script ends (pip's `distlib/scripts.py`, setuptools' `script.tmpl`, uv's `script.rs`)."""


@lru_cache(256)
def only_starts(file: str) -> bool:
    """Return whether a file has none of the program's lines: it is Python's for modules, or that of an entry point.

    The latter is made when a package is installed. A script that a package brings along ready-made has its own lines.
    """
    if file in ("<frozen runpy>", "runpy.py"):
        return True
    path = Path(file)
    if path.parent.suffix == ".exe":  # on Windows it is an archive behind a program
        return path.name == "__main__.py"
    if path.suffix in (".py", ".pyw", ".ipynb") or file.startswith("<"):
        return False
    try:
        with path.open("rb") as script:
            text = script.read(_LONGEST + 1)
    except (OSError, ValueError):
        return False
    return len(text) <= _LONGEST and text.startswith(b"#!") and _CALLS.search(text) is not None
