"""Serve an editor: lint warnings and the newest recording's findings as diagnostics, their reasons, and verified fixes.

An open file is linted as it is in the editor. Findings are those of the newest trace or saved analysis below the
workspace's folder; each says what it saves. A quick fix runs the file dry, as `syncscan fix` does, and applies what it
verified.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import tempfile
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syncscan import api, features
from syncscan.errors import MissingExtra, SyncscanError, installing
from syncscan.lint.warning import LintWarning
from syncscan.model.finding import Finding, Severity
from syncscan.report.phrases import measurable, replayed
from syncscan.report.units import duration, percent, within
from syncscan.version import __version__

if TYPE_CHECKING:
    from lsprotocol.types import CodeAction, Diagnostic, Hover, WorkspaceEdit
    from pygls.lsp.server import LanguageServer
    from pygls.workspace import TextDocument

    from syncscan.model.analysis import Analysis

NAME = "syncscan"
FIX = "syncscan.fix"
"""The command behind the quick fix."""
RECORDINGS = ("*.syncscan.json", "*.syncscan.json.gz", "*.pt.trace.json", "*.pt.trace.json.gz")
CHANGED = "The file was changed while its fixes were verified: save it, and fix it again."
MOST_FILES = 20_000
"""Entries of the workspace that are looked through for recordings."""
_SKIPPED = frozenset({".git", ".venv", "node_modules", "__pycache__", "site-packages"})


def server(root: Path | None = None) -> LanguageServer:
    """Return a server for one editor; recordings are looked for below `root`, by default the workspace's folder."""
    try:
        from lsprotocol import types
        from pygls.lsp.server import LanguageServer
    except ImportError:
        raise MissingExtra("The language server needs pygls.", installing("lsp")) from None

    language_server = LanguageServer(NAME, __version__)
    state = _ServerState(root)

    def publish(uri: str) -> None:
        document = language_server.workspace.get_text_document(uri)
        folder = language_server.workspace.root_path
        shown = state.diagnostics(uri, document.path, document.source, Path(folder) if folder else None)
        send(uri, [in_units_of_client(diagnostic, document) for diagnostic in shown])

    def send(uri: str, shown: list[Diagnostic]) -> None:
        language_server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri=uri, diagnostics=shown))

    @language_server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        publish(params.text_document.uri)

    @language_server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        publish(params.text_document.uri)

    @language_server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        state.forget()
        publish(params.text_document.uri)

    @language_server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        send(params.text_document.uri, [])

    @language_server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> Hover | None:
        return state.hover(params.text_document.uri, params.position.line)

    @language_server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])
    )
    def actions(params: types.CodeActionParams) -> list[CodeAction]:
        return _actions(params.text_document.uri, params.context.diagnostics)

    @language_server.command(FIX)
    async def fix(uri: str) -> None:
        document = language_server.workspace.get_text_document(uri)
        text = document.source
        try:
            edit, sentence = await asyncio.to_thread(_fixed, document.path, text, uri)
        except SyncscanError as error:
            edit, sentence = None, f"{error.message} {error.hint or ''}".strip()
        if edit is not None and language_server.workspace.get_text_document(uri).source != text:
            edit, sentence = None, CHANGED
        if edit is not None:
            language_server.workspace_apply_edit(types.ApplyWorkspaceEditParams(edit=edit, label="syncscan fix"))
        language_server.window_show_message(types.ShowMessageParams(type=types.MessageType.Info, message=sentence))

    return language_server


