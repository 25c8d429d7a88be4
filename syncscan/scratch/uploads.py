"""Uploads to the Hugging Face Hub do nothing in a view; downloads stay possible, which `HF_HUB_OFFLINE` would end."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from syncscan.scratch.imported import WhenImported

_CHANGES = (
    "create_commit", "preupload_lfs_files", "create_repo", "delete_repo", "move_repo", "create_branch", "delete_branch",
    "create_tag", "delete_tag", "super_squash_history", "upload_large_folder", "create_pull_request",
    "create_discussion", "update_repo_settings", "add_space_secret", "add_space_variable",
)  # fmt: skip
"""Methods of `HfApi` by which all others change something on the Hub: `upload_file` calls `create_commit`."""


def keep_back() -> WhenImported:
    """Let them do nothing from here on, in this process, until the result's `end`."""
    return WhenImported({"huggingface_hub.hf_api": _keep_back})


def _keep_back(module: ModuleType) -> None:
    for name in _CHANGES:
        original = getattr(module.HfApi, name, None)
        if original is not None:
            setattr(module.HfApi, name, _doing_nothing(original, module))
            if hasattr(module, name):
                setattr(module, name, getattr(module.api, name))


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
