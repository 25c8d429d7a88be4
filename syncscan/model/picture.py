"""A picture of an analysis as notebooks show and store it: PNG bytes, and a sentence that describes it."""

from __future__ import annotations

from typing import Any

import msgspec


class Picture(msgspec.Struct, frozen=True):
    """A drawn picture; as the last line of a notebook's cell it is shown, and a saved notebook stores it.

    It is a PNG because code hosts that show notebooks leave out scripts and most of SVG.
    """

    png: bytes
    """Content of the file: `Path("step.png").write_bytes(picture.png)`."""
    alt: str
    """Text alternative."""
    svg: str = ""
    """An SVG file with the same content, of the picture of a `step`; else empty."""

    def __repr__(self) -> str:
        return f"Picture(alt={self.alt!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("alt", self.alt)]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Return what IPython shows, by MIME type."""
        import base64

        return {"image/png": base64.b64encode(self.png).decode("ascii"), "text/plain": self.alt}