class _ServerState:
    """The newest recording, and the reasons to show for each open file."""

    def __init__(self, root: Path | None) -> None:
        self._root = root
        self._recording: tuple[Path, float, Analysis] | None = None
        self._looked = False
        self._reasons: dict[str, dict[int, list[str]]] = {}

    def forget(self) -> None:
        self._looked = False

    def diagnostics(self, uri: str, path: str, text: str, folder: Path | None) -> list[Diagnostic]:
        """Return the diagnostics of a file, columns in characters, and keep what there is to say of each line."""
        warnings, findings = lint_text(path, text), self._findings(path, folder)
        lines = {f.source.line for f in findings if f.source}
        reasons: dict[int, list[str]] = {}
        shown = []
        for finding in findings:
            shown.append(of_finding(finding, self._step_us))
            reasons.setdefault(shown[-1].range.start.line, []).append(_reason(finding))
        for warning in warnings:
            if warning.source.line not in lines:
                shown.append(diagnostic_of_warning(warning))
                reasons.setdefault(warning.source.line - 1, []).append(_reason(warning))
        self._reasons[uri] = reasons
        return shown

    def hover(self, uri: str, line: int) -> Hover | None:
        """Return why a line waits and what to write instead; None where it doesn't."""
        from lsprotocol import types

        reasons = self._reasons.get(uri, {}).get(line)
        if not reasons:
            return None
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, "\n\n---\n\n".join(reasons)))

    @property
    def _step_us(self) -> float:
        return replayed(self._recording[2].step) if self._recording else 0.0

    def _findings(self, path: str, folder: Path | None) -> list[Finding]:
        analysis = self._newest(self._root or folder)
        if analysis is None:
            return []
        return [f for f in analysis.findings if not f.intended and _is_of(f, path)]

    def _newest(self, folder: Path | None) -> Analysis | None:
        if self._looked or folder is None:
            return self._recording[2] if self._recording else None
        self._looked = True
        path = newest_recording(folder)
        if path is None:
            self._recording = None
        elif self._recording is None or self._recording[:2] != (path, path.stat().st_mtime):
            try:
                self._recording = (path, path.stat().st_mtime, api.analyze(str(path)))
            except SyncscanError:
                self._recording = None
        return self._recording[2] if self._recording else None


def newest_recording(folder: Path) -> Path | None:
    """Return the newest trace or saved analysis below a folder; None without one."""
    newest: tuple[float, Path] | None = None
    for path in itertools.islice(_walk(folder), MOST_FILES):
        if any(path.match(glob) for glob in RECORDINGS):
            changed = path.stat().st_mtime
            if newest is None or changed > newest[0]:
                newest = changed, path
    return newest[1] if newest else None


def _walk(folder: Path) -> Iterator[Path]:
    for at, folders, files in os.walk(folder):
        folders[:] = sorted(set(folders) - _SKIPPED)
        yield from (Path(at, file) for file in sorted(files))


def lint_text(path: str, text: str) -> Sequence[LintWarning]:
    """Return the lint warnings of a file as it is in an editor, none where it can't be parsed yet."""
    if "lint" not in features.rooms():
        return ()
    from syncscan.lint import lint

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / (Path(path).name or "untitled.py")
        file.write_bytes(_encoded(text))
        return lint([str(file)]).warnings


def _encoded(text: str) -> bytes:
    """Return a text in the encoding that it declares; in UTF-8 where it can't be."""
    data = text.encode("utf-8", "replace")
    try:
        return text.encode(tokenize.detect_encoding(BytesIO(data).readline)[0])
    except (SyntaxError, LookupError, UnicodeEncodeError):
        return data


def in_units_of_client(diagnostic: Diagnostic, document: TextDocument) -> Diagnostic:
    """Return a diagnostic whose column counts what the client counts: UTF-16 units, unless it asked for others."""
    from lsprotocol import types

    at = diagnostic.range
    if at.start.character == 0 or at.start.line >= len(document.lines):
        return diagnostic
    before = document.lines[at.start.line][: at.start.character]
    start = types.Position(at.start.line, document.position_codec.client_num_units(before))
    diagnostic.range = types.Range(start, at.end)
    return diagnostic


