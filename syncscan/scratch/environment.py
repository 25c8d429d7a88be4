"""The environment of a program that runs in a view: experiment trackers send nothing, and it can tell a dry run."""

from __future__ import annotations

import contextlib
import os
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


def quiet(folder: Path, *, dry: bool) -> None:
    """Set the environment of this process and those that it starts.

    Args:
        folder: a folder of the view, for trackers that only write to a place.
        dry: whether this is a dry run.
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
