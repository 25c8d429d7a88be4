"""Runs one job on the CPU with a simulated GPU, in a process of its own, and returns the outcome.

Runs in a process of its own, which then belongs to the program.
"""

from __future__ import annotations

import ast
import atexit
import builtins
import contextlib
import gc
import importlib
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import msgspec

from syncscan import api
from syncscan.capture.main_script import Exit, RunComplete, run_function, run_main
from syncscan.capture.optimizer_hook import OptimizerCall, OptimizerHook, StepMarks
from syncscan.dryrun.pretend import Pretence
from syncscan.dryrun.recorder import DryRunSession
from syncscan.fixing import probes
from syncscan.fixing.messages import ProgramJob, Racing, Raised, RunResult, WaitingLine, raised
from syncscan.fixing.probes import ProbeRecorder
from syncscan.fixing.reproducible import fix_clock, fix_randomness
from syncscan.model.finding import Finding
from syncscan.model.libraries import is_library
from syncscan.model.race import TEXTS
from syncscan.proof.fingerprint import Fingerprinting
from syncscan.proof.outcome import Fingerprint
from syncscan.source.text import read

OVER = "_syncscan_over_"
"""Name of the question among the builtins."""


class LoopEnds:
    """Ends the loops of a program; a loop that begins after the last step takes `most` turns."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._loops: dict[str, list[tuple[int, int, int]]] = {}
        """First and last line of each loop's body, and its number, by file."""
        self._count = 0
        self._ended: set[tuple[int, int]] = set()
        self._turns: Counter[tuple[int, int]] = Counter()
        self.is_over = False

    def install(self) -> None:
        """Put the question among the builtins."""
        setattr(builtins, OVER, self._asked)

    def with_questions(self, tree: ast.Module, path: str) -> ast.Module:
        """Return a module whose loops ask in each turn whether they are over."""
        loops = self._loops.setdefault(path, [])
        for node in ast.walk(tree):
            if isinstance(node, ast.For | ast.While):
                self._count += 1
                loops.append((node.body[0].lineno, node.end_lineno or node.lineno, self._count))
                node.body.insert(0, _question(self._count, node.body[0]))
        return tree

    def end(self) -> bool:
        """End the loops that are running; return whether there are any."""
        self.is_over = True
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            for first, last, number in self._loops.get(frame.f_code.co_filename, ()):
                if first <= frame.f_lineno <= last:
                    self._ended.add((id(frame), number))
            frame = frame.f_back
        return bool(self._ended)

    def _asked(self, number: int) -> bool:
        if not self.is_over:
            return False
        key = id(sys._getframe(1)), number
        self._turns[key] += 1
        return key in self._ended or self._turns[key] > self._most


def _question(number: int, first: ast.stmt) -> ast.stmt:
    call = ast.Call(ast.Name(OVER, ast.Load()), [ast.Constant(number)], [])
    question = ast.copy_location(ast.If(call, [ast.Break()], []), first)
    return ast.fix_missing_locations(question)


SEED = 0
FINGERPRINTED = 200
"""Steps whose losses are compared."""
LOOKS, EVERY = 30, 3
"""The graphs that are alive are counted in the first steps, each third."""

CALLS = 4
"""Calls of a function that is run for no number of steps."""
BEHIND = 10
"""Steps that a program may make after the last one that is wanted, until its loops have ended."""


class _Fingerprinting(Fingerprinting):
    """Reads parameters without telling the simulated device."""

    def _stepping(self, optimizer: Any, arguments: Any, keywords: Any) -> None:
        with _unseen():
            super()._stepping(optimizer, arguments, keywords)


@contextlib.contextmanager
def _unseen() -> Iterator[None]:
    """Run torch's functions directly, so that nothing counts as the program's work."""
    torch = importlib.import_module("torch")
    modes = importlib.import_module("torch.utils._python_dispatch")
    with torch._C.DisableTorchFunction(), modes._disable_current_modes():
        yield


def run(job: ProgramJob) -> RunResult:
    """Run the program of a job, to its end or for as many steps as it asks."""
    pretence = Pretence()
    loop_ends = LoopEnds(2 * job.steps) if job.steps and job.ends_loops and not job.function else None
    codes = _Codes(job, loop_ends)
    session = pretence.begin()
    recorder = ProbeRecorder(lambda: session.recording.waits)
    recorder.install()
    fix_clock()
    fix_randomness()
    _seed()
    steps = _OptimizerSteps(job, session, loop_ends)
    with codes.used(), _covered(job.covered) as lines:
        ended = steps.followed(lambda: _run(job, codes, steps))
        _end()
    with _unseen():
        fingerprint = msgspec.convert(steps.fingerprint.result(), Fingerprint)
    pretence.end()
    outcome = RunResult(
        code=ended.code,
        raised=_raised(ended),
        gaps=[f"{what} ({file}:{line})" for what, _, file, line in session.gaps()],
        files=_user_files(job),
        observed=recorder.observed(job.probed) if job.probed else {},
        lines={file: sorted(ran) for file, ran in lines.items()},
        fingerprint=fingerprint,
        graph=steps.graph,
        races=_races(session),
    )
    if session.recording.waits:
        outcome.places = [_place(finding) for finding in api.analyze_pretended(session.trace()).findings]
    return outcome


