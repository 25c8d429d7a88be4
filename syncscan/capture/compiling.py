"""Listens to torch.compile's dynamo while a program runs: graph breaks, skipped frames and recompiles, with reasons.

Nothing is read from what dynamo prints. Its sources are, as far as a version of torch has them:

- `torch._dynamo.utils.graph_break_reasons`, a list of `GraphCompileReason`, each with a reason and the user's stack;
- `compilation_metrics` records of its structured log (the logger `torch.__trace`, what TORCH_TRACE writes; torch 2.3
  and later), one a frame: which code it was, why it failed and at which line, why it was recompiled;
- `recompile_reasons` and `dynamo_graph_break_reason` artifacts of the same log;
- `torch._dynamo.utils.counters` for the number of frames and graphs, where that log doesn't exist.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import json
import linecache
import logging
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import msgspec

from syncscan.capture.imports import when_imported
from syncscan.model.compiled import CompileEvent, CompileKind, CompileRecord
from syncscan.model.libraries import is_library

LOG = "torch.__trace"
"""The logger of `torch._logging.trace_structured` (torch/_logging/_internal.py)."""
MOST_EVENTS, MOST_TEXT = 1000, 1000
"""Different events that are stored, and characters of a reason."""
NO_LOG = (
    "torch {} has no structured compiler log (2.3 and later do): frames that fell back to eager, and recompiles, "
    "aren't listed."
)
NO_BREAKS = "torch {} doesn't keep graph breaks where syncscan looks for them, so none are listed."
MORE = "{} more dynamo events were left out."
_RESUMED = re.compile(r"(?:torch_dynamo_resume_in_)+(.+?)_at_\d+$")
"""The function that dynamo makes of the rest of another one behind a graph break."""
_SKIPPED_GRAPH = "skipping cudagraphs due to "
"""Begin of Inductor's reasons (torch/_inductor/cudagraph_utils.py)."""
FAILED = "Dynamo's explanations weren't stored: {}"
COMPILES_NOTHING = (
    "The program compiled nothing by the end of the capture; syncscan dryrun --explain-compile compiles its modules."
)
UNSAID = "Dynamo gives no reason"
_BROKE_AT = re.compile(r"^Graph break in user code at (.+):(\d+)$", re.MULTILINE)
_NOTHING_IN_IT = ("no content in function call", "no graph captured", "dummy graph")
_TERSE = {"generic_jump": "Data-dependent branching: Python branches on a tensor's value"}
"""Reasons that are names inside dynamo, by their first word, in words."""


Place = tuple[str, int, str]
"""File, line and function."""
NOWHERE: Place = ("", -1, "")


