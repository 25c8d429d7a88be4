"""Read the job that `check` or `diff` is given, if the room of jobs is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from syncscan import features
from syncscan.errors import UsageError

if TYPE_CHECKING:
    from syncscan.cli.analysis_options import AnalysisOptions
    from syncscan.model.fleet import Fleet


def is_job(fleet: bool, paths: Sequence[str]) -> bool:
    """Return whether the option `--fleet` or the name of a saved job says that these are a job's."""
    if "fleet" not in features.rooms():
        if fleet:
            raise UsageError("--fleet needs syncscan fleet, which isn't installed.", "Leave it out.")
        return False
    from syncscan.fleet.job import is_saved

    return fleet or is_saved(paths)


def job_of(paths: Sequence[str], analysis_options: AnalysisOptions) -> Fleet:
    from syncscan.fleet.job import fleet_from

    return fleet_from(paths, analysis_options)
