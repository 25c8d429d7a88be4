"""Find the blocks in the pages that users read: commands, code, and those marked as not run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
BUILT = ("generated", "_build")
"""Folders of docs that nobody wrote."""
PAGES = [ROOT / "README.md", *sorted(p for p in DOCS.rglob("*.md") if p.relative_to(DOCS).parts[0] not in BUILT)]

REASONS = {
    "gpu": "it measures on one, or takes minutes",
    "network": "it fetches what the tests do without",
    "installs": "it changes the environment",
    "serves": "it runs until it is stopped",
    "library": "it needs one that the tests do without",
    "notebook": "it is for IPython",
    "sketch": "its names are the reader's own",
}
"""Why a block isn't run by tests/test_docs.py; who runs it instead, where somebody does, stands behind it."""

_BLOCK = re.compile(r"(?:^<!-- ([^\n]*) -->\n)?^(`{3,})([^\n`]*)\n(.*?)^\2$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """A fenced block: its page, language and text, and the comment in the line above it."""

    page: Path
    line: int
    language: str
    text: str
    mark: str

    @property
    def name(self) -> str:
        """Where it stands."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def reason(self) -> str | None:
        """Why it isn't run, one of `REASONS`; None where it is."""
        return self.mark.removeprefix("not run: ").partition(":")[0] if self.mark.startswith("not run:") else None


def blocks() -> Iterator[Block]:
    """All blocks of all pages."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in _BLOCK.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield Block(page, line, match.group(3).strip(), match.group(4), match.group(1) or "")


def commands(block: Block) -> list[str]:
    """The commands of a block that shows a terminal."""
    return [line[2:] for line in block.text.splitlines() if line.startswith("$ ")]
