"""Look up what a rule says about a call in its table, `rules/syncs/ID.toml`."""

from __future__ import annotations

import re
import sys
from functools import cache, cached_property
from pathlib import Path

import msgspec

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal, Use
from syncscan.rules.pages import FOLDER

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class Place(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Functions of a library that wait for one reason, with what their caller can do."""

    files: tuple[str, ...]
    """Files or folders from the package's root on, one of which decides on the call; see `in_package`."""
    functions: tuple[str, ...] = ()
    """Names of functions in them, including comprehensions and lambdas inside them; empty for all."""
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
        """Return whether this place applies to a call that a library's function decides on."""
        if self.functions and call.deciding_function not in self.functions:
            return False
        if not any(map(call.decided_in, self.files)):
            return False
        preceded = not self.after or call.before[-1:] in [(op,) for op in self.after]
        copied = self.direction in ("", call.facts.direction) or (self.direction == "DtoH" and call.scalar)
        around = not self.within or call.in_library(self.within)
        inside = not self.under or call.under(*self.under)
        return preceded and copied and inside and around

    def match(self) -> Match:
        """Return what the table says of a call at this place."""
        return Match(
            title=self.title,
            fix=self.fix,
            removal=self.removal,
            cause=self.cause,
            use=self.use,
            intended=self.intended,
            for_caller=True,
        )


class RuleTable:
    """A rule's table, which is parsed at the first call that one of its libraries decides on.

    Args:
        file: a TOML file of `[[place]]` tables, specific ones before general ones.
    """

    def __init__(self, file: Path) -> None:
        self._text = file.read_text(encoding="utf-8")
        self._packages = frozenset(re.findall(r'"(\w+)[/"]', "".join(_FILES.findall(self._text))))

    def match(self, call: Call) -> Match | None:
        """Return what the first place that holds says about a call; without Python frames, none does."""
        if self._packages.isdisjoint(call.place.deciding_path):
            return None
        return next((place.match() for place in self.places if place.holds(call)), None)

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """The rows of the table."""
        return msgspec.convert(tomllib.loads(self._text)["place"], tuple[Place, ...])


_FILES = re.compile(r"^files = \[.*?\]", re.MULTILINE | re.DOTALL)


@cache
def table_of(rule: str) -> RuleTable:
    """Return the table of the rule with this id."""
    return RuleTable(FOLDER / "syncs" / f"{rule}.toml")


__all__ = ["Place", "RuleTable", "table_of"]
