"""Calls of one line that were named by different rules, one of them by a guess, get the name that most of them have.

What a read-back is for is guessed by what follows it and how soon. A pause of the host's, and one call of the same line
is named otherwise than the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from syncscan.detect.call import Call
from syncscan.detect.code_place import CodePlace
from syncscan.model.finding import Confidence, Diagnosis, SyncPoint


class OneRule:
    """Collects the diagnoses of calls by the line that made them, and settles those that differ."""

    def __init__(self) -> None:
        self._sites: dict[tuple[CodePlace, Any], list[int]] = {}
        self._count = 0

    def of(self, call: Call, diagnosis: Diagnosis) -> Diagnosis:
        """Note a call's diagnosis, which is handed back.

        Args:
            call: in the order in which `settled` gets their sync points.
            diagnosis: as the rules have it.
        """
        if call.place.has_frames:  # without frames nothing tells two lines apart
            self._sites.setdefault((call.place, call.path.names), []).append(self._count)
        self._count += 1
        return diagnosis

    def settled(self, points: Sequence[SyncPoint]) -> list[SyncPoint]:
        """Return the sync points, those of one line with one rule where another was a guess.

        Args:
            points: of the calls.
        """
        made = list(points)
        for numbers in self._sites.values():
            rules = Counter(points[number].diagnosis.rule for number in numbers)
            if len(rules) < 2 or all(points[n].diagnosis.confidence is Confidence.HIGH for n in numbers):
                continue
            most = rules.most_common(1)[0][0]
            chosen = next(points[n].diagnosis for n in numbers if points[n].diagnosis.rule == most)
            for number in numbers:
                if points[number].diagnosis.rule != most:
                    made[number] = replace(points[number], diagnosis=chosen)
        return made
