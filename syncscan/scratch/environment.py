"""The environment of a program that runs in a view: experiment trackers send nothing, and it can tell a dry run."""

from __future__ import annotations

import os
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
"""What each tracker documents to keep it from sending anything; a program that asks for more in its code gets it."""


def quiet(folder: Path, *, dry: bool) -> None:
    """Set the environment of this process and those that it starts.

    Args:
        folder: a folder of the view, for trackers that only write to a place.
        dry: whether this is a dry run.
    """
    os.environ.update(TRACKERS_OFF)
    os.environ["WANDB_DIR"] = str(folder)
    os.environ["MLFLOW_TRACKING_URI"] = f"sqlite:///{folder}/mlflow.db"
    if dry:
        os.environ[DRY_RUN] = "1"
