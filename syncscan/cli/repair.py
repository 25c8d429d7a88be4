"""`syncscan repair TRACE -o OUT`: from a broken trace to a valid one that any viewer reads."""

from __future__ import annotations

from pathlib import Path

import click

from syncscan.cli import memory
from syncscan.cli.output import refuse, say, warn


@click.command("repair")
@click.argument("trace")
@click.option("-o", "--output", required=True, metavar="OUT", help="File to write; packed if its name ends in .gz.")
@click.option("--force", is_flag=True, help="Replace OUT if it exists.")
@memory.option
def command(trace: str, output: str, force: bool, max_memory: int | None) -> None:
    """Write TRACE as valid JSON, as much of it as can be read, and say what was repaired and what is lost.

    What is valid stays as it was written. TRACE may be packed, or - for standard input.
    """
    from syncscan import files, load
    from syncscan.load.valid_json import ValidText

    out = Path(output)
    refuse(output, force, trace)
    with load.open_events(trace) as source:
        text = ValidText(source, trace, lost=lambda: source.lost)
        files.write(out, text.document(), force)
        said = [s for s in (source.lost, *text.damage.sentences()) if s]
    another = load.written_by_another(trace)
    warn([*said, str(another)] if another else said)
    say(f"Wrote {output}: {'repaired' if said else 'nothing was broken'}.")
