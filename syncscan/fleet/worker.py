"""The process that analyzes traces for a pool: requests on stdin, outcomes on stdout."""

from __future__ import annotations

import os
import pickle
import sys

from syncscan.fleet.outcome import outcome_of
from syncscan.load import memory_check


def main() -> None:
    """Work until stdin ends: first comes the memory limit in bytes or None, then (path, options) pairs."""
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # what a library prints is no answer
        most = pickle.load(sys.stdin.buffer)
        if most is not None:
            memory_check.hold_to(most)
        while True:
            try:
                path, options = pickle.load(sys.stdin.buffer)
            except EOFError:
                return
            pickle.dump(outcome_of(path, options, most), answers)
            answers.flush()
