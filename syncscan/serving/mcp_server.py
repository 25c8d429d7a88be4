"""Answer calls of the Model Context Protocol about the traces below one folder, in pages that fit into a context."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec

from syncscan import api
from syncscan.errors import MissingExtra, SyncscanError, TraceNotFound, UsageError
from syncscan.report import analysis_report, markup, terminal, whatif_report
from syncscan.version import __version__

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from syncscan.model.analysis import Analysis
from collections.abc import Sequence

from syncscan.report.printable import shown

P = ParamSpec("P")
MOST = 20
"""Traces of a folder that an error names."""
INSTRUCTIONS = """\
syncscan reads torch.profiler traces: it finds where a PyTorch program makes its host wait for the device, names the
line, and projects what removing a wait would gain. A wait is not a loss: use `saves`, not `waits`. Begin with
`analyze`, use `explain` for an id or a rule, and `whatif` before you propose to remove several. `fix` writes a patch
and verifies it without a GPU, `prove` measures it. Paths are relative to the folder that the server was started in. A
longer answer has several pages: request `page` 2."""


def server(root: Path) -> MCPServer:
    """Return a server whose tools read files below a folder, and nothing else."""
    try:
        from mcp.server import MCPServer
        from mcp.types import ToolAnnotations
    except ImportError:
        raise MissingExtra("The server needs the package mcp.", "pip install 'mcp>=2,<3'") from None
    mcp_server: MCPServer = MCPServer("syncscan", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING")
    traces = Traces(root)
    for tool in _tools(traces):
        mcp_server.tool(annotations=ToolAnnotations(read_only_hint=True), structured_output=False)(_anticipated(tool))
    runs = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
    for tool in _running(traces):
        mcp_server.tool(annotations=runs, structured_output=False)(_anticipated(tool))
    return mcp_server


class Traces:
    """Traces below a folder, analyzed on demand and cached for the next question.

    A path that leads out of the folder, also by a symbolic link, isn't read.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def inside(self, path: str) -> Path:
        """Return the file or folder of this name; a UsageError where it lies elsewhere."""
        try:
            resolved = (self.root / path).resolve()
        except (OSError, ValueError, RuntimeError):
            raise UsageError(f"{path!r} is not a path.") from None
        if not resolved.is_relative_to(self.root):
            raise UsageError(f"{path} isn't below the folder that the server was started in.", "Copy it there.")
        if not resolved.exists():
            raise TraceNotFound(f"There is no file {path} below the folder that the server was started in.")
        return resolved

    def below(self, path: str) -> list[str]:
        """Return the traces that a path means, as paths from the folder on: a file itself, those in a folder."""
        return [str(Path(trace).relative_to(self.root)) for trace in api.find([str(self.inside(path))])]

    def program(self, name: str) -> str:
        """Return a script, or a function of a file, by its path and maybe `:function`; both lie below the folder."""
        file, colon, function = name.partition(":")
        return f"{self.inside(file)}{colon}{function}"

    def analysis(self, path: str) -> Analysis:
        """Return the analysis of the trace of this name; of a folder that holds one trace, of that."""
        traces = self.below(path)
        if len(traces) > 1:
            raise UsageError(
                f"{path} contains {len(traces)} traces: give one.", f"There are {', '.join(traces[:MOST])}."
            )
        file = self.inside(traces[0])
        state = file.stat()
        return _analyzed(str(file), state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=2)
def _analyzed(path: str, _changed_ns: int, _size: int) -> Analysis:
    """Kept while the file is the same: a client asks for pages, explanations and projections of one trace in turn."""
    return api.analyze(path)


def _tools(traces: Traces) -> Iterator[Callable[..., str]]:
    """Yield the tools; their docstrings and signatures are what a client's model reads."""

    def analyze(trace: str, page: int = 1) -> str:
        """Analyze a trace of torch.profiler: what limits the step, what to change first, every host-device sync.

        Args:
            trace: path of a .json, .json.gz or .json.zst file, or of a folder that holds one.
            page: number of the page of a long answer, from 1.
        """
        return paged(markup.drawn(analysis_report.blocks(traces.analysis(trace), verbose=True)), page)

    def explain(name: str, trace: str = "", page: int = 1) -> str:
        """Explain a rule: what it finds, why it costs time, what to write instead; or what is measured of a finding.

        Args:
            name: a rule's id such as `item`, the id of a finding or habit, or with a trace a number of its list.
            trace: path of a trace: what was measured there comes first.
            page: number of the page of a long answer, from 1.
        """
        return paged(api.explanation(name, traces.analysis(trace) if trace else None), page)

    def whatif_(trace: str, remove: list[str] | None = None, page: int = 1) -> str:
        """Replay the step of a trace without some of its syncs: what removing them together would really gain.

        Args:
            trace: path of a trace.
            remove: selectors, each `all`, `scope:GLOB`, `rule:ID`, `op:GLOB` or `id:ID`; by default all.
            page: number of the page of a long answer, from 1.
        """
        analysis = traces.analysis(trace)
        projection = analysis.whatif(*(remove or ["all"]), fix=True)
        return paged(terminal.drawn(whatif_report.blocks(analysis, projection), LINE), page)

    def diff(before: str, after: str, page: int = 1) -> str:
        """Compare recordings of two states of a program: which syncs came, went or changed, and what the step gained.

        Args:
            before: path of a trace of the earlier state, or of a folder with several.
            after: of the later state.
            page: number of the page of a long answer, from 1.
        """
        from syncscan import gate
        from syncscan.gate import diff_report

        states = [[traces.analysis(path) for path in traces.below(side)] for side in (before, after)]
        return paged(terminal.drawn(diff_report.blocks(gate.diff(*states)), LINE), page)

    whatif_.__name__ = "whatif"
    yield from (analyze, explain, whatif_, diff)


