"""Look up what a library's rule says about a call, in a table by file and function."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal, Use


class LibraryPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Functions of a library that wait for one reason, with what its caller can do."""

    file: str
    """A file or folder from the package's root on; see `in_package`."""
    functions: tuple[str, ...] = ()
    """Names of functions in it, including comprehensions and lambdas inside them; empty for all."""
    within: str = ""
    """A file or folder of the library that another frame around the call must be in; empty for any."""
    after: tuple[str, ...] = ()
    """Ops, one of which must come right before the call; empty for any."""
    under: tuple[str, ...] = ()
    """Ops, one of which must be around the call; empty for any."""
    direction: str = ""
    """Direction of the call's copy, such as `HtoD`; `DtoH` is any read-back; empty for any."""
    title: str
    fix: str
    cause: Cause | None = None
    removal: Removal = Removal.NOTHING
    use: Use | None = None
    intended: bool = False

    def holds(self, call: Call) -> bool:
        """Return whether this place applies to a call, which one of its functions decides on."""
        if not call.decided_in(self.file):
            return False
        preceded = not self.after or call.before[-1:] in [(op,) for op in self.after]
        copied = self.direction in ("", call.facts.direction) or (self.direction == "DtoH" and call.scalar)
        around = not self.within or call.in_library(self.within)
        inside = not self.under or call.under(*self.under)
        return preceded and copied and inside and around


def match_at(call: Call, places: Sequence[LibraryPlace]) -> Match | None:
    """Return the table's match for the function that makes the call; None if it isn't listed.

    Args:
        call: a blocking call; without Python frames, nothing matches.
        places: specific ones before general ones.
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
