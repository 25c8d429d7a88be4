"""Note options of a command that were given after its script, and so are arguments of the script."""

from __future__ import annotations

import click

from syncscan.cli.output import say


def note_misplaced(script: str, args: tuple[str, ...]) -> None:
    """Say which arguments of the script are named as options of the running command, in case they are meant for it.

    Args:
        script: the script, as typed.
        args: its arguments; those after `--` are surely the script's.
    """
    command = click.get_current_context().command
    own = {name for option in command.params if isinstance(option, click.Option) for name in option.opts}
    before = args[: args.index("--")] if "--" in args else args
    meant = [name for arg in before if (name := arg.partition("=")[0]) in own]
    if meant:
        say(
            f"note: {', '.join(dict.fromkeys(meant))} went to {script}, like everything after it. "
            f"Options of syncscan must come before it: syncscan {command.name} {meant[0]} … {script}"
        )
