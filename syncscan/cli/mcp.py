"""`syncscan mcp`: serve the traces of a folder to one program, over standard input and output."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("mcp")
def command() -> None:
    """Serve programs, such as an assistant in an editor, over the Model Context Protocol.

    The server uses standard input and output and offers the tools analyze, explain, whatif, diff, fix and prove. They
    read only files under the folder that it was started in; fix and prove run programs from there.
    """
    from syncscan.integrations import mcp_server

    mcp_server.serve(Path.cwd())
