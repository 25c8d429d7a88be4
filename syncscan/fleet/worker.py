"""From orders on stdin to outcomes on stdout: the process that analyses one trace after another for a pool."""

from __future__ import annotations

import os
import pickle
import sys

from syncscan.fleet.outcome import outcome_of
from syncscan.load import memory


def main() -> None:
    """Work until stdin ends: first comes the memory that there is, in bytes or None, then (path, options) each time."""
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # what a library prints is no answer
        most = pickle.load(sys.stdin.buffer)
        if most is not None:
            memory.hold_to(most)
        while True:
            try:
                path, options = pickle.load(sys.stdin.buffer)
            except EOFError:
                return
            pickle.dump(outcome_of(path, options, most), answers)
            answers.flush()
