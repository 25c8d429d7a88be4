"""Run a program in a process of its own, and ask it for a step's time or a fingerprint."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from syncscan.errors import ProgramFailed, UsageError
from syncscan.proof.compared_program import ComparedProgram
from syncscan.proof.outcome import Fingerprint, Side
from syncscan.proof.running_process import GRACE_S, ChildProcess
from syncscan.scratch import Scratch
from syncscan.scratch.environment import code_caches

BOOT = """\
import sys
sys.path[:] = [{root!r}, *filter(None, sys.path)]
from syncscan.proof.trial_process import main
main()
"""
"""Runs this syncscan in a process whose folder may hold another; a script's folder then takes the place of `root`."""
NO_STEPS = """\
It has to call an optimizer's step() in its own process, or prof.step() of a syncscan.profile() session.
  Otherwise put a step into a function and compare file.py:before with file.py:after."""


class TooFewSteps(ProgramFailed):
    """A script came to its end before all steps that were wanted; `steps` says how many it made."""

    def __init__(self, message: str, steps: int) -> None:
        super().__init__(message, "Let it run longer, or compare fewer steps with --steps.")
        self.steps = steps


@dataclass(frozen=True, slots=True)
class Turn:
    """The number of one turn: the mean time of a step in µs or the number that a command prints, and whose clock.

    `took_us` is how long a step or number took, where that isn't what is measured.
    """

    mean: float
    clock: str
    took_us: float = 0.0


class Trial:
    """A program in a process of its own.

    Args:
        program: what to run.
        deadline: until when it has to answer, by `time.monotonic`.
        seeded: of how many seeded steps a fingerprint is wanted; 0 to time steps.
        rounded: with parameters moved by a rounding error.
        delayed: with each non-blocking copy delayed on the device.
        environment: variables that it gets besides those of this process.
        in_place: writing into the user's files, not into a scratch copy.
    """

    def __init__(
        self,
        program: ComparedProgram,
        deadline: float,
        *,
        environment: Mapping[str, str] | None = None,
        in_place: bool = False,
        seeded: int = 0,
        rounded: bool = False,
        delayed: bool = False,
    ) -> None:
        self._program, self._deadline = program, deadline
        self._scratch = None if in_place else Scratch.made()
        order = {
            "target": str(program.path),
            "function": program.function,
            "arguments": program.arguments,
            "fingerprint": seeded,
            "rounded": rounded,
            "delayed": delayed,
            "moved": [str(path) for path in program.moved or ()],
            "patched": [[str(path), str(text)] for path, text in program.patched],
            "scratch": self._scratch.kind if self._scratch else "",
            "layers": [str(folder) for folder in self._scratch.folders] if self._scratch else [],
        }
        root = str(Path(__file__).parents[2])
        # With a fixed hash seed, unless the user sets one, sets have the same order in both programs.
        command = [sys.executable, "-c", BOOT.format(root=root), json.dumps(order)]
        self._process = ChildProcess(
            command, program.folder, {"PYTHONHASHSEED": "0", **os.environ, **(environment or {})}
        )

    def ready(self) -> int:
        """Wait until the program has warmed up; return how many steps come before the timed ones of a turn."""
        return int(self._answer("ready")["lead"])

    def turn(self, steps: int) -> Turn:
        """Let the program continue, and time this many of its steps."""
        self._process.send({"steps": steps})
        answer = self._answer("mean_us")
        return Turn(answer["mean_us"], answer["clock"])

    def fingerprint(self) -> tuple[Fingerprint, str]:
        """Return the fingerprint of its seeded steps, and the device's name."""
        answer = self._answer("fingerprint")
        self._same_revision(answer["strays"])
        return msgspec.convert(answer["fingerprint"], Fingerprint), answer["device"]

    def close(self, grace_s: float = GRACE_S) -> int:
        """End it, remove what it wrote, and return its exit code; what it does at its end may take so many seconds."""
        code = self._process.end(grace_s)
        if self._scratch is not None:
            self._scratch.close()
        return code

    def _answer(self, key: str) -> dict[str, Any]:
        try:
            answer = self._process.receive(self._deadline)
        except TimeoutError:
            self.close(grace_s=0)
            raise
        if answer is None or key not in answer:
            raise self._why(answer or {})
        return answer

    def _why(self, answer: Mapping[str, Any]) -> UsageError | ProgramFailed:
        if "refused" in answer:
            self.close(grace_s=0)
            return UsageError(str(answer["refused"]), str(answer["hint"]))
        code, name = self.close(), self._program.name
        code = answer.get("ended", code)
        if code:
            how = f"it was ended by {signal.Signals(-code).name}" if code < 0 else f"it ended with exit code {code}"
            return ProgramFailed(f"{name} failed: {how}.", self._output())
        steps = answer.get("steps", 0)
        if steps:
            made = "1 step" if steps == 1 else f"{steps} steps"
            return TooFewSteps(f"{name} ended after {made}, which is too few.", steps)
        return ProgramFailed(f"{name} ended without a step.", NO_STEPS)

    def _output(self) -> str:
        untracked = "\n  Files that git doesn't track aren't in the worktree." if self._program.moved else ""
        return self._process.end_of_output() + untracked

    def _same_revision(self, strays: list[str]) -> None:
        """Refuse a program at a revision that runs code of another.

        Raises:
            UsageError: it does.
        """
        if strays:
            self.close(grace_s=0)
            raise UsageError(
                f"{self._program.name} imports {strays[0]}, which is not from that revision.",
                "The package is installed from there; put its folder on PYTHONPATH, or compare two scripts.",
            )


class Trials:
    """Runs the two programs, and leaves no process behind."""

    def __init__(self, programs: Mapping[Side, ComparedProgram], limit_s: float, in_place: bool = False) -> None:
        self._programs, self._deadline, self._in_place = programs, time.monotonic() + limit_s, in_place
        self._open: list[Trial] = []
        self._until = contextlib.ExitStack()
        self._caches = {} if in_place else self._until.enter_context(code_caches_for_now())

    def __enter__(self) -> Trials:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for trial in self._open:
            trial.close(grace_s=0)
        self._until.close()

    def open(self, side: Side, **options: Any) -> Trial:
        """Start a program in a fresh process, with options as `Trial` has them."""
        trial = Trial(
            self._programs[side], self._deadline, environment=self._caches, in_place=self._in_place, **options
        )
        self._open.append(trial)
        return trial


@contextlib.contextmanager
def code_caches_for_now() -> Iterator[dict[str, str]]:
    """Yield where programs store what they compile, if the user has no such cache: a scratch copy would lose it.

    A compiled program would take a minute and more for each pair (locuslab/TCN, karpathy/makemore under
    `reduce-overhead` on an H200).
    """
    missing = [name for name, place in code_caches().items() if not place.is_dir()]
    with tempfile.TemporaryDirectory(prefix="syncscan-compiled-", ignore_cleanup_errors=True) as folder:
        folders = {name: Path(folder, name) for name in missing}
        for made in folders.values():
            made.mkdir()
        yield {name: str(made) for name, made in folders.items()}
