"""Uploads to the Hub do nothing, and other machines are named."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from syncscan.scratch import uploads
from syncscan.scratch.connections import name_connections

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


def test_uploads_to_the_hub_do_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever changes something there returns what it would, and downloads aren't touched."""
    (tmp_path / "huggingface_hub").mkdir()
    (tmp_path / "huggingface_hub" / "__init__.py").touch()
    (tmp_path / "huggingface_hub" / "hf_api.py").write_text(HUB)
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.startswith("huggingface_hub")]:
        monkeypatch.delitem(sys.modules, name)
    kept_back = uploads.keep_back()
    try:
        from huggingface_hub import hf_api
    finally:
        kept_back.end()
    assert hf_api.create_repo("me/model").repo_id == "me/model"
    assert hf_api.upload_file("me/model") == "https://huggingface.co/me/model"
    assert hf_api.api.hf_hub_download() == "downloaded"
    for name in ("huggingface_hub", "huggingface_hub.hf_api"):
        sys.modules.pop(name, None)


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
