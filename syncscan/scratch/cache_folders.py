"""Caches that a program shares with others of its user: what it downloads there is kept."""

from __future__ import annotations

import contextlib
import getpass
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

_IN_CACHE = (
    "torch/hub", "huggingface/hub", "huggingface/xet", "huggingface/assets", "huggingface/datasets/downloads",
    "pip", "uv",
)  # fmt: skip
"""Below the user's cache folder, where no variable says otherwise."""
_BY_VARIABLE = {
    "TORCH_HOME": "hub",
    "HF_HOME": "hub",
    "HF_HUB_CACHE": "",
    "HF_XET_CACHE": "",
    "PIP_CACHE_DIR": "",
    "UV_CACHE_DIR": "",
    "TORCHINDUCTOR_CACHE_DIR": "",
    "TRITON_CACHE_DIR": "",
    "CUDA_MPS_PIPE_DIRECTORY": "",
}
"""Environment variables that name such folders, and what in it is the cache."""


def cache_folders() -> list[Path]:
    """Return the folders of caches that exist: of downloads, and of compiled code.

    torch.hub, huggingface_hub, pip and uv document where theirs are; the compiled code of torch and Triton is found by
    a hash of its source. The pipes of NVIDIA's MPS are here too: through an overlay nobody would answer. A variable
    that names the working folder or one above it names no cache: the program's own files lie there.
    """
    folders = {folder.resolve() for folder in _known() if os.path.isdir(folder)}
    return sorted(folder for folder in folders if not Path.cwd().is_relative_to(folder))


def _known() -> Iterator[Path]:
    home = Path("~").expanduser()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    yield from (cache / part for part in _IN_CACHE)
    for name, part in _BY_VARIABLE.items():
        if os.environ.get(name):
            yield Path(os.environ[name]).expanduser() / part
    yield home / ".triton" / "cache"
    with contextlib.suppress(KeyError, OSError):  # a user without a name
        yield Path(tempfile.gettempdir(), f"torchinductor_{getpass.getuser()}")
    yield Path("/tmp/nvidia-mps")
