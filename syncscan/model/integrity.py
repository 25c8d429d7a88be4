"""Data that a trace is missing, and the numbers withheld because of it."""

from __future__ import annotations

import msgspec


class Lack(msgspec.Struct, frozen=True):
    """One piece of missing data: a sentence, and what can't be determined without it."""

    sentence: str
    verdict: bool = False
    """Whether the step's bound and the gains of removing syncs can't be determined."""
    waits: bool = False
    """Whether waits and idle time can't be measured."""

    def full_sentence(self) -> str:
        """Return the sentence, and what is withheld."""
        held = [name for name, withheld in (("waits", self.waits), ("verdict and gains", self.verdict)) if withheld]
        return f"{self.sentence} Withheld: {', '.join(held)}." if held else self.sentence


class Integrity(msgspec.Struct, frozen=True):
    """Everything that one trace is missing."""

    lacks: tuple[Lack, ...] = ()

    @property
    def verdict(self) -> bool:
        """Return whether the step's bound can be determined."""
        return not any(lack.verdict for lack in self.lacks)

    @property
    def waits(self) -> bool:
        """Return whether waits can be measured."""
        return not any(lack.waits for lack in self.lacks)

    def sentences(self) -> tuple[str, ...]:
        """Return a sentence for each piece of missing data, with what is withheld."""
        return tuple(lack.full_sentence() for lack in self.lacks)

    def reason(self) -> str:
        """Return why there is no verdict; empty where there is one."""
        return " ".join(lack.full_sentence() for lack in self.lacks if lack.verdict)


SOUND = Integrity()
"""Nothing is missing."""
