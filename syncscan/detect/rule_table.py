"""Look up what a rule says about a call in its table, `rules/syncs/ID.toml`."""

from __future__ import annotations

import re
import sys
from functools import cache, cached_property
from pathlib import Path

import msgspec

from syncscan.detect.call import Call
from syncscan.model.finding import Cause, Diagnosis, Removal, Replacement, Use
from syncscan.rules.pages import FOLDER

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class TablePlace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Calls that wait for one reason, by the ops or a library's functions around them; all that is given must hold."""

    under: tuple[str, ...] = ()
    """Ops, one of which must be around the call; empty for any."""
    and_under: tuple[str, ...] = ()
    """Ops, one of which must be around it too; empty for any."""
    backward: tuple[str, ...] = ()
    """How the name of the autograd node around it begins; empty for any."""
    scalar: bool = False
    """Whether it has to be a read of one number."""
    after: tuple[str, ...] = ()
    """Ops, one of which must come right before the call; empty for any."""
    direction: str = ""
    """Direction of the call's copy, such as `HtoD`; `DtoH` is any read-back; empty for any."""
    files: tuple[str, ...] = ()
    """Files or folders of a library, from the package's root on, one of which decides on the call; see `in_package`."""
    functions: tuple[str, ...] = ()
    """Names of functions in them, including comprehensions and lambdas inside them; empty for all."""
    within: str = ""
    """A file or folder of the library that another frame around the call must be in; empty for any."""

    title: str = ""
    """Title of the finding; empty for the page's title."""
    fix: str = ""
    """Text on what a caller of these functions can do; empty for the page's fix."""
    do: str = ""
    """That in one imperative line."""
    variant: str = ""
    """Variant of the page's titles and fixes; by default the name of the op that was found, without `aten::`."""
    values: dict[str, str] = {}
    """Values of fields in them, besides `{op}`, the op that was found."""
    cause: Cause = Cause.UNKNOWN
    removal: Removal = Removal.NOTHING
    replacement: Replacement = Replacement.UNKNOWN
    use: Use | None = None
    intended: bool = False

    def holds(self, call: Call) -> bool:
        if self.under and not call.under(*self.under):
            return False
        if self.files and not self._decides(call):
            return False
        copied = self.direction in ("", call.point.direction) or (self.direction == "DtoH" and call.scalar)
        preceded = not self.after or call.before[-1:] in [(op,) for op in self.after]
        inside = not self.and_under or call.under(*self.and_under)
        differentiated = not self.backward or call.backward.startswith(self.backward)
        return copied and preceded and inside and differentiated and (call.scalar or not self.scalar)

    def _decides(self, call: Call) -> bool:
        """Return whether one of these functions is the one that decides on a call."""
        if self.functions and call.place.deciding_function not in self.functions:
            return False
        return any(map(call.place.decided_in, self.files)) and (not self.within or call.place.in_library(self.within))

    def match(self, call: Call) -> Diagnosis:
        op = call.first(*self.under).removeprefix("aten::")
        return Diagnosis(
            title=self.title,
            fix=self.fix,
            do=self.do,
            variant=self.variant or op,
            values={"op": op, **self.values},
            removal=self.removal,
            replacement=self.replacement,
            cause=self.cause,
            use=self.use,
            intended=self.intended,
            for_caller=bool(self.files),
        )


class RuleTable:
    """A rule's table, specific places first; a library's is parsed at the first call that the library decides on."""

    def __init__(self, file: Path) -> None:
        self._text = file.read_text(encoding="utf-8")
        self._packages = frozenset(re.findall(r'"(\w+)[/"]', "".join(_FILES.findall(self._text))))

    @cached_property
    def places(self) -> tuple[TablePlace, ...]:
        return msgspec.convert(tomllib.loads(self._text)["place"], tuple[TablePlace, ...])

    def match(self, call: Call) -> Diagnosis | None:
        if self._packages and self._packages.isdisjoint(call.place.deciding_path):
            return None
        return next((place.match(call) for place in self.places if place.holds(call)), None)


_FILES = re.compile(r"^files = \[.*?\]", re.MULTILINE | re.DOTALL)


@cache
def table_of(rule: str) -> RuleTable:
    return RuleTable(FOLDER / "syncs" / f"{rule}.toml")


__all__ = ["RuleTable", "TablePlace", "table_of"]
