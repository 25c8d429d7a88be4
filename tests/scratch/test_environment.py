"""Nothing on the Hub is changed, other machines are named, and caches pass through a view."""

from __future__ import annotations

import importlib
import socket
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from syncscan.patches import Patches
from syncscan.scratch import environment
from syncscan.scratch.environment import cache_folders, name_connections


def test_a_cache_passes_through_and_the_working_folder_never_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a variable names it, or a folder above it: checkpoints lie there."""
    work, cache = tmp_path / "mine" / "work", tmp_path / "cache"
    work.mkdir(parents=True)
    cache.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("HF_HUB_CACHE", ".")
    monkeypatch.setenv("PIP_CACHE_DIR", str(work.parent))
    monkeypatch.setenv("UV_CACHE_DIR", str(cache))
    assert {work, work.parent, cache} & set(cache_folders()) == {cache}


LIBRARIES = ("huggingface_hub", "requests", "httpx")

HUB = """\
class RepoUrl(str):
    @property
    def repo_id(self): return "/".join(self.split("/")[-2:])
class CommitInfo:
    def __init__(self, commit_url, **rest): self.commit_url = commit_url
class HfApi:
    def create_repo(self, repo_id): raise AssertionError
    def create_commit(self, repo_id, operations, *, commit_message): raise AssertionError
    def upload_file(self, repo_id): return self.create_commit(repo_id, [], commit_message="x").commit_url
    def hf_hub_download(self): return "downloaded"
api = HfApi()
create_repo = api.create_repo
upload_file = api.upload_file
"""


CLIENT = """\
class {name}:
    def send(self, request, **options): return "sent"
"""


@pytest.fixture
def kept_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Patches]:
    """Uploads are kept back, of libraries that stand for the real ones."""
    (tmp_path / "huggingface_hub").mkdir()
    (tmp_path / "huggingface_hub" / "__init__.py").touch()
    (tmp_path / "huggingface_hub" / "hf_api.py").write_text(HUB)
    (tmp_path / "requests.py").write_text(CLIENT.format(name="Session"))
    (tmp_path / "httpx.py").write_text(CLIENT.format(name="Client") + CLIENT.format(name="AsyncClient"))
    monkeypatch.syspath_prepend(tmp_path)
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in LIBRARIES}
    for name in before:
        del sys.modules[name]
    changes = environment.keep_back()
    yield changes
    changes.close()
    for name in [name for name in sys.modules if name.partition(".")[0] in LIBRARIES]:
        del sys.modules[name]
    sys.modules.update(before)


def test_uploads_to_the_hub_do_nothing(kept_back: Patches) -> None:
    """The usual ones return what they would, and downloads aren't touched."""
    hf_api = importlib.import_module("huggingface_hub.hf_api")
    assert hf_api.create_repo("me/model").repo_id == "me/model"
    assert hf_api.upload_file("me/model") == "https://huggingface.co/me/model"
    assert hf_api.api.hf_hub_download() == "downloaded"


@pytest.mark.parametrize(
    ("method", "url", "is_sent"),
    [
        ("GET", "https://huggingface.co/api/models/me/model", True),
        ("HEAD", "https://huggingface.co/me/model/resolve/main/config.json", True),
        ("POST", "https://huggingface.co/api/datasets/me/data/paths-info/main", True),
        ("POST", "https://huggingface.co/api/repos/move", False),
        ("DELETE", "https://huggingface.co/api/anything/that/is/new", False),
        ("GET", "https://huggingface.co/api/models/me/model/xet-write-token/main", False),
        ("PUT", "https://hub.example.org/api/models/me/model/settings", False),
        ("POST", "http://localhost:8000/v1/completions", True),
    ],
)
@pytest.mark.parametrize("client", ["requests.Session", "httpx.Client", "httpx.AsyncClient"])
def test_only_what_reads_is_sent_to_the_hub(
    kept_back: Patches, monkeypatch: pytest.MonkeyPatch, client: str, method: str, url: str, is_sent: bool
) -> None:
    """Whichever method of huggingface_hub it comes from, or none of it."""
    monkeypatch.setenv("HF_ENDPOINT", "https://hub.example.org")
    library, name = client.split(".")
    request = SimpleNamespace(method=method, url=url)
    with nullcontext() if is_sent else pytest.raises(PermissionError, match="nothing on the Hugging Face Hub"):
        assert getattr(importlib.import_module(library), name)().send(request, timeout=3) == "sent"


def test_what_is_kept_back_is_sent_again_at_the_end(kept_back: Patches) -> None:
    """In a process that goes on."""
    requests = importlib.import_module("requests")
    kept_back.close()
    move = SimpleNamespace(method="POST", url="https://huggingface.co/api/repos/move")
    assert requests.Session().send(move) == "sent"


def test_other_machines_are_named_once_and_before() -> None:
    """A name that is looked up, or an address that isn't; this machine isn't named."""
    machines: list[str] = []

    def tell(machine: str) -> None:
        if machine.startswith("192.0.2."):
            machines.append(machine)
            raise ConnectionError  # before anything is sent

    name_connections(tell)
    for machine in ("192.0.2.1", "192.0.2.2"):  # for documentation: RFC 5737
        with socket.socket() as connection, pytest.raises(ConnectionError):
            connection.connect((machine, 9))
    with socket.socket() as connection:
        connection.settimeout(0.1)
        assert connection.connect_ex(("127.0.0.1", 9)) != 0
    assert machines == ["192.0.2.1", "192.0.2.2"]
