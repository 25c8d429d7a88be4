"""Compares two runs of a program, before and after a change."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Mapping
from typing import Any

from syncscan.fixing.messages import RunResult
from syncscan.fixing.printed_lines import MOST, TOLERANCE, SteadyLines, several
from syncscan.fixing.written_files import SteadyFiles
from syncscan.proof import sameness
from syncscan.proof.outcome import Fingerprint, Same, Tensors

GRAPHS = 20
"""Nodes of autograd's graphs that may be alive in addition, beside twice as many as before."""
_WARNING = re.compile(r"^\S.*:\d+: \w*Warning: ")


class Reference:
    """The behavior of the original program, from two runs, so that noise between them is known.

    `files` are those that two runs of the original program wrote; not compared if missing. `constants` are the numbers
    in the program's source and arguments, which it prints without computing anything.
    """

    def __init__(
        self,
        first: RunResult,
        again: RunResult,
        files: SteadyFiles | None = None,
        constants: Container[float] = (),
    ) -> None:
        self.first, self.again = first, again
        self.printed = SteadyLines(first.printed, again.printed)
        self.errors = SteadyLines(_without_warnings(first.errors), _without_warnings(again.errors))
        self.files = files if files is not None else SteadyFiles({}, {})
        self._constants = constants
        self._fingerprints = fingerprint(first), fingerprint(again)

    @property
    def noise(self) -> list[str]:
        """Output that differs between the two runs, in a few words each."""
        streams = (("printed", self.printed), ("stderr", self.errors))
        lines = [
            f"{several(len(noise), f'{name} line')}, such as {noise[0][:MOST]!r}"
            for name, stream in streams
            if (noise := stream.noise)
        ]
        return [*lines, *self.files.noise]

    @property
    def why_nothing_is_compared(self) -> str:
        """Why no result of the program can be compared; empty where one can.

        A result is a loss, a parameter, a returned tensor, or a number that it prints or writes to a file, as long as
        two unchanged runs agree on it. A number that only counts lines is none, nor is one that the source holds.
        """
        first, again = self._fingerprints
        if first.losses or first.end.shapes:
            result = sameness.judge(first, again, again, tolerance=TOLERANCE) if first != again else None
            unknown = result is not None and result.same is Same.UNKNOWN
            return f"nothing that it computes could be compared: {result.why}" if result and unknown else ""
        if any(output.has_results(self._constants) for output in (self.printed, self.errors, self.files)):
            return ""
        if self.noise:
            return "nothing that it computes could be compared: what it prints or writes differs from run to run"
        return "nothing that it computes could be compared: it has no optimizer, and prints or writes no result"

    def differs(self, run: RunResult, *, late: bool = False) -> str:
        """Return what a run of a changed program does otherwise, as the end of a sentence; empty where nothing.

        `late` says that progress bars, on stderr, show the numbers of the step before.
        """
        if run.failure:
            return run.failure
        if run.raised is not None and self.first.raised is None:
            return f"the patched program raises {run.raised.at_code}"
        if run.code != self.first.code:
            last = [line for line in run.errors.splitlines() if line.strip()][-1:]
            return f"the patched program ended with exit code {run.code}" + (f": {last[0][:160]}" if last else "")
        return (
            self.printed.differs(run.printed, "the patched program prints")
            or (not late and self.errors.differs(_without_warnings(run.errors), "the patched program writes to stderr"))
            or self.files.differs(run.written)
            or self._computes(run)
            or self._keeps(run)
            or self._races(run)
        )

    def _computes(self, run: RunResult) -> str:
        first, again = self._fingerprints
        other = fingerprint(run)
        if first == other or (not first.losses and not first.end.shapes):
            return ""
        result = sameness.judge(first, other, again, tolerance=TOLERANCE)
        if result.same is Same.YES:
            return ""
        return result.why or "the patched program computes something else"

    def _keeps(self, run: RunResult) -> str:
        if run.graph <= 2 * self.first.graph + GRAPHS:
            return ""
        return f"the patched program keeps autograd graphs alive: {run.graph} nodes instead of {self.first.graph}"

    def _races(self, run: RunResult) -> str:
        """Return what races in the changed program and didn't before: by kind and file, since lines move."""
        races_before = Counter((race.kind, race.file) for race in self.first.races)
        for race in run.races:
            if not races_before[race.kind, race.file]:
                return f"the patched program races: {race.title}, in line {race.line}"
            races_before[race.kind, race.file] -= 1
        return ""


def _without_warnings(text: str) -> str:
    """Return stderr without Python's warnings, which quote the code that they are about."""
    lines, result, skip = text.splitlines(), [], False
    for line in lines:
        if _WARNING.match(line):
            skip = True
        elif skip and line.startswith(("  ", "Consider using")):
            skip = not line.startswith("  ")
        else:
            skip = False
            result.append(line)
    return "\n".join(result)


def fingerprint(run: RunResult) -> Fingerprint:
    answer: Mapping[str, Any] = run.fingerprint
    if not answer:
        nothing = Tensors((), (), ())
        return Fingerprint((), nothing, nothing, "losses")
    losses = tuple(_tensors(step) for step in answer["losses"])
    return Fingerprint(losses, _tensors(answer["begin"]), _tensors(answer["end"]), answer["source"])


def _tensors(answer: Mapping[str, Any]) -> Tensors:
    shapes = tuple(tuple(shape) for shape in answer["shapes"])
    return Tensors(shapes, tuple(map(tuple, answer["numbers"])), tuple(answer["epsilons"]))


def waits_of(run: RunResult) -> Counter[tuple[str, int]]:
    counts: Counter[tuple[str, int]] = Counter()
    for place in run.places:
        counts[place.file, place.line] += place.count
    return counts
