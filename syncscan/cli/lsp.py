"""`syncscan lsp`: a language server on standard input and output."""

from __future__ import annotations

import click


@click.command("lsp")
def command() -> None:
    """Serve an editor over the Language Server Protocol, on standard input and output.

    An open Python file shows lint warnings, and findings of the newest recording in the workspace folder with their
    savings. Hovering over one explains why it waits; its quick fix runs the file on a simulated GPU and applies the
    changes that are verified there.
    """
    from syncscan.integrations import language_server

    language_server.serve()