class Compiling:
    """Listens to dynamo from now on, until `close`."""

    def __init__(self) -> None:
        self._events: dict[CompileEvent, int] = {}
        self._frames: dict[str, Place] = {}
        """File, first line and function of each code object that was compiled, by dynamo's number of it."""
        self._broke_at: dict[str, tuple[str, int]] = {}
        self._with_graph: set[str] = set()
        """Frames that have a graph, until the whole frame is compiled."""
        self._failed: dict[str, int] = {}
        """Failures of dynamo so far, and how often each occurred, by its counters."""
        self._count = self._graphs = self._left_out = 0
        self._listed = 0
        self._before: dict[tuple[str, str], int] = {}
        """The counters' values when listening began."""
        self._handler = _DynamoLogHandler(self._heard)
        self._call_off = when_imported("torch._dynamo", self._listen)

    def close(self) -> None:
        self._call_off()
        logging.getLogger(LOG).removeHandler(self._handler)

    @property
    def heard(self) -> bool:
        """Whether dynamo has compiled anything, or tried to."""
        self._take_breaks("")
        return bool(self._count or self._events or self._counted("frames", "total"))

    def refresh(self) -> None:
        """Listen again after the program has set up torch's logs again, which drops all handlers."""
        logger = logging.getLogger(LOG)
        if "torch._dynamo" in sys.modules and self._handler not in logger.handlers:
            logger.addHandler(self._handler)

    def record(self, *, tried: bool = False, notes: Sequence[str] = ()) -> CompileRecord:
        """Return all that dynamo has reported so far; `tried` says that the program didn't ask it to."""
        self._take_breaks("")
        version = str(getattr(sys.modules.get("torch"), "__version__", ""))
        return CompileRecord(
            torch=version,
            tried=tried,
            frames=self._count or self._counted("frames", "total"),
            graphs=self._graphs or self._counted("stats", "unique_graphs"),
            events=tuple(_whole(event, count) for event, count in self._events.items()),
            notes=(*self._gaps(version), *notes),
        )

    # what dynamo says

    def _listen(self, dynamo: ModuleType) -> None:
        self._listed = len(self._list() or ())
        self._failed = dict(self._counters("unimplemented"))
        self._before = {at: self._counted(*at) for at in (("frames", "total"), ("stats", "unique_graphs"))}
        logging.getLogger(LOG).addHandler(self._handler)

    def _heard(self, metadata: Mapping[str, Any], payload: str | None) -> None:
        frame = f"{metadata.get('frame_id')}"
        if "dynamo_output_graph" in metadata:
            self._graphs += 1
            self._with_graph.add(frame)
        elif isinstance(metrics := metadata.get("compilation_metrics"), Mapping):
            self._compiled(frame, metrics)
        elif isinstance(artifact := metadata.get("artifact"), Mapping) and payload:
            if artifact.get("name") == "recompile_reasons":
                self._recompiled(frame, payload)
            elif artifact.get("name") == "dynamo_graph_break_reason" and (at := _BROKE_AT.search(payload)):
                self._broke_at[frame] = at[1], int(at[2])

    def _compiled(self, frame: str, metrics: Mapping[str, Any]) -> None:
        if metrics.get("co_name"):
            self._frames.setdefault(frame, self._code(metrics))
        elif not metrics.get("fail_type"):
            return
        self._count += 1
        self._take_breaks(frame)
        code = self._frames.get(frame, NOWHERE)
        if graphless := str(metrics.get("cudagraph_skip_reason") or ""):
            why = graphless.partition("\n")[0].removeprefix(_SKIPPED_GRAPH).removesuffix(". Found from : ")
            self._add(CompileKind.NO_CUDA_GRAPH, why, "", code, code)
        reason, hint = _in_short(
            str(metrics.get("fail_reason") or metrics.get("fail_type") or self._unsaid(frame, metrics))
        )
        if reason and not any(nothing in reason for nothing in _NOTHING_IN_IT):
            broke = (metrics.get("fail_user_frame_filename"), metrics.get("fail_user_frame_lineno"))
            at, line = (broke[0], _line(broke[1])) if all(broke) else self._broke_at.get(frame, code[:2])
            self._add(CompileKind.SKIPPED, reason, hint, (str(at), line, code[2]), code)
        self._broke_at.pop(frame, None)
        self._with_graph.discard(frame)

    def _code(self, metrics: Mapping[str, Any]) -> Place:
        """Return file, first line and function of what was compiled; of a resumed function, those of the whole one."""
        name, file = str(metrics["co_name"]), str(metrics.get("co_filename"))
        function, first = _function(name), _line(metrics.get("co_firstlineno"))
        whole = (line for at, line, known in self._frames.values() if (known, at) == (function, file) and line <= first)
        return file, first if function == name else max(whole, default=first), function

    def _unsaid(self, frame: str, metrics: Mapping[str, Any]) -> str:
        """Return why a frame without a recorded failure was skipped; empty where it wasn't.

        Before torch 2.9 a graph break in a loop skips its frame so: ops were seen, and no graph came of them. The
        counters have what was in the way, if it wasn't a branch.
        """
        failed = {str(k): int(v) for k, v in self._counters("unimplemented").items()}
        grown = [reason for reason, count in failed.items() if count > self._failed.get(reason, 0)]
        self._failed = failed
        if frame in self._with_graph or not metrics.get("graph_op_count"):
            return ""
        return grown[-1] if grown else UNSAID

    def _recompiled(self, frame: str, payload: str) -> None:
        """Take up a failed guard of a frame's code; the last compilation is tried first, so its reason comes first."""
        reasons = json.loads(payload) if payload.lstrip().startswith("[") else [payload]
        code = self._frames.get(frame, NOWHERE)
        reason = re.sub(r"^\d+/\d+(?:_\d+)?: ", "", str(reasons[0])) if reasons else ""
        self._add(CompileKind.RECOMPILED, reason, "", code, code)

    def _take_breaks(self, frame: str) -> None:
        """Take up the graph breaks that were listed since, all of one frame."""
        listed = self._list() or []
        if len(listed) < self._listed:  # `torch._dynamo.reset()` empties it
            self._listed = 0
        for broken in listed[self._listed :]:
            stack = [(str(s.filename), s.lineno or -1, _function(s.name)) for s in broken.user_stack]
            if not stack or not getattr(broken, "graph_break", True):
                continue
            at = next((s for s in reversed(stack) if not is_library(s[0])), stack[-1])
            code = self._frames.get(frame) or (stack[0][0], -1, stack[0][2])
            reason, hint = _in_short(str(broken.reason))
            self._add(CompileKind.BREAK, reason, hint, at, code)
        self._listed = len(listed)

    def _add(self, kind: CompileKind, reason: str, hint: str, at: Place, frame: Place) -> None:
        event = CompileEvent(
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
        if event not in self._events and len(self._events) >= MOST_EVENTS:
            self._left_out += 1
        else:
            self._events[event] = self._events.get(event, 0) + 1

    # torch's own names; a version may not have all of them

    def _list(self) -> list[Any] | None:
        dynamo = sys.modules.get("torch._dynamo.utils")
        listed = getattr(dynamo, "graph_break_reasons", None)
        return listed if isinstance(listed, list) else None

    def _counted(self, group: str, name: str) -> int:
        return max(0, int(self._counters(group).get(name, 0)) - self._before.get((group, name), 0))

    def _counters(self, group: str) -> Mapping[str, int]:
        counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {})
        return dict(counters.get(group, {}))

    def _gaps(self, version: str) -> list[str]:
        """Return sentences on what this version of torch doesn't report."""
        if "torch._dynamo.utils" not in sys.modules:
            return []
        logs = importlib.import_module("torch._logging")
        gaps = [] if hasattr(logs, "trace_structured") else [NO_LOG.format(version)]
        gaps += [] if self._list() is not None else [NO_BREAKS.format(version)]
        return [*gaps, *([MORE.format(self._left_out)] if self._left_out else [])]


class _DynamoLogHandler(logging.Handler):
    """Hands on the structured part of each record; the record's text is never made."""

    def __init__(self, heard: Callable[[Mapping[str, Any], str | None], None]) -> None:
        super().__init__()
        self._hand_on = heard

    def emit(self, record: logging.LogRecord) -> None:
        """Hand a record on; whatever goes wrong stays here, as the compiler is at work."""
        with contextlib.suppress(Exception):
            self._hand_on(getattr(record, "metadata", {}), getattr(record, "payload", None))


def _whole(event: CompileEvent, count: int) -> CompileEvent:
    """Return the event with how often it came, and of a skipped frame with its last line."""
    last = _last_line(event.frame_file, event.frame_line) if event.kind is CompileKind.SKIPPED else -1
    return msgspec.structs.replace(event, count=count, frame_last=last)


def _last_line(file: str, first: int) -> int:
    """Return the last line of the function that begins at a line, decorators included; -1 where there is none."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return -1
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    begins = ((min([node.lineno, *(d.lineno for d in node.decorator_list)]), node.end_lineno) for node in functions)
    return next((end or -1 for begin, end in begins if begin == first), -1)


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