def _running(traces: Traces) -> Iterator[Callable[..., str]]:

    def fix(
        program: str,
        arguments: list[str] | None = None,
        trace: str = "",
        unsafe: bool = False,
        limit_s: float = 60.0,
        page: int = 1,
    ) -> str:
        """Run a program on a simulated GPU, and return a patch that removes waits, verified by a second run.

        No file is changed. Apply the diff with `git apply`, then measure it with `prove` on a machine with a GPU.

        Args:
            program: path of a script, or `file.py:function`.
            arguments: of the script.
            trace: path of a recording of the program: shows gains, and leaves what gains nothing.
            unsafe: also fix what changes memory use, laziness or the moment of an exception.
            limit_s: seconds that one run may take; there are about six.
            page: number of the page of a long answer, from 1.
        """
        from syncscan.fixing import fix as run
        from syncscan.fixing import report as fix_report

        recording = str(traces.inside(traces.below(trace)[0])) if trace else None
        fixed = run(traces.program(program), arguments or (), trace=recording, unsafe=unsafe, limit_s=limit_s)
        return paged(terminal.drawn((*fix_report.patch(fixed), *fix_report.blocks(fixed))), page, tabs=True)

    def prove(before: str, after: str, arguments: list[str] | None = None, limit_s: float = 120.0) -> str:
        """Run two programs in turn, without a profiler: whether the second is faster, and computes the same.

        Args:
            before: path of a script, or `file.py:function`, of which each call is a step.
            after: the same, changed.
            arguments: of both scripts.
            limit_s: seconds that all may take.
        """
        from syncscan.proof import report as proof_report
        from syncscan.proof.prove import prove as run

        programs = [traces.program(name) for name in (before, after)]
        proof = run(*programs, arguments=arguments or (), limit_s=limit_s)
        return paged(terminal.drawn(proof_report.blocks(proof)))

    yield from (fix, prove)


def _anticipated(tool: Callable[P, str]) -> Callable[P, str]:
    """Return the tool, with our errors as sentences for the client; the server withholds others."""
    from mcp.server.mcpserver.exceptions import ToolError

    @wraps(tool)
    def called(*args: P.args, **kwargs: P.kwargs) -> str:
        try:
            return tool(*args, **kwargs)
        except SyncscanError as error:
            raise ToolError(str(error)) from None

    return called


def serve(root: Path) -> None:
    """Answer one client on standard input and output until it hangs up."""
    server(root).run("stdio")


PAGE = 4_500
"""Characters per page. An answer should stay below 2,000 tokens; paths and numbers, the worst case, take a token per
2.5 to 3 characters (cl100k_base, o200k_base), prose one per 4."""
LINE = 500
"""Longest line, in characters; a longer one loses its middle."""


def paged(text: str, page: int = 1, *, tabs: bool = False) -> str:
    """Return one page of a text, without control characters; the last line says how to get the next page.

    Pages count from 1. A line longer than `LINE` loses its middle. With `tabs`, tabs and carriage returns at line ends
    stay, as in a patch.
    """
    lines = text.removesuffix("\n").split("\n")
    pages = _pages([_line(line, "\t" if tabs else "") for line in lines])
    if not 1 <= page <= len(pages):
        return f"There is no page {page}; the last is {len(pages)}.\n"
    more = [f"[page {page} of {len(pages)}; next: page {page + 1}]"] if page < len(pages) else []
    return "\n".join([*pages[page - 1], *more]) + "\n"


def _line(line: str, separator: str) -> str:
    end = "\r" if separator and line.endswith("\r") else ""
    parts = line.removesuffix("\r").split(separator) if separator else [line]
    return separator.join(shown(part, LINE) for part in parts) + end


def _pages(lines: Sequence[str]) -> list[list[str]]:
    pages: list[list[str]] = [[]]
    room = PAGE
    for line in lines:
        if len(line) + 1 > room and pages[-1]:
            pages.append([])
            room = PAGE
        pages[-1].append(line)
        room -= len(line) + 1
    return pages
