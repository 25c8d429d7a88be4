"""`syncscan open DIR`: serve a page that lists a folder's recordings, with a trend and a report of each."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from syncscan.cli.analysis_options import AnalysisOptions
from syncscan.cli.output import explain
from syncscan.cli.view import viewed
from syncscan.errors import TraceError

if TYPE_CHECKING:
    from syncscan.model.view import View

MOST = 100
"""Most recordings that the page lists, newest first: each is analyzed before it is shown."""


class Recordings:
    """A folder's recordings, analyzed as the page that lists them is made, and again when a report is asked for.

    Args:
        folder: the folder; its subfolders count if it has no recording itself.
        options: how to analyze.
        view: what reports list.
    """

    def __init__(self, folder: str, options: AnalysisOptions, view: View) -> None:
        from syncscan import api

        self._folder, self._options, self._view = folder, options, view
        paths = sorted(map(Path, api.find([folder])), key=lambda path: path.stat().st_mtime)
        self._paths, self._left_out = paths[-MOST:], len(paths[:-MOST])
        self._one_at_a_time = threading.Lock()

    def page(self) -> str:
        """Return the page that lists them; files that can't be analyzed are named with the reason.

        Raises:
            TraceError: none can be analyzed.
        """
        from syncscan.report import runs_html

        lines, unread = [], []
        for number, path in enumerate(self._paths):
            try:
                analysis = viewed(self._options.analysis_of(str(path)), self._view)
            except TraceError as error:
                explain(error)
                unread.append((path.name, error.message))
                failure = error
                continue
            written = datetime.fromtimestamp(path.stat().st_mtime).astimezone()
            lines.append(runs_html.run_line(analysis, path.name, written, str(number)))
        if not lines:
            raise failure
        return runs_html.render(Path(self._folder).resolve().name, lines, unread, self._left_out)

    def report(self, link: str) -> str:
        """Return the report that a link of the page names.

        Raises:
            FileNotFoundError: there is none, or its recording can't be analyzed any more.
        """
        from syncscan.report import html

        if not (link.isascii() and link.isdigit() and int(link) < len(self._paths)):
            raise FileNotFoundError(link)
        with self._one_at_a_time:
            try:
                return html.render(viewed(self._options.analysis_of(str(self._paths[int(link)])), self._view))
            except TraceError as error:
                raise FileNotFoundError(error.message) from None


@contextmanager
def served(recordings: Recordings, host: str, port: int | None) -> Iterator[str]:
    """Serve the page and the reports that it links, and give its address."""
    from syncscan.integrations.browser import Page

    page = Page(recordings.page(), host, port or 0, recordings.report)
    try:
        yield page.url
    finally:
        page.close()


__all__ = ["Recordings", "served"]
