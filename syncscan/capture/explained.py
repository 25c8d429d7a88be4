"""Add dynamo's reports on a script's run to the traces of its captures."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from syncscan.capture.compiling import Compiling
from syncscan.capture.session import Session

FAILED = "Dynamo's explanations weren't stored: {}"
COMPILES_NOTHING = (
    "The program compiled nothing by the end of the capture; syncscan dryrun --explain-compile compiles its modules."
)


class Explained:
    """Listens to dynamo from now on."""

    def __init__(self) -> None:
        self._compiling = Compiling()

    def step_ended(self) -> None:
        """Listen again, where the program has set up torch's logs again meanwhile."""
        self._compiling.refresh()

    def close(self, sessions: Sequence[Session]) -> None:
        """Stop, and add dynamo's reports to the traces of these sessions."""
        record = self._compiling.record(notes=[] if self._compiling.heard else [COMPILES_NOTHING])
        self._compiling.close()
        for session in sessions:
            session.add({"compiled": msgspec.to_builtins(record)}, FAILED)
