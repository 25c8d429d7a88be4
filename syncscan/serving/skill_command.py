"""`syncscan skill`: print the instructions for coding agents."""

from __future__ import annotations

import click


@click.command("skill")
def command() -> None:
    """Print a SKILL.md for coding agents: how to analyze, fix, prove and gate, and when to stop."""
    from importlib.resources import files

    click.echo(files("syncscan.serving").joinpath("SKILL.md").read_text("utf-8"), nl=False)
