"""Commands in place of programs, compared by a number that they print: one line of output, or JSON, has it.

A command that goes on printing its number takes turns: the other's processes are stopped meanwhile, and the first
numbers after a stop are left out, since they count it. One that prints it at its end runs whole, one after the other;
so does a server, of which a client's number, or its time, is taken.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import re
import socket
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

from syncscan.errors import ProgramFailed, UsageError
from syncscan.proof.outcome import Difference, Result, Same, Side
from syncscan.proof.running_process import GRACE_S, CommandRun, ShellCommand, ended_with_us
from syncscan.proof.trial import TooFewSteps, Turn, code_caches_for_now
from syncscan.scratch import Scratch

_COLORS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_RANK = re.compile(r"\[(?:rank|default|worker)\s?(\d+)\]")
"""How torchrun and torch's logging mark a rank's line."""
_STEP = re.compile(r"\.([^.\[\]]+)|\[(-?\d+)\]")


class Metric:
    """Finds a command's number in its lines.

    Args:
        text: a regular expression whose group `value`, or else the first, is the number (a group `rank` tells whose it
            is), or a path such as `$.results[0].tokens_per_s` into lines, or a whole output, of JSON.

    Raises:
        UsageError: it is neither.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._path = _path(text) if text.startswith("$") else None
        try:
            self._expression = re.compile(text)
        except re.error as error:
            raise UsageError(f"'{text}' is no regular expression: {error}.") from None
        if self._path is None and not self._expression.groups:
            raise UsageError(f"'{text}' has no group for the number.", r"Write one, as in --metric 'loss: ([\d.]+)'.")

    def in_line(self, line: str) -> tuple[str, float] | None:
        """Return the rank (empty if none is named) and the number of a line; None if it has none."""
        if self._path is not None:
            value = _at(_parsed(line), self._path) if line.lstrip().startswith(("{", "[")) else None
            return None if value is None else (self._rank(line), value)
        match = self._expression.search(_COLORS.sub("", line))
        value = None if match is None else _number(match[self._group])
        if match is None or value is None:
            return None
        return match.groupdict().get("rank") or self._rank(line), value

    def in_document(self, text: str) -> float | None:
        """Return the number of an output that is one document of JSON."""
        return None if self._path is None else _at(_parsed(text), self._path)

    def without(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield what lines say besides: those of JSON that have the number not at all, of others the rest."""
        for line in lines:
            if self._path is None:
                yield self._expression.sub("…", _COLORS.sub("", line))
            elif self.in_line(line) is None:
                yield line

    @property
    def _group(self) -> str | int:
        return "value" if "value" in self._expression.groupindex else 1

    def _rank(self, line: str) -> str:
        match = _RANK.search(line)
        return match[1] if match else ""


def _path(text: str) -> list[str | int]:
    if _STEP.sub("", text) != "$" or text == "$":
        raise UsageError(f"'{text}' is no path into JSON.", "Write one as $.results[0].tokens_per_s.")
    return [match[1] or int(match[2]) for match in _STEP.finditer(text)]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _at(value: Any, path: Iterable[str | int]) -> float | None:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return _number(value)


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return float(value.replace(",", "") if isinstance(value, str) else value)
    except (TypeError, ValueError):
        return None


WARM = 2
"""Numbers of a command that are left out at its begin."""
LEAD = 2
"""Numbers that are left out after a stop: one may be printed late, of a time before it, and the next counts the stop
(karpathy/nanoGPT takes an iteration's time before it waits for the loss)."""
FEWEST = 3
"""Numbers of a turn, at least."""
ENOUGH = 8
"""Numbers that a command prints before its end if it is to take turns."""
APART_S = 6.0
"""How long one is measured that has its process to itself."""
TURN_S = 1.0
"""How long a turn lasts, about: long beside the number that is left out at its begin."""
OFF = 1.2
"""By what factor a number that counts a stop is worse than the one before, at least: less can't spoil a turn."""
PORT = "PET_MASTER_PORT"
"""Variable that torchrun reads its port from, unless its words name one. A user's own would be one for both."""
NOTHING = Difference(None, None)
NOT_COMPARED = Result(Same.NOT_COMPARED, 0, NOTHING, None, None, "output")


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """How commands are compared: the number (None: how long a run takes), and a server's client."""

    metric: Metric | None = None
    higher: bool = False
    ready: str = ""
    client: str = ""
    same_output: bool = False


class CommandTrials:
    """Runs the two commands, and leaves no process behind. `whole` is set by `tried`: each runs to its end."""

    def __init__(
        self, commands: Mapping[Side, ShellCommand], options: CommandOptions, limit_s: float, in_place: bool = False
    ) -> None:
        self._commands, self._options, self._in_place = commands, options, in_place
        self.metric, self.higher, self.client = options.metric, options.higher, options.client
        self.deadline = time.monotonic() + limit_s
        self.whole = False
        self._open: list[CommandTrial | ServerTrial] = []
        self._until = contextlib.ExitStack()
        self._caches = {} if in_place else self._until.enter_context(code_caches_for_now())

    def __enter__(self) -> CommandTrials:
        self._until.enter_context(ended_with_us())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for trial in self._open:
            trial.close(grace_s=0)
        self._until.close()

    def open(self, side: Side, **of_programs: Any) -> CommandTrial | ServerTrial:
        """Start a command; what programs take besides, such as a seed, isn't for commands."""
        command, o = self._commands[side], self._options
        if o.client:
            server = self.run(command, re.compile(o.ready).search)
            trial: CommandTrial | ServerTrial = ServerTrial(server, command.name, self)
        else:
            trial = self.printing(command)
        self._open.append(trial)
        return trial

    def printing(self, command: ShellCommand) -> CommandTrial:
        """Start a command that prints the number."""
        metric = self._options.metric
        return CommandTrial(self.run(command, metric.in_line if metric else None), command.name, self)

    def run(self, command: ShellCommand, find: Callable[[str], Any] | None) -> CommandRun:
        """Start a command, whose writes go to a scratch view unless they are to reach the user's files."""
        environment = {PORT: str(_free_port()), **self._caches, **command.environment}
        return CommandRun(replace(command, environment=environment), None if self._in_place else Scratch.made(), find)

    @property
    def together(self) -> bool:
        """Whether both are running, so that turns are short."""
        return sum(isinstance(trial, CommandTrial) and trial.run.code is None for trial in self._open) > 1

    def alone(self, trial: CommandTrial) -> bool:
        """Let one go on, and none of the others; return whether it was stopped before."""
        for other in self._open:
            if isinstance(other, CommandTrial) and other is not trial:
                other.run.pause()
        return trial.run.resume()

    def tried(self) -> Result:
        """Run each command once, which warms caches, and return whether they print the same, if that is asked for.

        It shows whether they can take turns: a command that ends with a few numbers can't, nor can a server.

        Raises:
            ProgramFailed: a command fails, or prints no number.
        """
        if self._options.client:
            self.whole = True
            return NOT_COMPARED
        before, after = self._tried(Side.BEFORE), self._tried(Side.AFTER)
        return _compared(before, after) if self._options.same_output else NOT_COMPARED

    def _tried(self, side: Side) -> list[str]:
        """Return what a command prints besides its numbers; nothing of one that goes on, unless that is asked for."""
        metric, trial = self._options.metric, self.printing(self._commands[side])
        self._open.append(trial)
        goes_on = metric is not None and trial.run.wait(lambda: len(trial.run.matched) >= ENOUGH, self.deadline)
        if not goes_on:
            trial.number()
            self.whole = True
        elif self._options.same_output:
            trial.finish()
        trial.close()
        return list(metric.without(trial.run.lines)) if metric else trial.run.lines


def _free_port() -> int:
    """Return a port for a launcher's ranks to meet at: two at a time can't both have torchrun's usual one."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _compared(before: list[str], after: list[str]) -> Result:
    pairs = itertools.zip_longest(before, after, fillvalue="nothing")
    why = next((f"line {n} is '{a[:60]}' and '{b[:60]}'" for n, (a, b) in enumerate(pairs, 1) if a != b), "")
    return Result(Same.NO if why else Same.YES, len(before), NOTHING, None, None, "output", why)


class CommandTrial:
    """A command that prints its number."""

    def __init__(self, run: CommandRun, name: str, trials: CommandTrials) -> None:
        self.run, self._name, self._trials = run, name, trials

    def ready(self) -> int:
        """Wait until it is warm; return how many numbers come before those of a turn."""
        if self._trials.whole:
            return 0
        self._await(WARM)
        return LEAD

    def turn(self, count: int) -> Turn:
        """Let it go on alone, and take the mean of as many numbers, or of a turn's time, but of a few at least.

        Of a run that is taken whole, it is its number.
        """
        if self._trials.whole:
            return Turn(self.number(), "host", self.run.seconds * 1e6)
        taken, begin = self.run.matched, len(self.run.matched)
        stopped = self._trials.alone(self)
        self._await(begin + LEAD)
        began, first = time.monotonic(), begin + LEAD
        self._await(first + FEWEST)
        self._await(first + count, began + (TURN_S if self._trials.together else APART_S))
        numbers = taken[first : first + max(FEWEST, count)]
        if stopped:
            self._refuse_averages(begin, first, first + len(numbers))
        took_us = (time.monotonic() - began) / len(numbers) * 1e6
        return Turn(self._slowest(numbers, statistics.fmean), "printed", took_us)

    def number(self) -> float:
        """Wait for the end, and return the number: of several the median without the first, of two the last.

        Raises:
            ProgramFailed: it failed, or printed no number.
        """
        self.finish()
        metric = self._trials.metric
        if metric is None:
            return self.run.seconds
        numbers = self.run.matched
        if not numbers and (value := metric.in_document("\n".join(self.run.lines))) is not None:
            numbers = [("", value)]
        if not numbers:
            raise ProgramFailed(f"{self._name} printed nothing that {metric.text} finds.", self.run.end_of_output())
        return self._slowest(numbers[1:] or numbers, statistics.median)

    def finish(self) -> None:
        """Let it come to its end.

        Raises:
            ProgramFailed: it failed.
        """
        self.run.wait(lambda: False, self._trials.deadline)
        if self.run.code:
            raise ProgramFailed(f"{self._name} ended with exit code {self.run.code}.", self.run.end_of_output())

    def close(self, grace_s: float = GRACE_S) -> int:
        """End it; it gets no time for what it does at its end if it still runs."""
        self.run.end(0 if self.run.code is None else grace_s)
        return self.run.code or 0

    def _await(self, count: int, until: float = math.inf) -> None:
        if not self.run.wait(lambda: len(self.run.matched) >= count or time.monotonic() > until, self._trials.deadline):
            self.finish()
            made = len(self.run.matched)
            raise TooFewSteps(f"{self._name} ended after {made} numbers, which is too few.", made)

    def _refuse_averages(self, begin: int, first: int, end: int) -> None:
        """Refuse numbers that count the time in which the command was stopped for longer than one number.

        A mean since the begin does: it is then nearer to the number right after the stop than to the one before, though
        numbers come as fast as before. Where they come more slowly, the machine is busier.

        Args:
            begin: the index of the first number after the stop; `first` and `end` are those of the turn.
        """
        values = [value for _, value in self.run.matched]
        before, middle = statistics.median(values[max(0, begin - FEWEST) : begin]), statistics.median(values[first:end])
        worst = min(values[begin:first]) if self._trials.higher else max(values[begin:first])
        worse, then = ((before / x) if self._trials.higher else (x / before) for x in (worst, middle))
        pace, now = self._pace(max(1, begin - FEWEST), begin), self._pace(first, end)
        slower = now / pace if min(now, pace) > 0 else 1.0  # several at a time, as a buffer has them, tell no pace
        if worse > OFF and abs(middle - worst) < abs(middle - before) and then > slower * math.sqrt(worse):
            raise ProgramFailed(f"{self._name} counts the time in which it was stopped.")

    def _pace(self, begin: int, end: int) -> float:
        """Return the time from one number to the next, in s, between two of which the command wasn't stopped."""
        return (self.run.times[end - 1] - self.run.times[begin - 1]) / (end - begin)

    def _slowest(self, numbers: Sequence[tuple[str, float]], middle: Callable[[Sequence[float]], float]) -> float:
        """Return the number of the rank whose is worst."""
        ranks: dict[str, list[float]] = {}
        for rank, value in numbers:
            ranks.setdefault(rank, []).append(value)
        number = (min if self._trials.higher else max)(map(middle, ranks.values()))
        if not (math.isfinite(number) and number > 0):
            raise ProgramFailed(f"{self._name} printed {number:g}, which has no ratio to another number.")
        return number


class ServerTrial:
    """A server, and a client that is run against it."""

    def __init__(self, server: CommandRun, name: str, trials: CommandTrials) -> None:
        self._server, self._name, self._trials = server, name, trials

    def ready(self) -> int:
        """Wait until the server prints that it is ready."""
        if not self._server.wait(lambda: bool(self._server.matched), self._trials.deadline):
            raise ProgramFailed(f"{self._name} ended before it was ready.", self._server.end_of_output())
        return 0

    def turn(self, count: int) -> Turn:
        """Run the client, and return its number, or how long it ran."""
        client = self._trials.printing(ShellCommand(self._trials.client, "The client"))
        try:
            return client.turn(count)
        finally:
            client.close(grace_s=0)

    def close(self, grace_s: float = GRACE_S) -> int:
        self._server.end(grace_s)
        return 0
