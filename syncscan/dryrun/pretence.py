"""Make torch believe in a device within a block, without traces afterwards."""

from __future__ import annotations

import importlib
import importlib.util
import threading
from contextlib import ExitStack

from syncscan.dryrun.device_kinds import KINDS, DeviceKind, simulate
from syncscan.dryrun.recorder import DryRunSession
from syncscan.errors import MissingExtra, UsageError, installing
from syncscan.patches import Patches

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
        simulate(self._kind)
        self.session = session = DryRunSession()
        if self._kind.differs:
            of = self._kind.name
            session.say(f"On {of}: {' '.join(self._kind.differs)} Everything else by the rules of CUDA.")
        ops = importlib.import_module("syncscan.dryrun.dispatch_mode").Ops(session)
        functions = importlib.import_module("syncscan.dryrun.device_functions").Functions(session)
        patches = self._undo.enter_context(Patches())
        for part in ("cuda", "tensors", "machinery", "watched_arrays"):
            importlib.import_module(f"syncscan.dryrun.{part}").pretend(session, patches)
        self._undo.enter_context(ops)
        self._undo.enter_context(functions)
        return session

    def end(self) -> None:
        if self.session is not None:
            self.session.over = True
        self._undo.close()
