"""Define what an attached process is asked for, and the folder through which it is asked and answers."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

ORDER, ANSWERS = "order.json", "answers.jsonl"
Action = Literal["capture", "watch", "stop", "dump", "guard"]


@dataclass(frozen=True, slots=True)
class Order:
    """An order to a process: an action, where its result goes, and how much of it."""

    action: Action
    out: str = ""
    steps: int = 3
    warmup: int = 4
    interval: float = 20.0
    wait_s: float = 600.0
    capture_on_alarm: bool = False
    asker: int = 0
    """Process that waits for the answers; 0 where that is unknown."""

    def write(self, folder: Path) -> None:
        (folder / ORDER).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @staticmethod
    def read(folder: Path) -> Order:
        return Order(**json.loads((folder / ORDER).read_text(encoding="utf-8")))


def answer(folder: Path, **row: Any) -> None:
    """Append a line to the answers; in the attached process.

    A folder that has gone wants none, and one whose command was killed is removed.
    """
    if not folder.is_dir():
        return
    if not _is_awaited(folder):
        shutil.rmtree(folder, ignore_errors=True)
        return
    file = os.open(folder / ANSWERS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, json.dumps(row).encode() + b"\n")
    finally:
        os.close(file)


def _is_awaited(folder: Path) -> bool:
    """Return whether the command that wrote a folder's order still runs, as far as is known."""
    try:
        asker = Order.read(folder).asker
        if asker:
            os.kill(asker, 0)
    except ProcessLookupError:
        return False
    except (OSError, ValueError):
        return True
    return True


def answers(folder: Path, since: int = 0) -> Iterator[dict[str, Any]]:
    file = folder / ANSWERS
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines()[since:]:
            yield json.loads(line)
