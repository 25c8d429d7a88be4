r"""Restore the backslashes of Windows paths in the names of Python frames.

torch 1.8 to 2.0 write names without escaping backslashes (pytorch#60187, pytorch#92988, kineto#617). Escapes unknown to
JSON, such as the `\w` in `D:\work`, are repaired with the text (`salvage`). But the `\t` in `D:\train.py` is valid JSON
for a tab: the trace reads without an error, but its frames name no existing file.
"""

from __future__ import annotations

import re

_ESCAPED = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\b": "\\b", "\f": "\\f"}
"""Characters that a backslash and a letter may stand for in JSON (RFC 8259, 7), without quotes and slashes."""
_LOST = re.compile(f"[{''.join(_ESCAPED)}]")
_FRAME = re.compile(r"(.{1,4096})(\(\d{1,9}\): .*)", re.DOTALL)


def with_backslashes(frame: str) -> str:
    """Return the name of a Python frame with each such character in its file as a backslash and a letter.

    Args:
        frame: `file.py(LINE): function`; any other name is returned unchanged.
    """
    if not _LOST.search(frame) or (parts := _FRAME.fullmatch(frame)) is None:
        return frame
    return _LOST.sub(lambda lost: _ESCAPED[lost[0]], parts[1]) + parts[2]
