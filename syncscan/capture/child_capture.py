"""Set up the capture in a process of a captured command, once it imports torch.

Nothing else is imported before: the process may be a launcher, a shell's helper, a loader's worker.
"""

from __future__ import annotations

from syncscan.patches import when_imported

VARIABLE = "SYNCSCAN_CHILD"
"""Environment variable with the captures to make, as JSON."""


def begin() -> None:
    """Look on from when the process imports torch."""
    when_imported("torch", lambda torch: _install())


def _install() -> None:
    import atexit
    import os
    import sys

    try:
        from syncscan.capture.captured_process import ChildRunner, follow_forks
        from syncscan.capture.processes import WantedCaptures

        wanted = WantedCaptures.read(os.environ[VARIABLE])
        follow_forks(wanted)
        runner = ChildRunner(wanted)
    except Exception as error:  # the program's import of torch must not fail by it
        sys.stderr.write(
            f"syncscan: this process isn't captured ({type(error).__name__}: {error}):"
            f" its environment, {sys.prefix}, lacks what syncscan needs.\n"
        )
        return
    atexit.register(runner.end)
