"""From the Python frames around a call, and a table of what a library does where, to what its rule says of the call."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal, Use


class LibraryPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Functions of a library that wait for one reason, and what who calls the library can do about it."""

    file: str
    """A file or folder from the package's root on, as `in_package` takes it."""
    functions: tuple[str, ...] = ()
    """Names of functions in it, with the comprehensions and lambdas in them; empty for all."""
    within: str = ""
    """A file or folder of the library's that another frame around the call lies in; empty for any."""
    after: tuple[str, ...] = ()
    """Ops one of which came right before the call; empty for any."""
    under: tuple[str, ...] = ()
    """Ops one of which lies around the call; empty for any."""
    direction: str = ""
    """Of the call's copy, `HtoD`; `DtoH` is any read-back; empty for any."""
    title: str
    fix: str
    cause: Cause | None = None
    removal: Removal = Removal.NOTHING
    use: Use | None = None
    intended: bool = False

    def holds(self, call: Call) -> bool:
        """Whether a call that one of its functions decides on is meant."""
        if not call.decided_in(self.file):
            return False
        asked = not self.after or call.before[-1:] in [(op,) for op in self.after]
        copied = self.direction in ("", call.facts.direction) or (self.direction == "DtoH" and call.scalar)
        around = not self.within or call.in_library(self.within)
        inside = not self.under or call.under(*self.under)
        return asked and copied and inside and around


def match_at(call: Call, places: Sequence[LibraryPlace]) -> Match | None:
    """What the table says of the function that makes the call; None where it doesn't know it.

    Args:
        call: a blocking call with Python frames; without them nothing is known.
        places: special ones before general ones.
    """
    function = call.deciding_function
    if function is None:
        return None
    for place in places:
        if (not place.functions or function in place.functions) and place.holds(call):
            return Match(
                title=place.title,
                fix=place.fix,
                removal=place.removal,
                cause=place.cause,
                use=place.use,
                intended=place.intended,
                for_caller=True,
            )
    return None


__all__ = ["LibraryPlace", "match_at"]
