"""Define the command line: each command is a module that calls the api and a renderer, imported on first use.

Those of the core are in this folder, the others in their rooms.
"""

from __future__ import annotations

import importlib
import sys
import threading

import click

from syncscan import features
from syncscan.cli import door, lean, memory_limit, output, streams
from syncscan.errors import SyncscanError, TraceTooLarge
from syncscan.version import __version__

FIRST = {
    "profile": "Run an unchanged training script under the profiler and report its syncs.",
    "analyze": "Find the host-device syncs in a trace, with their causes and costs.",
    "report": "Write one self-contained HTML file: timeline, findings, projections.",
    "explain": "Explain a rule, habit or finding: why it costs time, what to use instead; or list them.",
}
"""Command → its line in `--help`; here, so that help imports no command."""
MORE = {
    "whatif": "Project the step without chosen syncs: what removing them would really gain.",
    "repair": "Write a valid trace from a broken one.",
    "demo": "See syncscan at work on two recorded steps.",
}
"""Commands that `--help` lists below those."""


def all_commands() -> dict[str, str]:
    """Return all commands, the core's and those of the rooms that are there, with their lines in `--help`."""
    return {name: line for part in _parts().values() for name, line in part.items()}


def _parts() -> dict[str, dict[str, str]]:
    first, more = dict(FIRST), dict(MORE)
    for room in features.rooms().values():
        first |= room.commands
        more |= room.more
    return {"Commands": first, "More": more}


def module_of(name: str) -> str:
    """Return the module of a command; empty if there is none of that name. Rooms are asked only for what isn't here."""
    return f"syncscan.cli.{name}" if name in FIRST or name in MORE else features.command_modules().get(name, "")


class _Lazy(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(all_commands())

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        module = module_of(name)
        if not module:
            return None
        command: click.Command = importlib.import_module(module).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, part in _parts().items():
            with formatter.section(title):
                formatter.write_dl(list(part.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and not module_of(name):
            args = [*door.meant(name, all_commands()), *args]
            name = args[0]
        if name and not module_of(name):
            close = door.nearest(name, all_commands())
            hint = f" Did you mean '{close[0]}'?" if close else ""
            raise click.UsageError(f"No such command '{name}'.{hint}", ctx)
        resolved = super().resolve_command(ctx, args)
        takes_program = resolved[1] is not None and resolved[1].context_settings.get("ignore_unknown_options")
        if not takes_program and any(_is_empty(word) for word in args[1:]):
            raise click.UsageError(f"An argument of '{name}' is empty; is a shell variable unset?", ctx)
        return resolved


def _is_empty(word: str) -> bool:
    return not word or (word.startswith("--") and word.endswith("="))


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@memory_limit.option
@click.version_option(__version__, "-V", "--version", prog_name="syncscan")
@click.pass_context
def group(ctx: click.Context, max_memory: int | None) -> None:
    """Find where a PyTorch program makes its host wait for its device, and what removing a wait would really gain.

    Without a command, a script or command is profiled, a trace analyzed, a folder of ranks joined, and a process, by
    its id, or a watch's file watched.
    """
    if not _runs_in_process(ctx.invoked_subcommand) and threading.current_thread() is threading.main_thread():
        ctx.with_resource(streams.ended_by_signals())


def _runs_in_process(command: str | None) -> bool:
    """Return whether a command runs a program in its own process, whose handlers of signals are its own."""
    if command in FIRST or command in MORE:
        return command == "profile"
    return any(command in room.in_process for room in features.rooms().values())


def main() -> None:
    """Run the command line: a SyncscanError becomes one sentence on stderr and its exit code."""
    streams.open_closed()
    if sys.argv[1:2] and (lean.only_reads(sys.argv[1]) or door.names_recording(sys.argv[1])):
        lean.begin()
    try:
        group(prog_name="syncscan")
    except streams.Ended as e:
        click.echo(f"syncscan: {e.sentence}", err=True)
        raise
    except SyncscanError as e:
        output.explain(e)
        sys.exit(e.exit_code)
    except MemoryError:
        why = "This needs more memory than is available or allowed."
        output.explain(TraceTooLarge(why, "Record fewer steps, or allow more with --max-memory."))
        sys.exit(TraceTooLarge.exit_code)
    except OSError as e:
        sys.exit(streams.not_written(e))
