"""Read what torch.compile's dynamo says of this process: graph breaks, skipped frames and recompiles, with reasons.

Nothing is listened to and nothing compiled once more. Dynamo keeps both lists itself (`torch/_dynamo/utils.py`):
`graph_break_reasons`, each with a reason and the user's stack, and since torch 2.4 the metrics of each compilation:
which code it was, why it failed and at which line, why it was recompiled.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

import msgspec

from syncscan.model.libraries import is_library
from syncscan.model.states import CompileEvent, CompileKind, CompileRecord
from syncscan.patches import when_imported
from syncscan.source.loops import Loops
from syncscan.source.tree import lines_of

MOST_EVENTS, MOST_TEXT = 1000, 1000
"""Compilations that dynamo is to remember and different events that are stored; characters of a reason."""
NO_METRICS = (
    "torch {} doesn't keep the metrics of its compilations (2.4 and later do): frames that fell back to eager, and "
    "recompiles, aren't listed."
)
NO_BREAKS = "torch {} doesn't keep graph breaks where syncscan looks for them, so none are listed."
MORE = "{} more dynamo events were left out."
FAILED = "Dynamo's explanations weren't stored: {}"
COMPILES_NOTHING = "The program compiled nothing by the end of the capture."
UNSAID = "Dynamo gives no reason"
_RESUMED = re.compile(r"(?:torch_dynamo_resume_in_)+(.+?)_at_\d+$")
"""The function that dynamo makes of the rest of another one behind a graph break."""
_ATTEMPT = re.compile(r"^\d+/\d+(?:_\d+)?: ")
"""Number of an earlier compilation, before the guard of it that failed."""
_SKIPPED_GRAPH = "skipping cudagraphs due to "
"""Begin of Inductor's reasons (torch/_inductor/cudagraph_utils.py)."""
_NOTHING_IN_IT = ("no content in function call", "no graph captured", "dummy graph")
_TERSE = {"generic_jump": "Data-dependent branching: Python branches on a tensor's value"}
"""Reasons that are names inside dynamo, by their first word, in words."""

Place = tuple[str, int, str]
"""File, line and function."""
NOWHERE: Place = ("", -1, "")


def remember_all() -> Callable[[], None]:
    """Let dynamo, once it is imported, remember more compilations than the last 64; return what calls it off."""
    return when_imported("torch._dynamo.utils", _remember)


def _remember(dynamo: ModuleType) -> None:
    getattr(dynamo, "set_compilation_metrics_limit", int)(MOST_EVENTS)


def compile_record() -> CompileRecord:
    """Return all that dynamo has reported in this process so far."""
    dynamo: Any = sys.modules.get("torch._dynamo.utils")
    version = str(getattr(sys.modules.get("torch"), "__version__", ""))
    if dynamo is None:
        return CompileRecord(torch=version, notes=(COMPILES_NOTHING,))
    breaks, metrics = getattr(dynamo, "graph_break_reasons", None), getattr(dynamo, "get_compilation_metrics", None)
    compilations = [one for one in metrics() if one.co_name or one.fail_type] if metrics is not None else []
    counted = Counter([*_breaks(breaks or ()), *_outcomes(compilations)])
    notes = [NO_METRICS.format(version)] if metrics is None else []
    notes += [NO_BREAKS.format(version)] if breaks is None else []
    notes += [MORE.format(len(counted) - MOST_EVENTS)] if len(counted) > MOST_EVENTS else []
    counters = dynamo.counters
    frames = len(compilations) or int(counters["frames"]["total"])
    return CompileRecord(
        torch=version,
        frames=frames,
        graphs=int(counters["stats"]["unique_graphs"]),
        events=tuple(_whole(event, count) for event, count in list(counted.items())[:MOST_EVENTS]),
        notes=tuple(notes if frames or counted else (COMPILES_NOTHING,)),
    )


def _breaks(listed: Sequence[Any]) -> Iterator[CompileEvent]:
    for broken in listed:
        stack = [(str(s.filename), s.lineno or -1, _function(s.name)) for s in broken.user_stack]
        if stack and getattr(broken, "graph_break", True):
            at = next((s for s in reversed(stack) if not is_library(s[0])), stack[-1])
            yield _event(CompileKind.BREAK, *_in_short(str(broken.reason)), at, (stack[0][0], -1, stack[0][2]))


