"""Entropy for dry runs that is the same in each of them, so that programs which seed themselves by it can be compared.

Processes that the program forks keep the system's: their random names must not be those of one another.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
import threading
import uuid
from collections import Counter
from typing import Any


class FixedRandomness:
    """The entropy of one process: a sequence of bytes for each of its threads."""

    def __init__(self) -> None:
        self._read: Counter[str] = Counter()
        self._real = os.urandom
        self._is_forked = False

    def install(self) -> None:
        """Put it in the place of what `os`, `random`, `uuid` and torch ask the system for, for good."""
        os.register_at_fork(after_in_child=self._forked)
        os.urandom = random._urandom = self.urandom  # type: ignore[attr-defined]
        if hasattr(os, "getrandom"):
            os.getrandom = lambda size, flags=0: self.urandom(size)
        self._install_seeds()
        uuid._generate_time_safe = uuid._UuidCreate = None  # type: ignore[attr-defined]  # then Python makes them
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.seed = torch.random.seed = self._seed_torch  # type: ignore[attr-defined]

    def urandom(self, size: int, /) -> bytes:
        """Return the next bytes of this thread."""
        if self._is_forked:
            return self._real(size)
        name = threading.current_thread().name
        self._read[name] += 1
        return hashlib.shake_256(f"{name} {self._read[name]}".encode()).digest(size)

    def _forked(self) -> None:
        self._is_forked = True

    def _install_seeds(self) -> None:
        """Have generators that are seeded with nothing take their seed from here."""
        real = random.Random.seed

        def seed(generator: random.Random, a: Any = None, version: int = 2) -> None:
            real(generator, int.from_bytes(self.urandom(32), "big") if a is None else a, version)

        random.Random.seed = seed  # type: ignore[method-assign,assignment]
        random.seed = random._inst.seed

    def _seed_torch(self) -> int:
        value = int.from_bytes(self.urandom(8), "big") >> 1
        sys.modules["torch"].manual_seed(value)
        return value


__all__ = ["FixedRandomness"]
