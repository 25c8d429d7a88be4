"""The surroundings of a program that runs in a view: it sends nothing to others, and can tell a dry run.

Experiment trackers are switched off. The Hugging Face Hub only answers: downloads stay possible, which `HF_HUB_OFFLINE`
would end, the usual ways of uploading do nothing, so that a program goes on, and all else but reading is refused. Other
machines that a program connects to are named: what it sends them can't be held back. The caches that it shares with
other programs of its user are here too: what it downloads there is kept.
"""

from __future__ import annotations

import contextlib
import functools
import getpass
import os
import re
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from syncscan.patches import Patches

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


_HUB = ("huggingface.co", "hf.co")
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_READING = re.compile(r"/api/(\w+/.+/paths-info/.*|validate-yaml)")
"""Paths that are read by POST, since the question is long."""
_WRITING = "/xet-write-token/"
"""In the path of what hf_xet needs, read by GET, to upload by its own code in Rust."""
_LEFT_OUT = (
    "create_commit", "preupload_lfs_files", "upload_large_folder", "create_repo", "delete_repo", "create_branch",
    "create_tag",
)  # fmt: skip
"""Methods of `HfApi` that do nothing: `upload_file`, `upload_folder` and each `push_to_hub` call `create_commit`."""
_HERE = ("", "localhost", "0.0.0.0", "::", "::1")


def keep_back() -> Patches:
    """Send nothing to the Hub that may change it from here on, from this process, until the result is closed.

    What goes through `requests` or `httpx`, as all of huggingface_hub does, is refused with a `PermissionError`.
    """
    patches = Patches()
    patches.when_imported("huggingface_hub.hf_api", _leave_out)
    for library in ("requests", "httpx"):
        patches.when_imported(library, _guard)
    return patches


def _guard(module: ModuleType, patches: Patches) -> None:
    """Have the clients of a library refuse such requests."""
    for client in (getattr(module, name, None) for name in ("Session", "Client", "AsyncClient")):
        if client is not None:
            patches.set(client, "send", _refusing(client.send))


def _refusing(send: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(send)
    def sent(client: Any, request: Any, *arguments: Any, **named: Any) -> Any:
        if _changes(request.method, str(request.url)):
            what = f"{request.method} {request.url}"
            raise PermissionError(f"{what} isn't sent: in a scratch copy, nothing on the Hugging Face Hub is changed.")
        return send(client, request, *arguments, **named)

    return sent


def _changes(method: str, url: str) -> bool:
    """Return whether a request may change something on the Hub."""
    parts, own = urlsplit(url), urlsplit(os.environ.get("HF_ENDPOINT", ""))
    if parts.hostname not in (*_HUB, own.hostname):
        return False
    return _WRITING in parts.path or not (method.upper() in _READS or _READING.fullmatch(parts.path))


def _leave_out(module: ModuleType, patches: Patches) -> None:
    for name in _LEFT_OUT:
        original = getattr(module.HfApi, name, None)
        if original is not None:
            patches.set(module.HfApi, name, _doing_nothing(original, module))
            if hasattr(module, name):
                patches.set(module, name, getattr(module.api, name))


def _doing_nothing(original: Callable[..., Any], module: ModuleType) -> Callable[..., Any]:
    @functools.wraps(original)
    def nothing(api: Any, repo_id: str = "", *arguments: Any, **named: Any) -> Any:
        url = f"https://huggingface.co/{repo_id}"
        if original.__name__ == "create_repo":
            return module.RepoUrl(url)
        if original.__name__ == "create_commit":
            message = str(named.get("commit_message", ""))
            return module.CommitInfo(commit_url=url, commit_message=message, commit_description="", oid="")
        return None

    return nothing


def name_connections(tell: Callable[[str], None], is_on: Callable[[], bool] = lambda: True) -> None:
    """Tell of each other machine before this process first connects to it; as long as the process runs.

    Only connections by Python's `socket` are seen, and they only count while `is_on` says so. `tell` gets the machine's
    name or address.
    """
    named_machines: set[str] = set()
    ports: set[object] = set()

    def heard(event: str, arguments: tuple[object, ...]) -> None:
        if not event.startswith("socket.") or not is_on():
            return
        if event == "socket.getaddrinfo":
            host, port = arguments[0], arguments[1]
            ports.add(_number(port))
        elif event == "socket.connect" and isinstance(arguments[1], tuple) and arguments[1][1] not in ports:
            host = arguments[1][0]
        else:
            return
        name = host.decode() if isinstance(host, bytes) else host
        if isinstance(name, str) and name not in named_machines and not _is_here(name):
            named_machines.add(name)
            tell(name)

    sys.addaudithook(heard)


def _number(port: object) -> object:
    return int(port) if isinstance(port, str) and port.isdigit() else port


def _is_here(name: str) -> bool:
    return name in _HERE or name.startswith("127.") or name == socket.gethostname()
