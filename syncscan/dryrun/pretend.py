"""Run a block that asks for a GPU on the CPU, and find where it would wait for a GPU.

    with syncscan.pretend_gpu() as rec:
        train_step()
    rec.findings

The findings are those of a trace, without costs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING

from msgspec.structs import replace

from syncscan.dryrun.device_kinds import kind_of
from syncscan.dryrun.program_paths import ProgramPart, parts_of, run_of
from syncscan.dryrun.program_steps import ProgramRounds, RepeatedLoop
from syncscan.errors import UsageError

if TYPE_CHECKING:
    from syncscan.model.analysis import Analysis
    from syncscan.model.finding import Finding
import importlib
import importlib.util
import threading
from contextlib import ExitStack

from syncscan.dryrun.device_kinds import KINDS, DeviceKind, simulate
from syncscan.dryrun.recorder import DryRunSession
from syncscan.errors import MissingExtra, installing
from syncscan.patches import Patches


class Pretended:
    """A block that runs on a simulated GPU; afterwards, the syncs that it would have made."""

    def __init__(self, device: str = "cuda") -> None:
        self._pretence = Pretence(kind_of(device))
        self._trace: bytes | None = None
        self._parts: list[ProgramPart] = []
        self._of_parts: list[bytes] = []
        self._steps = 0
        self._all = False

    def __enter__(self) -> Pretended:
        """Begin to simulate the GPU, on this thread.

        Raises:
            MissingExtra: torch isn't installed.
            UsageError: another such block is active, or this one has ended.
        """
        if self._trace is not None:
            raise UsageError("This dry run has ended.", "Create a new one: syncscan.pretend_gpu().")
        self._pretence.begin().paths.enter(sys._getframe(1))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End the simulation, whatever happened inside."""
        self._pretence.end()
        if isinstance(error, Exception):
            self.failed(error)
        self.conclude()

    def conclude(self) -> None:
        """Take what was seen as the whole run: also below a program that doesn't return, and so can't be left."""
        session = self._pretence.session
        if session is not None:
            if self._all:
                session.count_all()
            self._parts = parts_of(session.paths)
            self._trace = session.trace(without=frozenset[int]().union(*(part.waits for part in self._parts)))
            self._of_parts = [session.trace(part) for part in self._parts]

    def step(self) -> None:
        """Mark the begin of a step; what came before the first one then counts as preparation."""
        session = self._pretence.session
        if session is not None:
            session.step(self._steps)
            self._steps += 1

    def failed(self, error: BaseException | None = None) -> None:
        """Make the report say that the program failed, if the failure isn't in the block."""
        session = self._pretence.session
        if session is not None:
            session.failed(error)

    def watch_rounds(self, round_began: Callable[[], None]) -> ProgramRounds:
        """Look for the loop that the program repeats, and report the later rounds of it.

        Args:
            round_began: called at the begin of each.
        """
        session = self._pretence.session
        assert session is not None

        def chosen(repeated: RepeatedLoop) -> None:
            code, loop = repeated
            session.say(f"Each iteration of the loop at {code.co_filename}:{loop.first} is a step.")

        session.rounds = ProgramRounds(lambda: session.seen, chosen, round_began)
        return session.rounds

    def count_all(self) -> None:
        """Count the first step as well, and all of the last: the program ended before it could be stopped."""
        self._all = True

    def end_step(self, then: Callable[[], None] | None = None) -> None:
        """Mark the end of the last step; later work belongs to no step.

        Args:
            then: called once it has ended: with the last `record_function` range that it opened.
        """
        session = self._pretence.session
        if session is not None:
            session.recording.after_last = then
            session.step(None)

    @cached_property
    def analysis(self) -> Analysis:
        """Return the analysis: as of a trace, without costs.

        Raises:
            UsageError: the block hasn't ended.
        """
        from syncscan import api

        if self._trace is None:
            raise UsageError("The dry run isn't over.", "Read its findings after the block.")
        analysis = api.analyze_pretended(self._trace)
        if not self._parts:
            return analysis
        phases = tuple(map(api.analyze_pretended, self._of_parts))
        return replace(analysis, run=run_of(self._parts, self._steps), phases=phases)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return where the host would have waited: in the steps, then what lies only between them."""
        steps = self.analysis.findings
        known = {finding.id for finding in steps}
        between = (finding for of in self.analysis.phases if of for finding in of.findings)
        return (*steps, *(finding for finding in between if finding.id not in known))

    @property
    def coverage(self) -> tuple[str, ...]:
        """Return sentences on what was run, and which of it wasn't recognized."""
        session = self._pretence.session
        return tuple(session.coverage()) if session else ()


def pretend_gpu(device: str = "cuda") -> Pretended:
    """Return a context manager: code inside sees one device, and runs on the CPU with real values.

    Args:
        device: the type that the device has for torch: "cuda", "xpu" or "mps".

    Raises:
        UsageError: no such device can be simulated.
    """
    return Pretended(device)


_one_at_a_time = threading.Lock()


class Pretence:
    """Switches the simulation on and off, once, and for one block or thread at a time."""

    def __init__(self, kind: DeviceKind = KINDS["cuda"]) -> None:
        self._kind = kind
        self._undo = ExitStack()
        self.session: DryRunSession | None = None

    def begin(self) -> DryRunSession:
        """Switch the simulation on."""
        if importlib.util.find_spec("torch") is None:
            raise MissingExtra("A dry run needs torch.", installing("capture"))
        if not _one_at_a_time.acquire(blocking=False):
            raise UsageError("A simulated GPU is already in use.", "End that block first: simulated GPUs don't nest.")
        self._undo.callback(_one_at_a_time.release)
        try:
            return self._switch_on()
        except BaseException:
            self._undo.close()
            raise

    def _switch_on(self) -> DryRunSession:
        from syncscan.dryrun import cuda, machinery, tensors, watched_arrays
        from syncscan.dryrun.device_functions import Functions
        from syncscan.dryrun.dispatch_mode import Ops

        simulate(self._kind)
        self.session = session = DryRunSession()
        if self._kind.differs:
            of = self._kind.name
            session.say(f"On {of}: {' '.join(self._kind.differs)} Everything else by the rules of CUDA.")
        ops, functions = Ops(session), Functions(session)
        patches = self._undo.enter_context(Patches())
        for part in (cuda, tensors, machinery, watched_arrays):
            part.pretend(session, patches)
        self._undo.enter_context(ops)
        self._undo.enter_context(functions)
        return session

    def end(self) -> None:
        if self.session is not None:
            self.session.over = True
        self._undo.close()
