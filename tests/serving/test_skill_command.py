"""`syncscan skill` writes the instructions for coding agents, whose commands exist."""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

from syncscan import api
from syncscan.cli import all_commands, group


def test_it_is_printed_with_a_name_and_a_description() -> None:
    text = CliRunner().invoke(group, ["skill"]).stdout
    assert re.match(r"---\nname: syncscan\ndescription: .+\n---\n", text)


def test_its_commands_exist() -> None:
    text = CliRunner().invoke(group, ["skill"]).stdout
    assert set(re.findall(r"`syncscan (\w+)", text)) <= set(all_commands())


def test_its_commands_about_a_recording_run_as_written() -> None:
    """With a trace and the id of a finding in their places, and options that the commands have."""
    trace = str(Path(__file__).parents[2] / "sample_traces" / "logged.pt.trace.json.gz")
    id = next(finding.id for finding in api.analyze(trace).findings if finding.rule == "item")
    text = CliRunner().invoke(group, ["skill"]).stdout
    commands = re.findall(r"`syncscan ((?:analyze|explain|whatif) [^`]*TRACE[^`]*)`", text)
    assert {command.split()[0] for command in commands} == {"analyze", "explain", "whatif"}
    for command in commands:
        words = [word.replace("TRACE", trace).replace("ID", id) for word in command.split()]
        assert CliRunner().invoke(group, words).exit_code == 0, command
