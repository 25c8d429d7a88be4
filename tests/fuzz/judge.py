"""Check the promises of docs/threat-model.md for what syncscan makes of a file."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import sys
import traceback
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from syncscan import load
from syncscan.cli import main
from syncscan.errors import TraceError
from syncscan.load import open_bytes, second_process
from tests.load import reference
from tests.load.test_oracle import assert_equal

SECONDS = 20
"""Seconds of the processor: no file of the fuzzer's, the largest of which has some hundred kilobytes, takes longer."""
SAVED = 0.15
"""Fraction of inputs whose saved analysis is judged too: it takes as long as all the rest."""
FORMATS = ("text", "json", "csv", "markdown", "sarif", "github", "junit")
OPTIONS = ((), ("--untangle",), ("--around", "1"))
"""Options of `annotate`."""


class _TooLong(BaseException):
    """No `except Exception` may swallow it."""


def strict(text: bytes) -> Any:
    """Parse JSON as a strict reader does.

    Raises:
        ValueError: it refuses this: NaN and the like, half characters, the list of events twice.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if [key for key, _ in pairs].count("traceEvents") > 1:
            raise ValueError("traceEvents stands there twice")
        return dict(pairs)

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    top = json.loads(text.decode(), parse_constant=refuse, object_pairs_hook=once)
    json.dumps(top, ensure_ascii=False).encode()
    return top


def run(*args: str) -> tuple[int, bytes, str]:
    """Exit code and stdout of a command in this process, and what is wrong with how it ended."""
    out, wrong, code, argv = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True), "", 0, sys.argv
    sys.argv = ["syncscan", *args]
    try:
        with _limited(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            main()
    except SystemExit as e:
        code = int(e.code or 0)
        wrong = "" if code in (0, 2, 3) else f"exit {code}"
    except (Exception, _TooLong) as e:
        last = traceback.extract_tb(e.__traceback__)[-1]
        wrong = f"{type(e).__name__} in {Path(last.filename).name}:{last.lineno}"
    finally:
        sys.argv = argv
    return code, out.buffer.getvalue(), wrong  # type: ignore[attr-defined]


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def judged(path: Path, folder: Path, r: Random, valid: Any = None) -> list[str]:
    """Return the broken promises for a file; empty if all hold.

    Args:
        path: of the file.
        folder: an empty one for what is written.
        r: chooses formats and options.
        valid: what any JSON reader reads of it; None where it is damaged.
    """
    return [
        *_reports(path, [r.choice(FORMATS)]),
        *_copies(path, folder, [r.choice(((), *OPTIONS))], valid),
        *(_reading(path) if valid is not None else ()),
        *(_saved(path, folder) if r.random() < SAVED else ()),
    ]


def judged_wholly(path: Path, folder: Path) -> list[str]:
    """Return the broken promises in every format, with every option, and of the saved analysis."""
    return [*_reports(path, FORMATS), *_copies(path, folder, OPTIONS, None), *_saved(path, folder)]


def _reports(path: Path, formats: Iterable[str]) -> Iterator[str]:
    for form in formats:
        code, out, wrong = run("analyze", str(path), "--format", form)
        if wrong:
            yield f"analyze --format {form}: {wrong}"
        elif code == 0 and (fault := _fault(form, out)):
            yield f"analyze --format {form}: {fault}"
    _, out, wrong = run("whatif", str(path), "--format", "json")
    if wrong:
        yield f"whatif: {wrong}"


def _saved(path: Path, folder: Path) -> Iterator[str]:
    """Its saved analysis says what it says, and differs from it in nothing."""
    saved = folder / "s.syncscan.json"
    code, _, wrong = run("analyze", str(path), "-o", str(saved))
    if wrong:
        yield f"analyze -o: {wrong}"
    if code == 0 and not wrong:
        texts = [run("analyze", str(one)) for one in (path, saved)]
        if texts[0][1:] != texts[1][1:]:
            yield f"saved, it says something else: {texts[1][2]}"
        _, text, wrong = run("diff", str(path), str(saved))
        if wrong or b"No sync differs." not in text:
            yield f"diff with itself: {wrong or text[:200]!r}"
        code, _, wrong = run("check", str(saved), "--syncs", "1e9")
        if wrong and wrong != "exit 1":  # nothing can be seen in it
            yield f"check: {wrong}"
    saved.unlink(missing_ok=True)


def _fault(form: str, out: bytes) -> str:
    """Return the fault of a report; empty without one."""
    try:
        text = out.decode()
        if form in ("json", "sarif"):
            strict(out)
        if form == "junit":
            ElementTree.fromstring(text)
    except (ValueError, RecursionError, ElementTree.ParseError) as e:
        return f"{type(e).__name__} {e}"[:100]
    unsafe = next((c for c in text if not c.isprintable() and c not in "\n\u200b\u200c\u200d"), "")
    return f"{unsafe!r} reaches the terminal" if unsafe and form in ("text", "markdown", "github") else ""


def _copies(path: Path, folder: Path, options: Iterable[tuple[str, ...]], valid: Any) -> Iterator[str]:
    annotated = (("annotate", "a.json", chosen) for chosen in options)
    for command, name, chosen in (("report", "r.html", ()), *annotated, ("repair", "f.json", ())):
        out = folder / name
        code, _, wrong = run(command, str(path), "-o", str(out), "--force", *chosen)
        if wrong:
            yield f"{command} {' '.join(chosen)}: {wrong}"
        elif code == 0 and command != "report":
            try:
                count = _events(strict(out.read_bytes()))
            except (ValueError, RecursionError) as e:
                yield f"{command} {' '.join(chosen)} wrote: {type(e).__name__} {e}"[:160]
                continue
            if valid is not None and command == "repair" and count < _events(valid):
                yield f"repair kept {count} of {_events(valid)} events"
    leftover = [p.name for p in folder.iterdir() if p.name not in ("r.html", "a.json", "f.json")]
    if leftover:
        yield f"left behind: {leftover}"


def _events(top: Any) -> int:
    events = top.get("traceEvents") if isinstance(top, dict) else top
    return sum(isinstance(event, dict) for event in events) if isinstance(events, list) else 0


def _reading(path: Path) -> Iterator[str]:
    """The fast reader reads what the obvious one reads, in one process and in two, in large pieces and small ones."""
    try:
        with open_bytes(path) as stream:
            expected = reference.parse(stream.readall() or b"", str(path))
    except (ValueError, RecursionError):
        return
    except (TypeError, AttributeError):  # JSON, but no trace
        return
    worthwhile, possible = second_process.WORTHWHILE_BYTES, second_process.possible
    for two, piece in ((False, 1 << 20), (False, 3_000), (True, 3_000)):
        second_process.WORTHWHILE_BYTES, second_process.possible = (
            (0, lambda: True) if two else (worthwhile, lambda: False)
        )
        try:
            assert_equal(load.load(path, piece=piece), expected)
        except TraceError:
            if len(expected.slices):
                yield f"refused, in {1 + two} processes"
        except AssertionError as e:
            where = traceback.extract_tb(e.__traceback__)[-1]
            yield f"read otherwise by the obvious reader, {1 + two} processes, pieces of {piece}: {where.line} {e}"[
                :160
            ]
        finally:
            second_process.WORTHWHILE_BYTES, second_process.possible = worthwhile, possible
