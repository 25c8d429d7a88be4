"""The Hugging Face Hub only answers in a view: what may change something there isn't sent.

Downloads stay possible, which `HF_HUB_OFFLINE` would end. The usual ways of uploading do nothing, so that a program
goes on; all else but reading is refused. Other machines that a program connects to are named: what it sends them can't
be held back.
"""

from __future__ import annotations

import functools
import os
import re
import socket
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from syncscan.patches import Patches

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
    told: set[str] = set()
    asked: set[object] = set()

    def heard(event: str, arguments: tuple[object, ...]) -> None:
        if not event.startswith("socket.") or not is_on():
            return
        if event == "socket.getaddrinfo":
            host, port = arguments[0], arguments[1]
            asked.add(_number(port))
        elif event == "socket.connect" and isinstance(arguments[1], tuple) and arguments[1][1] not in asked:
            host = arguments[1][0]
        else:
            return
        name = host.decode() if isinstance(host, bytes) else host
        if isinstance(name, str) and name not in told and not _is_here(name):
            told.add(name)
            tell(name)

    sys.addaudithook(heard)


def _number(port: object) -> object:
    return int(port) if isinstance(port, str) and port.isdigit() else port


def _is_here(name: str) -> bool:
    return name in _HERE or name.startswith("127.") or name == socket.gethostname()
