"""Where hyperlinks are written: on a terminal that is known to show them, and nowhere else."""

from __future__ import annotations

import sys

import pytest

from syncscan.cli import output as stdout

NAMES = ("TERM_PROGRAM", "TERM", "VTE_VERSION", "KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "NO_COLOR")


def links(monkeypatch: pytest.MonkeyPatch, tty: bool = True, **env: str) -> bool:
    for name in (*NAMES, "FORCE_HYPERLINK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: tty, raising=False)
    return stdout.links()


@pytest.mark.parametrize(
    "env",
    [
        {"TERM_PROGRAM": "WezTerm"},
        {"TERM": "xterm-kitty"},
        {"VTE_VERSION": "6800"},
        {"WT_SESSION": "a"},
        {"FORCE_HYPERLINK": "1"},
    ],
)
def test_a_terminal_that_is_known_gets_them(monkeypatch: pytest.MonkeyPatch, env: dict[str, str]) -> None:
    """By what it says of itself; never in a pipe, with NO_COLOR or a dumb terminal."""
    assert links(monkeypatch, **env)
    assert not links(monkeypatch, tty=False, **env)
    assert not links(monkeypatch, NO_COLOR="1", **env)
    assert not links(monkeypatch, **{**env, "TERM": "dumb"})


@pytest.mark.parametrize(
    "env", [{}, {"TERM": "xterm"}, {"VTE_VERSION": "4600"}, {"FORCE_HYPERLINK": "0", "WT_SESSION": "a"}]
)
def test_any_other_gets_none(monkeypatch: pytest.MonkeyPatch, env: dict[str, str]) -> None:
    """Nor one whose user said no."""
    assert not links(monkeypatch, **env)