def diagnostic_of_warning(warning: LintWarning) -> Diagnostic:
    """Return a lint warning as an editor shows it, columns in characters."""
    from lsprotocol import types

    start = types.Position(warning.source.line - 1, max(0, warning.source.column - 1))
    end = (
        types.Position(warning.source.end_line, 0)
        if warning.source.end_line > warning.source.line
        else types.Position(warning.source.line - 1, 10_000)
    )
    faint = warning.severity is Severity.LOW
    return types.Diagnostic(
        range=types.Range(start, end),
        message=f"{warning.title} (in {warning.place}; not run)",
        severity=types.DiagnosticSeverity.Hint if faint else types.DiagnosticSeverity.Information,
        code=warning.rule,
        source=NAME,
    )


def of_finding(finding: Finding, step_us: float) -> Diagnostic:
    """Return a finding of a recording as an editor shows it, with its gain."""
    from lsprotocol import types

    assert finding.source is not None
    line = max(0, finding.source.line - 1)
    gains = measurable(finding.recoverable_us or 0.0, step_us)
    return types.Diagnostic(
        range=types.Range(types.Position(line, 0), types.Position(line, 10_000)),
        message=f"{finding.title}: {_gain(finding, step_us)}",
        severity=types.DiagnosticSeverity.Warning if gains else types.DiagnosticSeverity.Information,
        code=finding.rule,
        source=NAME,
    )


def _gain(finding: Finding, step_us: float) -> str:
    """Return `27% of the step (4.3 ms)`, or that nothing is gained."""
    gain = finding.recoverable_us
    if gain is None:
        return f"waits {duration(finding.waited_us)} per step; its gain isn't projected"
    if not measurable(gain, step_us):
        return f"waits {duration(finding.waited_us)} per step; removing it gains nothing measurable"
    return f"{percent(gain, step_us)} of the step ({within(gain, finding.recoverable_range_us)})"


def _is_of(finding: Finding, path: str) -> bool:
    """Return whether a finding lies in this file: its path, as recorded or below the program's folder, ends alike."""
    source = finding.source
    if source is None or not source.exact:
        return False
    named, here = source.file.replace("\\", "/"), path.replace("\\", "/")
    return named == here or here.endswith("/" + named.lstrip("./"))


def _reason(of: Finding | LintWarning) -> str:
    return f"**{of.title}** (`{of.rule}`)\n\n{of.why}\n\n**Instead:** {of.fix}"


def _actions(uri: str, diagnostics: Iterable[Any]) -> list[CodeAction]:
    """Return the quick fix of a file's diagnostics: what it does is known once the file has run."""
    from lsprotocol import types

    ours = [diagnostic for diagnostic in diagnostics if diagnostic.source == NAME]
    if not ours:
        return []
    title = "syncscan: run this file on a simulated GPU and apply verified fixes"
    return [
        types.CodeAction(
            title=title,
            kind=types.CodeActionKind.QuickFix,
            diagnostics=ours,
            command=types.Command(title=title, command=FIX, arguments=[uri]),
        )
    ]


def _fixed(path: str, text: str, uri: str) -> tuple[WorkspaceEdit | None, str]:
    """Run a file dry, and return the edit of what was fixed in it, with a sentence; the file has to be saved."""
    from lsprotocol import types

    from syncscan.fixing import fix

    if not _is_saved(path, text):
        return None, "Save the file first: syncscan runs the version on disk."
    fixed = fix(path)
    patched = next((file for file in fixed.files if Path(file.path).resolve() == Path(path).resolve()), None)
    count = sum(1 for one in fixed.applied if patched is not None and one.file == patched.file)
    if patched is None:
        return None, "Nothing here could be fixed and verified; syncscan fix shows why."
    whole = types.Range(types.Position(0, 0), types.Position(len(text.splitlines()) + 1, 0))
    edit = types.WorkspaceEdit(changes={uri: [types.TextEdit(whole, patched.after)]})
    return edit, f"Fixed and verified: {count} place{'s' * (count != 1)}."


def _is_saved(path: str, text: str) -> bool:
    """Return whether a file on disk is the text of an editor, which has no byte order mark."""
    from syncscan.source.text import read

    try:
        return read(path).text == text
    except (OSError, SyntaxError, UnicodeDecodeError, LookupError):
        return False


def serve() -> None:
    """Answer an editor on standard input and output."""
    server().start_io()