def _outcomes(compilations: Sequence[Any]) -> Iterator[CompileEvent]:
    """Yield what came of each compilation, but for a graph of the whole frame."""
    codes: dict[str, Place] = {}
    for metrics in compilations:
        frame = str(metrics.compile_id).partition("/")[0]
        if metrics.co_name:
            codes.setdefault(frame, _code(metrics, codes.values()))
        code = codes.get(frame, NOWHERE)
        if why := str(getattr(metrics, "recompile_reason", None) or ""):
            yield _event(CompileKind.RECOMPILED, _ATTEMPT.sub("", why.strip().partition("\n")[0]), "", code, code)
        if why := str(getattr(metrics, "cudagraph_skip_reason", None) or ""):
            why = why.partition("\n")[0].removeprefix(_SKIPPED_GRAPH).removesuffix(". Found from : ")
            yield _event(CompileKind.NO_CUDA_GRAPH, why, "", code, code)
        reason, hint = _in_short(str(metrics.fail_reason or metrics.fail_type or _unsaid(metrics)))
        if reason and not any(nothing in reason for nothing in _NOTHING_IN_IT):
            file, line = metrics.fail_user_frame_filename, metrics.fail_user_frame_lineno
            at = (str(file), _line(line), code[2]) if file and line else code
            yield _event(CompileKind.SKIPPED, reason, hint, at, code)


def _code(metrics: Any, before: Iterable[Place]) -> Place:
    """Return file, first line and function of what was compiled; of a resumed function, those of the whole one."""
    file, name = str(metrics.co_filename), str(metrics.co_name)
    function, first = _function(name), _line(metrics.co_firstlineno)
    whole = (line for at, line, other in before if (other, at) == (function, file) and line <= first)
    return file, first if function == name else max(whole, default=first), function


def _unsaid(metrics: Any) -> str:
    """Return why a frame without a recorded failure was skipped; empty where it wasn't.

    Before torch 2.9 a graph break in a loop skips its frame so: ops were seen, and no code came of them.
    """
    return UNSAID if metrics.graph_op_count and getattr(metrics, "has_guarded_code", True) is False else ""


def _event(kind: CompileKind, reason: str, hint: str, at: Place, frame: Place) -> CompileEvent:
    return CompileEvent(
        kind=kind,
        reason=reason[:MOST_TEXT],
        hint=hint[:MOST_TEXT],
        file=at[0],
        line=at[1],
        function=at[2],
        frame=frame[2],
        frame_file=frame[0],
        frame_line=frame[1],
    )


def _whole(event: CompileEvent, count: int) -> CompileEvent:
    """Return the event with how often it came, and of a skipped frame with its last line."""
    last = _last_line(event.frame_file, event.frame_line) if event.kind is CompileKind.SKIPPED else -1
    return msgspec.structs.replace(event, count=count, frame_last=last)


def _last_line(file: str, first: int) -> int:
    """Return the last line of the function that begins at a line, decorators included; -1 where there is none."""
    lines = (lines_of(function) for function in Loops()[file].functions)
    return next((one[-1] for one in lines if one.start == first), -1)


def _function(name: str) -> str:
    """Return the user's function that dynamo derived this one from."""
    resumed = _RESUMED.match(name)
    return resumed[1] if resumed else name


def _line(number: Any) -> int:
    return number if isinstance(number, int) and 0 <= number < 2**31 else -1


def _in_short(text: str) -> tuple[str, str]:
    """Return a reason of dynamo's in a line, and what it advises first.

    A reason has a headline, and since torch 2.7 below it an explanation, hints, and a link. Where a second graph break
    came of the first, as in a loop, it has both (torch/_dynamo/exc.py, `format_graph_break_message`).
    """
    parts = re.split(r"\n\s*\*\*\* While handling this graph break.*?\*\*\*\s*\n", text)
    headlines = [part.strip().partition("\n")[0].strip() for part in parts if part.strip()]
    headlines = [_TERSE.get(line.partition(" ")[0], line) for line in headlines]
    hint = re.search(r"^  Hint: (.+)$", text, re.MULTILINE)
    return "; ".join(dict.fromkeys(headlines)), hint[1] if hint else ""
