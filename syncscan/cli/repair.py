"""`syncscan repair TRACE -o OUT`: write a valid copy of a broken trace that any viewer reads."""

from __future__ import annotations

from pathlib import Path

import click

from syncscan.cli import memory_limit
from syncscan.cli.output import refuse, say, warn


@click.command("repair")
@click.argument("trace")
@click.option("-o", "--output", required=True, metavar="OUT", help="Output file; compressed if its name ends in .gz.")
@click.option("--force", is_flag=True, help="Replace OUT if it exists.")
@memory_limit.held
def command(trace: str, output: str, force: bool) -> None:
    """Write the readable part of TRACE as valid JSON, and report what was repaired and what is lost.

    Valid parts stay unchanged. TRACE may be compressed, or - for standard input.
    """
    from syncscan import files, load
    from syncscan.load.valid_json import ValidText

    out = Path(output)
    refuse(output, force, trace)
    with load.open_events(trace) as source:
        text = ValidText(source, trace, lost=lambda: source.lost)
        files.write(out, text.document(), force)
        sentences = [s for s in (source.lost, *text.damage.sentences()) if s]
    another = load.written_by_another(trace)
    warn([*sentences, str(another)] if another else sentences)
    say(f"Wrote {output}: {'repaired' if sentences else 'nothing was broken'}.")
