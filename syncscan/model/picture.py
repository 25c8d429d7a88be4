"""A picture of an analysis as a notebook shows and stores it: PNG bytes, and a sentence that says the same in words."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Picture:
    """A drawn picture; as the last line of a notebook's cell it is shown, and a saved notebook keeps it.

    It is a PNG because code hosts that show notebooks leave out scripts and most of SVG.
    """

    png: bytes = field(repr=False)
    """The file's content: `Path("step.png").write_bytes(picture.png)`."""
    alt: str
    """What there is to see, for who can't."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """What IPython shows: MIME type → text."""
        return {"image/png": base64.b64encode(self.png).decode("ascii"), "text/plain": self.alt}
