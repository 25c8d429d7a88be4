"""An editor sees lint warnings and the newest recording's findings, asks why, and gets a verified fix."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls")
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from syncscan import api
from syncscan.serving import language_server

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

    async def open(self, file: Path, uri: str = "") -> list[types.Diagnostic]:
        """Open a file as editors do, without a byte order mark but with its line ends, and return its diagnostics."""
        item = types.TextDocumentItem(uri or file.as_uri(), "python", 1, file.read_bytes().decode("utf-8-sig"))
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return await self.published()

    async def save(self, file: Path) -> list[types.Diagnostic]:
        """Save a file as it is, and return its diagnostics."""
        saved = types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(file.as_uri()))
        self.client.text_document_did_save(saved)
        return await self.published()

    async def change(self, file: Path, text: str) -> None:
        """Type a file's new text, without saving it."""
        document = types.VersionedTextDocumentIdentifier(2, file.as_uri())
        whole = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [whole]))
        await self.published()

    async def published(self) -> list[types.Diagnostic]:
        """Return the next diagnostics."""
        return list((await asyncio.wait_for(self.diagnostics.get(), 120)).diagnostics)

    async def hover(self, uri: str) -> types.Hover | None:
        """Point at the line that waits."""
        at = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(7, 3))
        return await self.client.text_document_hover_async(at)

    async def fix(self, file: Path) -> str:
        """Run the quick fix, and return its message."""
        command = types.ExecuteCommandParams(language_server.FIX, [file.as_uri()])
        await asyncio.wait_for(self.client.workspace_execute_command_async(command), 120)
        return await asyncio.wait_for(self.messages.get(), 120)


