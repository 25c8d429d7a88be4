"""Messages between syncscan fix and the process that runs the program."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Callable

import msgspec

from syncscan.fixing.printed_lines import shown_path
from syncscan.proof.outcome import Fingerprint

MOST = 200
"""Characters of a message's first line."""


class Raised(msgspec.Struct, frozen=True):
    """An exception that ended a program."""

    type: str
    """`ValueError`, `torch.OutOfMemoryError`."""
    message: str
    """The first line."""
    file: str = ""
    """The file of the innermost frame in the user's code; empty where there is none."""
    line: int = 0
    code: str = ""
    """That line's code."""

    @property
    def text(self) -> str:
        """Type and message, without a place."""
        return f"{self.type}: {self.message}" if self.message else self.type

    @property
    def at_line(self) -> str:
        """The exception and its line: `ValueError: no data (train.py:12)`."""
        return f"{self.text} ({shown_path(self.file)}:{self.line})" if self.file else self.text

    @property
    def at_code(self) -> str:
        """The exception and the code of its line, for a version of the file that nobody sees."""
        return f"{self.text}, in `{self.code}`" if self.code else self.text


def raised(error: BaseException, is_users: Callable[[str], bool]) -> Raised:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if is_users(f.filename)]
    first = next(iter(_message(error).strip().splitlines()), "").strip()[:MOST]
    if not frames:
        return Raised(_name(type(error)), first)
    file, line = frames[-1].filename, frames[-1].lineno or 0
    return Raised(_name(type(error)), first, file, line, linecache.getline(file, line).strip()[:MOST])


def _name(kind: type[BaseException]) -> str:
    """Return a type's name as a traceback has it."""
    bare = kind.__module__ in ("builtins", "__main__")
    return kind.__qualname__ if bare else f"{kind.__module__}.{kind.__qualname__}"


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""


class Tensor(msgspec.Struct, frozen=True):
    """Properties of a tensor that an expression gave."""

    dtype: str
    """Without `torch.` in front."""
    dims: int
    on_device: bool
    pinned: bool
    grad: bool
    """Whether it requires a gradient."""
    leaf: bool


class Observations(msgspec.Struct):
    count: int = 0
    waits: int = 0
    """Waits while it was computed, of its parts and of what it called too."""
    types: list[str] = msgspec.field(default_factory=list)
    """Types of its values: `float`, `torch.Tensor`, `numpy.float64`, `__main__.Tracker`."""
    tensors: list[Tensor] = msgspec.field(default_factory=list)
    shapes: list[list[int]] = msgspec.field(default_factory=list)
    """Different shapes of its tensors, a few at most."""
    elements: list[str] = msgspec.field(default_factory=list)
    """Types of what its lists, tuples and dictionaries hold, `torch.Tensor` too; of its NumPy arrays the dtypes; names
    of its functions and classes, with their modules."""
    shortest: int = 1 << 62
    """Fewest elements of its containers and tensors."""
    longest: int = 0
    zero: bool = False
    """Whether a number was 0."""
    version: int = 0
    """Highest version counter of its tensors: 0 if none was written to in place."""
    changes_in: list[int] = msgspec.field(default_factory=list)
    """Numbers of the loops and functions in which a single run saw different values."""


class Entered(msgspec.Struct):
    """How often a loop or function ran, and inside which others."""

    count: int = 0
    inside: list[int] = msgspec.field(default_factory=list)
    """Numbers of the loops and functions that were under way when it began."""


class Observed(msgspec.Struct):
    """Observations of one file, by each node's position in `ast.walk`."""

    seen: dict[int, Observations] = msgspec.field(default_factory=dict)
    entered: dict[int, Entered] = msgspec.field(default_factory=dict)


class WaitingLine(msgspec.Struct, frozen=True):
    """Waits of one kind at one line."""

    rule: str
    title: str
    advice: str
    file: str
    line: int
    count: int
    cause: str


class Racing(msgspec.Struct, frozen=True):
    """A use of a memory that nothing orders after another use."""

    kind: str
    title: str
    file: str
    line: int


class ProgramJob(msgspec.Struct):
    target: str
    arguments: list[str]
    function: str = ""
    """Name of the function of `FILE.py:FUNCTION`; empty for a script."""
    module: bool = False
    steps: int = 0
    """Steps of the optimizer, or calls of the function, after which the run is ended; 0 for its own end."""
    ends_loops: bool = True
    """Whether its loops are then ended one after the other, so that the code after them runs."""
    sources: dict[str, str] = msgspec.field(default_factory=dict)
    """Text that replaces a file's, by the file's absolute path."""
    probed: list[str] = msgspec.field(default_factory=list)
    """Files whose expressions are observed."""
    covered: list[str] = msgspec.field(default_factory=list)
    """Files whose executed lines are wanted."""
    output: str = ""
    """Folder for its output."""
    folder: str = ""
    """Working directory of the program."""
    scratch: str = ""
    """Kind of the view that it runs in: `scratch.Scratch`."""
    layers: list[str] = msgspec.field(default_factory=list)
    """Folders of the view."""


class RunResult(msgspec.Struct):
    code: int = 0
    """The exit code; negative where a signal ended it."""
    raised: Raised | None = None
    """The exception that ended it, but for an exit with a number alone."""
    places: list[WaitingLine] = msgspec.field(default_factory=list)
    races: list[Racing] = msgspec.field(default_factory=list)
    gaps: list[str] = msgspec.field(default_factory=list)
    """Ops whose waits are unknown."""
    files: list[str] = msgspec.field(default_factory=list)
    """The user's Python files that it ran."""
    observed: dict[str, Observed] = msgspec.field(default_factory=dict)
    lines: dict[str, list[int]] = msgspec.field(default_factory=dict)
    """Lines that ran, of the files in `covered`."""
    fingerprint: Fingerprint = Fingerprint()
    graph: int = 0
    """Nodes of autograd's graphs that were alive after a step, at most."""
    printed: str = ""
    errors: str = ""
    """Text on stderr."""
    failure: str = ""
    """Why there is nothing of the above; empty where there is."""
    machines: list[str] = msgspec.field(default_factory=list)
    """Other machines that it connected to."""
    written: dict[str, str | None] = msgspec.field(default_factory=dict)
    """Files that it wrote, by the user's absolute path: the file that it left, None where it removed the user's.

    They are there until the next run, or with `keep` until all runs are over; see `scratch.Scratch.written`.
    """

    @property
    def why_failed(self) -> str:
        """How a program that failed ended: its exception, or else its exit code and its last line on stderr."""
        if self.failure:
            return self.failure
        if self.raised is not None:
            return self.raised.at_line
        last = [line.strip() for line in self.errors.splitlines() if line.strip()][-1:]
        return f"it ends with exit code {self.code}" + (f": {last[0][:300]}" if last else " and writes nothing")
