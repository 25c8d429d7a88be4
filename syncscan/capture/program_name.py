"""The running program: its name, its rank, and the words by which it was started."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HIDDEN = "***"
MOST_CHARACTERS = 1_000
"""A longer command is no use on a line."""
_SECRET_OPTION = re.compile(
    r"(?i)^-*\+*(?:[\w.-]*[._-])?(token|secret|password|passwd|pwd|key|apikey|auth|credentials?)$"
)
"""Name of an option, or of a setting such as `wandb.api_key=…`, whose value nobody else may read."""
_SECRET = re.compile(r"://[^/]*@|://.*\?|^(hf_|sk-|ghp_|github_pat_|glpat-|xox[a-z]-|AKIA)[\w-]{12,}$")
"""An address with a user or a query in it, or what services give out as a token."""

_PLAIN = re.compile(
    r"--[\w.-]{1,60}|-{0,2}[A-Za-z_][A-Za-z_./:, -]{0,80}|[\w.:,/+-]{1,12}|[-+\d.,e_]+|(s3|gs|hdfs|file)://[\w./-]{1,80}"
)
"""Surely no secret: an option's name, words without digits, short words, numbers, a bucket. Else only a path that is
there is shown: a list of what is dangerous would leave out the next service's token."""


def program_words() -> tuple[str, ...]:
    """Return the script of this process and its arguments; empty for anything but a script, and for one rank of many.

    They are as they were typed, so that a report's next command can be pasted; secrets among them are hidden: traces
    are shared. A module, or a rank's script, is run by a command of which this process knows nothing.
    """
    script, *arguments = sys.argv or [""]
    is_module = getattr(sys.modules.get("__main__"), "__spec__", None) is not None
    if is_module or not script.endswith(".py") or not os.path.isfile(script):  # noqa: PTH113
        return ()
    if int(os.environ.get("WORLD_SIZE") or 1) > 1:
        return ()
    if sum(map(len, arguments)) > MOST_CHARACTERS:
        return ()
    return (script, *without_secrets(arguments))


def without_secrets(arguments: Sequence[str]) -> list[str]:
    """Return arguments with the values hidden that aren't plain, those of options such as `--hf-token` in any case."""
    shown: list[str] = []
    for before, word in zip(["", *arguments], arguments, strict=False):
        name, equals, value = word.partition("=")
        if before.startswith("-") and _SECRET_OPTION.fullmatch(before):
            shown.append(HIDDEN)
        elif equals and (_SECRET_OPTION.fullmatch(name) or (not _SECRET.search(value) and not _is_plain(value))):
            shown.append(f"{name}={HIDDEN}")
        else:
            shown.append(word if not _SECRET.search(value or word) and (equals or _is_plain(word)) else HIDDEN)
    return shown


def _is_plain(value: str) -> bool:
    return not value or _PLAIN.fullmatch(value) is not None or os.path.exists(value)  # noqa: PTH110


def default_name(name: str = "") -> str:
    """Return the running program's name, or another, fit for a file, with the rank where there are several."""
    rank, world = ranks()
    return clean_name(name or program_name()) + (f"_rank{rank}" if world > 1 else "")


def program_name() -> str:
    """Return what a trace of this process is called: its script's name, or its package's where it runs as a module."""
    path = Path(sys.argv[0] if sys.argv and not sys.argv[0].startswith("-") else "")
    return path.absolute().parent.name if path.stem == "__main__" else path.stem


def clean_name(name: str) -> str:
    """Return the name with `_` for everything that could trouble a file system or TensorBoard's file pattern."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_") or "trace"


def group_of_ranks() -> str:
    """Return a name, fit for a file, that the ranks of one program share: its rendezvous, else who started it."""
    names = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")
    words = [os.environ.get(name, "") for name in names] if "MASTER_PORT" in os.environ else [str(os.getppid())]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]


def on_one_machine() -> bool:
    """Return whether all ranks run here: those on other machines can't be ended together."""
    here, world = os.environ.get("LOCAL_WORLD_SIZE", ""), os.environ.get("WORLD_SIZE", "")
    return not here or here == world


def ranks() -> tuple[int, int]:
    """Return this process's rank, and how many there are: by torch's process group, else by the environment.

    The environment of forked ranks may be that of the process that forked them (`accelerate.debug_launcher`).
    """
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is not None:
        with contextlib.suppress(Exception):
            if distributed.is_available() and distributed.is_initialized():
                return int(distributed.get_rank()), int(distributed.get_world_size())
    rank, world = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    return (int(rank), int(world)) if rank.isdigit() and world.isdigit() else (0, 1)
