"""Compares two runs of a program, before and after a change."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from syncscan.fixing.messages import RunResult
from syncscan.fixing.quoted import instead
from syncscan.model.proof import Fingerprint, Same, Tensors
from syncscan.proof import sameness

TOLERANCE = 1e-5
"""Relative; what is printed with fewer digits may differ in the last of them by one."""
GRAPHS = 20
"""Nodes of autograd's graphs that may be alive in addition, beside twice as many as before."""
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|inf|nan)\b")
_BAR = re.compile(
    r"(?P<at>\d+(?:\.\d+)?[kMG]?(?:/\d+(?:\.\d+)?[kMG]?)?)\w* \[(?:\d+:)?\d\d:\d\d(?:<(?:(?:\d+:)?\d\d:\d\d|\?))?"
    r"(?:, +(?:[\d.]+[kMG]?|\?)[^\s,/\]]*/[^\s,\]]+)?"
)
"""Position and times of tqdm's bars: ` 3/20 [00:02<00:47,  2.48s/it, loss=0.5]`."""
_WARNING = re.compile(r"^\S.*:\d+: \w*Warning: ")


class Reference:
    """The behavior of the original program, from two runs, so that noise between them is known.

    Args:
        first: a run.
        again: another.
    """

    def __init__(self, first: RunResult, again: RunResult) -> None:
        self.first, self.again = first, again
        self.printed = _Lines(first.printed, again.printed)
        self.errors = _Lines(_without_warnings(first.errors), _without_warnings(again.errors))
        self._fingerprints = fingerprint(first), fingerprint(again)

    def differs(self, run: RunResult) -> str:
        """Return what a run of a changed program does otherwise, as the end of a sentence; empty where nothing."""
        if run.failure:
            return run.failure
        if run.raised is not None and self.first.raised is None:
            return f"the patched program raises {run.raised.at_code}"
        if run.code != self.first.code:
            last = [line for line in run.errors.splitlines() if line.strip()][-1:]
            return f"the patched program ended with exit code {run.code}" + (f": {last[0][:160]}" if last else "")
        return (
            self.printed.differs(run.printed, "prints")
            or self.errors.differs(_without_warnings(run.errors), "writes to stderr")
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


class _Lines:
    """Printed lines, with those whose numbers differ from run to run; progress bars are compared apart."""

    def __init__(self, text: str, again: str) -> None:
        self._bars = _bars(text)
        self._lines = _lines(text)
        other = _lines(again)
        self._unstable = len(self._lines) != len(other)
        self._noisy = {k for k, (a, b) in enumerate(zip(self._lines, other, strict=False)) if a != b}

    def differs(self, text: str, does: str) -> str:
        """Return how another run's lines differ; empty where they don't."""
        bars = _bars(text)
        for at in self._bars.keys() & bars.keys():
            strange = [b for b in bars[at] if not any(same_line(a, b) for a in self._bars[at])]
            if strange and len(bars[at]) == len(self._bars[at]):
                return f"the patched program {does} {instead(strange[0], self._bars[at][0])}"
        lines = _lines(text)
        if self._unstable:
            return ""
        if len(lines) != len(self._lines):
            return f"the patched program {does} {len(lines)} lines instead of {len(self._lines)}"
        for k, (a, b) in enumerate(zip(self._lines, lines, strict=True)):
            same = _NUMBER.split(a) == _NUMBER.split(b) if k in self._noisy else same_line(a, b)
            if not same:
                return f"the patched program {does} {instead(b, a)}"
        return ""


def _lines(text: str) -> list[str]:
    return [line for line in _parts(text) if not _BAR.search(line)]


def _bars(text: str) -> dict[str, list[str]]:
    """Return the states of progress bars by their position, `3/20`, without times, which differ from run to run."""
    states: dict[str, list[str]] = {}
    for line in _parts(text):
        if match := _BAR.search(line):
            states.setdefault(match["at"], []).append(_BAR.sub(r"\g<at> [", line).strip())
    return states


def _parts(text: str) -> Iterator[str]:
    return (part for line in text.splitlines() for part in line.split("\r"))


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


def same_line(a: str, b: str) -> bool:
    """Return whether two lines are equal, up to rounding of their fractions."""
    if a == b:
        return True
    if _NUMBER.split(a) != _NUMBER.split(b):
        return False
    return all(x == y or _same_number(x, y) for x, y in zip(_NUMBER.findall(a), _NUMBER.findall(b), strict=True))


def _same_number(x: str, y: str) -> bool:
    if "." not in x or "." not in y:
        return False
    p, q, digits = float(x), float(y), len(x.partition(".")[2])
    exponent = "e" in (x + y).lower()
    last = not exponent and digits == len(y.partition(".")[2]) and abs(p - q) <= 1.01 * 10.0**-digits
    return last or abs(p - q) <= TOLERANCE * max(abs(p), abs(q))


def fingerprint(run: RunResult) -> Fingerprint:
    """Return what a run computed."""
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
    """Return how often a run waits at each line of each file."""
    counts: Counter[tuple[str, int]] = Counter()
    for place in run.places:
        counts[place.file, place.line] += place.count
    return counts


__all__ = ["TOLERANCE", "Reference", "fingerprint", "same_line", "waits_of"]
