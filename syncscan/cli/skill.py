"""`syncscan skill`: print the instructions for coding agents, or write them where an agent looks for them."""

from __future__ import annotations

import click

from syncscan.cli.output import deliver, refuse


@click.command("skill")
@click.option(
    "-o", "--output", metavar="FILE", help="Write to FILE instead of stdout, such as .claude/skills/syncscan/SKILL.md."
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def command(output: str | None, force: bool) -> None:
    """Print a SKILL.md for coding agents: how to analyze, fix, prove and gate, and when to stop."""
    from importlib.resources import files
    from pathlib import Path

    if output:
        Path(output).parent.mkdir(parents=True, exist_ok=True)
    refuse(output, force)
    deliver(files("syncscan.integrations").joinpath("pages", "SKILL.md").read_text("utf-8"), output, force)