Talk = Callable[[Editor], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the editor has open: each test has a folder of its own in it."""
    return tmp_path_factory.mktemp("workspace")


@pytest.fixture
def folder(workspace: Path, request: pytest.FixtureRequest) -> Path:
    folder = workspace / request.node.name
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def edited(workspace: Path, warm_python: str) -> Iterator[Callable[[Talk], None]]:
    """Talks with the one server of all tests here, which is a process of its own, as an editor starts it."""
    loop, editor = asyncio.new_event_loop(), Editor()

    async def begin() -> None:
        await editor.client.start_io(warm_python, "-m", "syncscan", "serve", "lsp")
        capabilities = types.ClientCapabilities()
        await editor.client.initialize_async(
            types.InitializeParams(capabilities, process_id=None, root_uri=workspace.as_uri())
        )
        editor.client.initialized(types.InitializedParams())

    async def end() -> None:
        await editor.client.shutdown_async(None)
        editor.client.exit(None)

    def talk_with(talk: Talk) -> None:
        editor.edits.clear()
        loop.run_until_complete(talk(editor))
        assert editor.diagnostics.empty()

    loop.run_until_complete(begin())
    yield talk_with
    loop.run_until_complete(end())
    loop.close()


def test_an_open_file_shows_its_lint_warnings_and_why(edited: Callable[[Talk], None], folder: Path) -> None:
    """At their lines, as information: nothing ran."""
    file = folder / "train.py"
    file.write_text(LOOP)

    async def talk(editor: Editor) -> None:
        (item,) = [d for d in await editor.open(file) if d.code == "item"]
        assert (item.range.start.line, item.severity) == (7, types.DiagnosticSeverity.Information)
        hover = await editor.hover(file.as_uri())
        assert hover is not None
        assert "**Instead:**" in hover.contents.value  # type: ignore[union-attr]

    edited(talk)


def test_findings_of_the_newest_recording_say_their_gain(edited: Callable[[Talk], None], folder: Path) -> None:
    """In place of the lint warning of that line."""
    recording = SAMPLES / "logged.pt.trace.json.gz"
    match = next(f for f in api.analyze(str(recording)).findings if f.rule == "item" and f.source)
    assert match.source is not None
    file = folder / match.source.file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n" * (match.source.line + 3))

    async def talk(editor: Editor) -> None:
        assert not await editor.open(file)
        shutil.copy(recording, folder)
        (shown,) = [d for d in await editor.save(file) if d.code == "item"]
        assert shown.range.start.line == match.source.line - 1  # type: ignore[union-attr]
        assert shown.severity == types.DiagnosticSeverity.Warning
        assert "27% of the step (4.3 ms)" in shown.message

    edited(talk)


def test_the_quick_fix_applies_what_a_dry_run_verified(edited: Callable[[Talk], None], folder: Path) -> None:
    """The edit is the whole file, patched; a message says how many places."""
    pytest.importorskip("torch")
    file = folder / "train.py"
    file.write_text(LOOP)

    async def talk(editor: Editor) -> None:
        shown = await editor.open(file)
        document = types.TextDocumentIdentifier(file.as_uri())
        requested = types.CodeActionParams(document, shown[0].range, types.CodeActionContext(shown))
        (action,) = await editor.client.text_document_code_action_async(requested)  # type: ignore[misc]
        assert "apply verified fixes" in action.title
        assert await editor.fix(file) == "Fixed and verified: 1 place."
        (edits,) = editor.edits[0].changes.values()  # type: ignore[union-attr]
        assert "loss.item()" not in edits[0].new_text

    edited(talk)


def test_the_newest_recording_is_taken_and_environments_are_not_looked_through(tmp_path: Path) -> None:
    for name in ("a.pt.trace.json", ".venv/b.pt.trace.json"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")
    assert language_server.newest_recording(tmp_path) == tmp_path / "a.pt.trace.json"


def test_a_file_that_cannot_be_parsed_has_no_warnings() -> None:
    assert list(language_server.lint_text("train.py", "for x in (")) == []


def test_columns_count_utf_16_units(edited: Callable[[Talk], None], folder: Path) -> None:
    """As the protocol does: a character outside of the basic plane has two."""
    file = folder / "train.py"
    line = '    print("😀", loss.item())'
    file.write_text(LOOP.replace("    total += loss.item()", line), "utf-8")

    async def talk(editor: Editor) -> None:
        starts = [d.range.start for d in await editor.open(file) if d.range.start.line == 7]
        assert [start.character for start in starts] == [line.index("loss") + 1]

    edited(talk)


def test_a_hover_is_found_by_the_editor_s_own_spelling_of_the_address(
    edited: Callable[[Talk], None], folder: Path
) -> None:
    """Editors escape other characters of a path than Python does."""
    file = folder / "möbel (1).py"
    file.write_text(LOOP)
    uri = file.as_uri().replace("%28", "(").replace("%29", ")").replace("m", "%6D")

    async def talk(editor: Editor) -> None:
        assert await editor.open(file, uri)
        assert await editor.hover(uri) is not None

    edited(talk)


def test_a_closed_file_has_no_diagnostics_any_more(edited: Callable[[Talk], None], folder: Path) -> None:
    """They were of the text in the editor, which may never be saved."""
    file = folder / "train.py"
    file.write_text(LOOP)

    async def talk(editor: Editor) -> None:
        assert await editor.open(file)
        closed = types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(file.as_uri()))
        editor.client.text_document_did_close(closed)
        assert not await editor.published()

    edited(talk)


def test_what_cannot_be_fixed_is_one_sentence(edited: Callable[[Talk], None], folder: Path) -> None:
    """A buffer that isn't saved, a file that isn't Python yet, one in no encoding, and one that is gone."""
    names = "unsaved.py", "broken.py", "bytes.py", "gone.py"
    unsaved, broken, undecodable, gone = files = [folder / name for name in names]
    for file in files:
        file.write_text(LOOP)
    broken.write_text("for x in (")

    async def talk(editor: Editor) -> None:
        for file in files:
            await editor.open(file)
        await editor.change(unsaved, "print(1)\n")
        undecodable.write_bytes(b"# \xff\n")
        gone.unlink()
        answers = [await editor.fix(file) for file in files]
        assert answers[0] == "Save the file first: syncscan runs the version on disk."
        assert "can't be run dry" in answers[1]
        assert answers[2] == "Save the file first: syncscan runs the version on disk."
        assert answers[3] == "Save the file first: syncscan runs the version on disk."
        assert not editor.edits

    edited(talk)


@pytest.mark.slow
def test_line_ends_and_a_byte_order_mark_stay(edited: Callable[[Talk], None], folder: Path) -> None:
    """A saved file with Windows' line ends is the editor's text, and its patch has them too."""
    pytest.importorskip("torch")
    file = folder / "train.py"
    file.write_bytes(b"\xef\xbb\xbf" + f"# größer\n{LOOP}".replace("\n", "\r\n").encode())

    async def talk(editor: Editor) -> None:
        await editor.open(file)
        assert await editor.fix(file) == "Fixed and verified: 1 place."
        (edits,) = editor.edits[0].changes.values()  # type: ignore[union-attr]
        assert edits[0].new_text.startswith("# größer\r\nimport torch\r\n")
        assert edits[0].new_text.count("\n") == edits[0].new_text.count("\r\n")

    edited(talk)


@pytest.mark.slow
def test_what_is_typed_while_the_fix_runs_is_not_replaced(edited: Callable[[Talk], None], folder: Path) -> None:
    """The edit would be of the whole file as it was."""
    pytest.importorskip("torch")
    file = folder / "train.py"
    file.write_text(LOOP)

    async def talk(editor: Editor) -> None:
        await editor.open(file)
        fixing = asyncio.create_task(editor.fix(file))
        await asyncio.sleep(0)  # the request is sent
        assert await editor.hover(file.as_uri())  # and read, as this comes behind it
        await editor.change(file, f"{LOOP}print('more')\n")
        assert await fixing == "The file was changed while its fixes were verified: save it, and fix it again."
        assert not editor.edits

    edited(talk)
