"""`syncscan mcp`: from a folder to a server that answers one program on standard input and output."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("mcp")
def command() -> None:
    """Answer a program, such as an assistant in an editor, over the Model Context Protocol.

    It speaks on standard input and output and has the tools analyze, explain, whatif, diff and prove. They read what
    lies below the folder that this was started in, and nothing else; prove runs programs that lie there.
    """
    from syncscan.integrations import mcp_server

    mcp_server.serve(Path.cwd())
