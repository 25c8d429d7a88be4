"""An editor sees lint warnings and the newest recording's findings, asks why, and gets a verified fix."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls")
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from syncscan import api
from syncscan.integrations import language_server

SAMPLES = Path(__file__).parents[2] / "sample_traces"
LOOP = """\
import torch

model = torch.nn.Linear(4, 4).to("cuda")
total = 0.0
for _ in range(5):
    loss = model(torch.ones(2, 4, device="cuda")).sum()
    loss.backward()
    total += loss.item()
print(total)
"""


class Editor:
    """A client that keeps the server's diagnostics, edits and messages."""

    def __init__(self) -> None:
        self.client = LanguageClient("editor", "1")
        self.diagnostics: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()
        self.edits: list[types.WorkspaceEdit] = []
        self.messages: asyncio.Queue[str] = asyncio.Queue()

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            self.diagnostics.put_nowait(params)

        @self.client.feature(types.WORKSPACE_APPLY_EDIT)
        def applied(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
            self.edits.append(params.edit)
            return types.ApplyWorkspaceEditResult(applied=True)

        @self.client.feature(types.WINDOW_SHOW_MESSAGE)
        def shown(params: types.ShowMessageParams) -> None:
            self.messages.put_nowait(params.message)

    async def open(self, file: Path) -> list[types.Diagnostic]:
        """Open a file, and return its diagnostics."""
        item = types.TextDocumentItem(file.as_uri(), "python", 1, file.read_text())
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return list((await asyncio.wait_for(self.diagnostics.get(), 60)).diagnostics)


def edited(folder: Path, talk: Callable[[Editor], Coroutine[Any, Any, None]]) -> None:
    """Talk with a server in a process of its own, as an editor does."""

    async def session() -> None:
        editor = Editor()
        await editor.client.start_io(sys.executable, "-m", "syncscan", "lsp")
        capabilities = types.ClientCapabilities()
        await editor.client.initialize_async(
            types.InitializeParams(capabilities, process_id=None, root_uri=folder.as_uri())
        )
        editor.client.initialized(types.InitializedParams())
        await talk(editor)
        await editor.client.shutdown_async(None)
        editor.client.exit(None)

    asyncio.run(session())


def test_an_open_file_shows_its_lint_warnings_and_why(tmp_path: Path) -> None:
    """At their lines, as information: nothing ran."""
    file = tmp_path / "train.py"
    file.write_text(LOOP)

    async def talk(editor: Editor) -> None:
        (item,) = [d for d in await editor.open(file) if d.code == "item"]
        assert (item.range.start.line, item.severity) == (7, types.DiagnosticSeverity.Information)
        at = types.HoverParams(types.TextDocumentIdentifier(file.as_uri()), types.Position(7, 3))
        hover = await editor.client.text_document_hover_async(at)
        assert hover is not None
        assert "**Instead:**" in hover.contents.value  # type: ignore[union-attr]

    edited(tmp_path, talk)


def test_findings_of_the_newest_recording_say_their_gain(tmp_path: Path) -> None:
    """In place of the lint warning of that line."""
    recording = SAMPLES / "logged.pt.trace.json.gz"
    match = next(f for f in api.analyze(str(recording)).findings if f.rule == "item" and f.where.source)
    assert match.where.source is not None
    file = tmp_path / match.where.source.file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n" * (match.where.source.line + 3))
    shutil.copy(recording, tmp_path)

    async def talk(editor: Editor) -> None:
        (shown,) = [d for d in await editor.open(file) if d.code == "item"]
        assert shown.range.start.line == match.where.source.line - 1  # type: ignore[union-attr]
        assert shown.severity == types.DiagnosticSeverity.Warning
        assert "27% of the step (4.33 ms)" in shown.message

    edited(tmp_path, talk)


def test_the_quick_fix_applies_what_a_dry_run_verified(tmp_path: Path) -> None:
    """The edit is the whole file, patched; a message says how many places."""
    pytest.importorskip("torch")
    file = tmp_path / "train.py"
    file.write_text(LOOP)

    async def talk(editor: Editor) -> None:
        shown = await editor.open(file)
        document = types.TextDocumentIdentifier(file.as_uri())
        requested = types.CodeActionParams(document, shown[0].range, types.CodeActionContext(shown))
        (action,) = await editor.client.text_document_code_action_async(requested)  # type: ignore[misc]
        assert "apply verified fixes" in action.title
        command = types.ExecuteCommandParams(language_server.FIX, [file.as_uri()])
        await asyncio.wait_for(editor.client.workspace_execute_command_async(command), 120)
        assert await asyncio.wait_for(editor.messages.get(), 120) == "Fixed and verified: 1 place."
        (edits,) = editor.edits[0].changes.values()  # type: ignore[union-attr]
        assert "loss.item()" not in edits[0].new_text

    edited(tmp_path, talk)


def test_the_newest_recording_is_taken_and_environments_are_not_looked_through(tmp_path: Path) -> None:
    for name in ("a.pt.trace.json", ".venv/b.pt.trace.json"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")
    assert language_server.newest_recording(tmp_path) == tmp_path / "a.pt.trace.json"


def test_a_file_that_cannot_be_parsed_has_no_warnings() -> None:
    assert list(language_server.lint_text("train.py", "for x in (")) == []
