"""A picture of an analysis as notebooks show and store it: an SVG document, and a sentence that describes it."""

from __future__ import annotations

from typing import Any

import msgspec


class Picture(msgspec.Struct, frozen=True):
    """A drawn picture; as the last line of a notebook's cell it is shown, and a saved notebook stores it."""

    svg: str
    """Content of the file: `Path("step.svg").write_text(picture.svg)`."""
    alt: str
    """Text alternative."""

    def __repr__(self) -> str:
        return f"Picture(alt={self.alt!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("alt", self.alt)]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Return what IPython shows, by MIME type."""
        return {"image/svg+xml": self.svg, "text/plain": self.alt}
