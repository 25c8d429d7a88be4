"""The environment of a program that runs in a view: experiment trackers send nothing, and it can tell a dry run.

The caches that it shares with other programs of its user are here too: what it downloads there is kept.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

DRY_RUN = "SYNCSCAN_DRY_RUN"
"""`1` in the environment of a dry run."""
TRACKERS_OFF = {
    "WANDB_MODE": "disabled",
    "COMET_AUTO_LOG_DISABLE": "1",
    "COMET_START_ONLINE": "0",
    "COMET_MODE": "DISABLED",  # read by transformers
    "NEPTUNE_MODE": "offline",
    "CLEARML_OFFLINE_MODE": "1",
    "SWANLAB_MODE": "disabled",
    "DVC_STUDIO_OFFLINE": "true",
}
"""Settings by which each tracker sends nothing, as it documents; a program that asks for more in its code gets it."""
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


def quiet(folder: Path, *, dry: bool) -> None:
    """Set the environment of this process and those that it starts.

    `folder` is for trackers that only write to a place.
    """
    os.environ.update(_wanted(folder, dry))


@contextlib.contextmanager
def quieted(folder: Path, temporary: Path) -> Iterator[None]:
    """Set the environment of a dry run while the context lasts, with another folder for temporary files."""
    wanted = {**_wanted(folder, True), "TMPDIR": str(temporary)}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _wanted(folder: Path, dry: bool) -> dict[str, str]:
    places = {"WANDB_DIR": str(folder), "MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db"}
    return {**TRACKERS_OFF, **places, **({DRY_RUN: "1"} if dry else {})}


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
    yield from code_caches().values()
    yield Path("/tmp/nvidia-mps")


def code_caches() -> dict[str, Path]:
    """Return where torch and Triton store compiled code, by the variable that names another place, which isn't set."""
    places = {"TRITON_CACHE_DIR": Path("~/.triton/cache").expanduser()}
    with contextlib.suppress(KeyError, OSError):  # a user without a name
        places["TORCHINDUCTOR_CACHE_DIR"] = Path(tempfile.gettempdir(), f"torchinductor_{getpass.getuser()}")
    return {name: place for name, place in places.items() if not os.environ.get(name)}
