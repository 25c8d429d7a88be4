"""`--reports`: write the report of each trace beside a page, which links them; each links back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from syncscan.cli.output import say

if TYPE_CHECKING:
    from syncscan.model.analysis import Analysis
    from syncscan.report.linked import LinkedReport

option = click.option("--reports", is_flag=True, help="Also write each trace's report beside the page, and link it.")


class Reports:
    """Reports beside a page, in a folder that is named after it.

    Args:
        page: the page's file.
        force: replace reports that are there.
    """

    def __init__(self, page: str, force: bool) -> None:
        self._page, self._force = Path(page), force
        self._folder = self._page.with_name(f"{self._page.stem}-reports")

    def write(self, analysis: Analysis, name: str) -> LinkedReport:
        """Write the report of an analysis as NAME.html, and return the link to it.

        Raises:
            UsageError: the file exists, or can't be written.
        """
        from urllib.parse import quote

        from syncscan import files
        from syncscan.report import html, linked

        self._folder.mkdir(exist_ok=True)
        target = self._folder / f"{name}.html"
        text = html.render(analysis, above=f"../{quote(self._page.name)}")
        files.write(target, [text.encode("utf-8", "surrogatepass")], self._force)
        say(f"Wrote {target}.")
        return linked.linked(analysis, f"{quote(self._folder.name)}/{quote(target.name)}")