class _Codes:
    """Gives Python the texts of a job in place of its files, with probes where the job asks for them."""

    def __init__(self, job: ProgramJob, loop_ends: LoopEnds | None) -> None:
        self._texts = dict(job.sources)
        self._loop_ends = loop_ends
        self._probed = {file: number for number, file in enumerate(job.probed)}

    def of(self, path: str) -> CodeType | None:
        """Return the code that runs in place of a file; None if the file runs as it is."""
        loop_ends = self._loop_ends if _is_users(path) else None
        if path not in self._probed and path not in self._texts and loop_ends is None:
            return None
        text = self._texts.get(path) or read(path).text
        tree = probes.probed(text, self._probed[path]) if path in self._probed else ast.parse(text)
        if loop_ends is not None:
            tree = loop_ends.with_questions(tree, path)
        code: CodeType = compile(tree, path, "exec", dont_inherit=True)
        return code

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """Make imports use these codes, and `inspect` their texts."""
        linecache = importlib.import_module("linecache")
        for path, text in self._texts.items():
            linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
        if self._loop_ends is not None:
            self._loop_ends.install()
        original = SourceFileLoader.get_code

        def get_code(loader: Any, name: str) -> CodeType | None:
            return self.of(loader.get_filename(name)) or original(loader, name)

        SourceFileLoader.get_code = get_code  # type: ignore[method-assign,assignment]
        try:
            yield
        finally:
            SourceFileLoader.get_code = original  # type: ignore[method-assign]


class _OptimizerSteps:
    """Counts the optimizer's steps, and fingerprints what they compute."""

    def __init__(self, job: ProgramJob, session: DryRunSession, loop_ends: LoopEnds | None) -> None:
        self._most = job.steps or (CALLS - 1 if job.function else 0)
        self._session, self._loop_ends = session, loop_ends
        self._marks = StepMarks()
        self._by_calls = bool(job.function)
        self.fingerprint = _Fingerprinting(rounded=False)
        self.count = self.graph = 0
        self.ended_early = False

    def followed(self, program: Callable[[], Exit]) -> Exit:
        """Run a program whose optimizers' steps are steps; return how it ended."""
        hook = OptimizerHook(self._stepped)
        try:
            return program()
        finally:
            hook.remove()
            self._session.recording.step(None)

    def ended(self, returned: Any = None) -> None:
        with _unseen():
            if self.count < FINGERPRINTED:
                self.fingerprint.step(returned)
        if self.count < LOOKS and self.count % EVERY == 0:
            self.graph = max(self.graph, _alive())
        self.count += 1
        if self._most and self.count > self._most:
            self._session.recording.step(None)
            self._end_loops()
        else:
            self._session.recording.step(self.count)

    def _end_loops(self) -> None:
        """Have the running loops end with this turn; unwind the program where there are none, or the steps go on."""
        ends = self._loop_ends is not None and (self.ended_early or self._loop_ends.end())
        self.ended_early = True
        if not ends or self.count > self._most + BEHIND:
            raise RunComplete

    def _stepped(self, optimizer: Any, arguments: Any, keywords: Any) -> None:
        if self._by_calls:
            return
        mark = self._marks.saw(optimizer, fixed=False)
        if mark is OptimizerCall.ANEW:
            self.fingerprint.forget()
        if mark is not OptimizerCall.NOTHING:
            self.ended()


def _alive() -> int:
    """Return the number of autograd graph nodes that are alive."""
    torch = importlib.import_module("torch")
    with torch._C.DisableTorchFunction():
        tensors = (o for o in gc.get_objects() if issubclass(type(o), torch.Tensor))
        todo = [t.grad_fn for t in tensors if t.grad_fn is not None]
    seen: set[Any] = set()
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            todo += [inner for inner, _ in node.next_functions]
    return len(seen)


def _run(job: ProgramJob, codes: _Codes, steps: _OptimizerSteps) -> Exit:
    if job.function:
        return run_function(job.target, job.function, steps.ended)
    return run_main(job.target, job.arguments, module=job.module, code_of=codes.of)


def _raised(ended: Exit) -> Raised | None:
    """Return what ended a program; None where it only gave an exit code, whose reason is on stderr."""
    error = ended.error
    if error is None or (isinstance(error, SystemExit) and not isinstance(error.code, str)):
        return None
    return raised(error, _is_users)


def _end() -> None:
    """Run exit handlers and flush streams, as the interpreter does at its end."""
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()


@contextlib.contextmanager
def _covered(files: list[str]) -> Iterator[dict[str, set[int]]]:
    """Note the lines of these files that run."""
    lines: dict[str, set[int]] = {file: set() for file in files}

    def entered(frame: FrameType, event: str, argument: Any) -> Any:
        ran = lines.get(frame.f_code.co_filename)
        if ran is None:
            return None

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            ran.add(frame.f_lineno)
            return line

        return line(frame, event, argument)

    if files:
        sys.settrace(entered)
        importlib.import_module("threading").settrace(entered)
    try:
        yield lines
    finally:
        sys.settrace(None)


def _user_files(job: ProgramJob) -> list[str]:
    """Return the Python files that ran and belong to no library."""
    named = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    files = {str(Path(file).absolute()) for file in named if isinstance(file, str) and _is_users(file)}
    own = Path(job.target)
    if own.suffix == ".py":
        files.add(str(own.absolute()))
    return sorted(filter(_is_users, files))


def _is_users(path: str) -> bool:
    return path.endswith(".py") and not is_library(path) and "syncscan" not in Path(path).parts


def _races(session: DryRunSession) -> list[Racing]:
    return [
        Racing(kind=kind.value, title=TEXTS[kind]["title"], file=str(Path(file).absolute()), line=line)
        for kind, (file, line, _) in session.order.races
    ]


def _place(finding: Finding) -> WaitingLine:
    source = finding.source
    return WaitingLine(
        rule=finding.rule,
        title=finding.title,
        advice=finding.fix,
        file=str(Path(source.file).absolute()) if source else "",
        line=source.line if source else 0,
        count=finding.count,
        cause=finding.cause.value,
    )


def _seed() -> None:
    """Seed Python, NumPy and torch; the program may do so again."""
    random.seed(SEED)
    importlib.import_module("torch").manual_seed(SEED)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(SEED)
