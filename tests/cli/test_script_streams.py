"""Sentences reach the user while a script runs, and the script's own streams come back after a report."""

from __future__ import annotations

import io
import sys

import click
import pytest

from syncscan.cli.script_streams import ScriptStreams


def test_a_sentence_goes_to_the_stream_that_was_there_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script that replaces sys.stderr doesn't get the command's sentences."""
    streams = ScriptStreams()
    replaced = io.StringIO()
    monkeypatch.setattr(sys, "stderr", replaced)
    streams.say("wrote a.json")
    assert (capsys.readouterr().err, replaced.getvalue(), streams.printed) == (
        "syncscan: wrote a.json\n",
        "",
        {"wrote a.json"},
    )


def test_a_report_goes_to_the_first_stream_and_the_script_s_comes_back(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within `restored`, echo writes to the command's output; afterwards to the script's own stream again."""
    streams = ScriptStreams()
    replaced = io.StringIO()
    monkeypatch.setattr(sys, "stdout", replaced)
    with streams.restored():
        click.echo("report")
    click.echo("script")
    assert (capsys.readouterr().out, replaced.getvalue()) == ("report\n", "script\n")
