"""A guarded sync has the line that waits, what that called, and its rule."""

from __future__ import annotations

import linecache
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from syncscan import api
from syncscan.guarding import guarded_sync as rules
from syncscan.guarding.guarded_sync import GuardedSync, called, frames_of, own_frame
from syncscan.testing import failure


def test_the_script_of_an_entry_point_is_no_line_of_the_program_s(tmp_path: Path) -> None:
    """Its package's line is, else every sync would stand at the same line."""
    script = tmp_path / "yolo"
    script.write_text("#!/env/bin/python\nimport sys\nfrom ultralytics.cfg import main\nsys.exit(main())\n")
    namespace: dict[str, object] = {"frame": sys._getframe}
    exec(compile("def main(): return frame(0)", "/src/ultralytics/cfg.py", "exec"), namespace)
    exec(compile("waiting = main()", str(script), "exec"), namespace)
    frame = namespace["waiting"]
    assert isinstance(frame, FrameType)
    inner = frames_of(frame)
    own = own_frame(inner)
    assert own is not None
    assert own.f_code.co_filename == "/src/ultralytics/cfg.py"
    assert str(script) not in {f.f_code.co_filename for f in inner}


class Reads:
    """Reports where it is used, as a tensor's read-back does."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def _read(self, result: Any, depth: int = 2) -> Any:
        frame = sys._getframe(depth)
        self.seen.append(called(frame.f_code, frame.f_lasti))
        return result

    item = nonzero = lambda self: self._read(self)
    __getitem__ = lambda self, index: self._read(self)  # noqa: E731
    __setitem__ = lambda self, index, value: self._read(None)  # noqa: E731
    __contains__ = lambda self, value: self._read(True)  # noqa: E731
    __bool__ = lambda self: self._read(True)  # noqa: E731
    __float__ = lambda self: self._read(1.0)  # noqa: E731
    __format__ = lambda self, spec: self._read("")  # noqa: E731


def many(t: Any) -> None:
    t.nonzero().item()
    float(t)
    t[0]
    t[1] = 2
    if t:
        pass
    2 in t  # noqa: B015
    f"{t}"
    max(
        0,
        float(t),
    )


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 keeps lines alone")
def test_each_instruction_has_its_name() -> None:
    """With several calls in a line, it names the one that waits."""
    reads = Reads()
    many(reads)
    assert reads.seen == ["nonzero", "item", "float", "[]", "[]=", "if", "in", "format", "float"]


def one(t: Any) -> Any:
    value = t.item()
    return value


def test_a_line_with_one_call_has_its_name_everywhere() -> None:
    """Python 3.10 too."""
    reads = Reads()
    one(reads)
    assert reads.seen == ["item"]


def test_generated_code_has_none() -> None:
    """Its source is nowhere to be read."""
    reads = Reads()
    exec("reads.item()", {"reads": reads})
    assert reads.seen == [""]


def test_every_word_leads_to_a_rule_that_exists() -> None:
    """With code that can be used instead."""
    assert {rule.id for rule in api.rules()} >= rules._TELLABLE
    assert [rule for rule in rules._TELLABLE if "Instead" not in failure.instead(rule)] == []


@pytest.mark.parametrize(
    ("kind", "called", "rule"),
    [
        ("stream", "item", "item"),
        ("stream", "masked_select", "masked-select"),
        ("stream", "float", "item"),
        ("copy", "copy_", "pageable-readback"),
        ("event", "synchronize", "explicit-sync"),
        ("call", "empty_cache", "empty-cache"),
        ("stream", "my_own", ""),
        ("stream", "", ""),
    ],
)
def test_a_rule_by_what_was_called(kind: str, called: str, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its own name, or by the table; none is guessed for others."""
    monkeypatch.setattr(GuardedSync, "called", called)
    assert rules.rule_of(sync(kind)) == rule


def sync(kind: str, file: str = "train.py") -> GuardedSync:
    return GuardedSync(kind, file, 1, "step", (), "MainThread", 0)


@pytest.mark.parametrize(
    ("kind", "called", "comment", "reason"),
    [
        ("stream", "item", "allow[item] logged", "logged"),
        ("stream", "item", "allow[nonzero, item]: logged", "logged"),
        ("stream", "item", "allow[*] logged", "logged"),
        ("stream", "item", "allow logged", "logged"),
        ("stream", "item", "allow[item]", ""),
        ("stream", "item", "allow[nonzero] the shape", ""),
        ("stream", "item", "allow[log-scalar] logged", "logged"),
        ("stream", "my_own", "allow[nonzero] the shape", "the shape"),
        ("stream", "to", "allow[cpu] read", "read"),
        ("copy", "to", "allow[to-device] sent", "sent"),
        ("copy", "to", "allow[item] sent", ""),
    ],
)
def test_a_comment_allows_what_it_may_be_of(
    kind: str, called: str, comment: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It refuses where the line certainly waits for another rule, and without a reason."""
    monkeypatch.setattr(GuardedSync, "called", called)
    file = f"<{kind} {called} {comment}>"
    text = f"x = y  # syncscan: {comment}\n"
    monkeypatch.setitem(linecache.cache, file, (len(text), None, [text], file))
    assert rules.written_reason(sync(kind, file)) == reason
