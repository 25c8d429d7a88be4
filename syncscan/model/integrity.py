"""What a trace lacks for its numbers to mean something, and which are withheld for it."""

from __future__ import annotations

import msgspec


class Lack(msgspec.Struct, frozen=True):
    """One thing that is missing: a sentence, and what can't be said for want of it."""

    sentence: str
    verdict: bool = False
    """What bounds the step, and what removing a sync would gain, can't be said."""
    waits: bool = False
    """Waits and idle time can't be measured."""

    def said(self) -> str:
        """The sentence, and what is withheld."""
        held = [name for name, withheld in (("waits", self.waits), ("verdict and gains", self.verdict)) if withheld]
        return f"{self.sentence} Withheld: {', '.join(held)}." if held else self.sentence


class Integrity(msgspec.Struct, frozen=True):
    """All that is missing of one trace."""

    lacks: tuple[Lack, ...] = ()

    @property
    def verdict(self) -> bool:
        """Whether it can be said what bounds the step."""
        return not any(lack.verdict for lack in self.lacks)

    @property
    def waits(self) -> bool:
        """Whether waits can be measured."""
        return not any(lack.waits for lack in self.lacks)

    def sentences(self) -> tuple[str, ...]:
        """What is missing, each with what is withheld for it."""
        return tuple(lack.said() for lack in self.lacks)

    def reason(self) -> str:
        """Why there is no verdict; empty where there is one."""
        return " ".join(lack.said() for lack in self.lacks if lack.verdict)


SOUND = Integrity()
"""Nothing is missing."""
