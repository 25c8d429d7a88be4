"""Scratch copies of the files of one test that runs dry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from syncscan.scratch import Scratch


class TestFiles:
    """Redirects what a test writes, in its own fixtures too, to scratch copies, until `close`.

    Args:
        passed: folders that the test shares with others, such as pytest's for temporary files.
    """

    __test__ = False

    def __init__(self, passed: Sequence[Path]) -> None:
        self._stack = ExitStack()
        scratch = self._stack.enter_context(Scratch.made())
        self._redirection = self._stack.enter_context(scratch.entered(passed))
        self.pause = self._redirection.pause
        self.resume = self._redirection.resume
        self.pause()

    @contextmanager
    def redirected(self) -> Iterator[None]:
        """Redirect what the block writes."""
        self.resume()
        try:
            yield
        finally:
            self.pause()

    def close(self) -> None:
        """Remove what was written."""
        self._stack.close()
