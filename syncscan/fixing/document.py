"""A patch as the JSON that other programs rely on (schema `syncscan.fix/1`)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Struct

from syncscan.errors import UsageError
from syncscan.model.fix import Fix, Fixed, FixGain, Safety, SourceEdit
from syncscan.model.json_text import Document, Range, about, indented, written
from syncscan.version import __version__

SCHEMA = "syncscan.fix/1"


class FixDocument(Struct, frozen=True):
    """One place where the host waits, fixed or left."""

    file: str
    line: Annotated[int, about("first line of the statement, in the unpatched file")]
    end_line: int
    rule: str
    rewrite: Annotated[str | None, about("name of the rewrite; null if the place is left to the author")]
    title: str
    change: Annotated[str, about("what the fix does, or the rule's advice")]
    safety: Safety
    why: Annotated[str, about("what else an unsafe fix changes, or why the author has to decide")]
    verified: bool
    how: Annotated[str, about("how the fix was verified, or why it wasn't")]
    applied: Annotated[bool, about("whether the fix is part of the patch")]
    waits: Annotated[int, about("number of waits here in the dry run")]
    gain_us: Annotated[float | None, about("projected gain per step; null without a recording")]
    gain_range_us: Range | None
    changes: Annotated[tuple[SourceEdit, ...], about("edits to the unpatched file")]


class PatchedFile(Struct, frozen=True):
    """A file that the patch changes."""

    file: str
    diff: Annotated[str, about("unified diff, as git apply takes it")]


class PatchDocument(Document, frozen=True):
    """A patch that removes waits from a program."""

    program: str
    waits_before: Annotated[int, about("waits in the whole dry run without the patch")]
    waits_after: Annotated[int, about("waits in the whole dry run with the patch")]
    waits_apart: Annotated[int, about("those of waits_before in set-up and checkpoints")]
    tolerance: Annotated[float, about("allowed relative difference of printed and computed numbers")]
    seconds: float
    fixes: tuple[FixDocument, ...]
    files: tuple[PatchedFile, ...]
    notes: tuple[str, ...]
    not_compared: Annotated[tuple[str, ...], about("output that differs between two unchanged runs")]
    unjudged: Annotated[str | None, about("why it is unknown whether there is anything to fix; null where it is known")]


def render(fixed: Fixed) -> str:
    return indented(document(fixed)) + "\n"


def document(fixed: Fixed) -> PatchDocument:
    return written(
        PatchDocument,
        fixed,
        schema=SCHEMA,
        syncscan=__version__,
        fixes=tuple(fix_document(fix) for fix in fixed.fixes),
        files=tuple(written(PatchedFile, file) for file in fixed.files),
        unjudged=fixed.unjudged or None,
    )


def fix_document(fix: Fix) -> FixDocument:
    gain = fix.gain
    return written(
        FixDocument,
        fix,
        rewrite=fix.rewrite or None,
        gain_us=gain.us if gain else None,
        gain_range_us=(gain.low_us, gain.high_us) if gain else None,
    )


def read(path: str) -> tuple[Fix, ...]:
    """Return the fixes of a file that `syncscan fix --format json` wrote."""
    try:
        saved = msgspec.json.decode(Path(path).read_bytes(), type=_Saved)
    except (OSError, msgspec.DecodeError):
        raise UsageError(
            f"{path} holds no patch.", "Write one: syncscan fix --format json -o fix.json train.py"
        ) from None
    if saved.schema.partition("/")[0] != SCHEMA.partition("/")[0]:
        raise UsageError(f"{path} holds {saved.schema}, no patch.", "Write one with syncscan fix --format json.")
    return tuple(_fix(one) for one in saved.fixes)


class _Saved(Struct, frozen=True):
    """The parts of a patch document that are read back."""

    schema: str
    fixes: tuple[FixDocument, ...]


def _fix(saved: FixDocument) -> Fix:
    low, high = saved.gain_range_us or (0.0, 0.0)
    gain = None if saved.gain_us is None else FixGain(saved.gain_us, low, high, None)
    return written(Fix, saved, rewrite=saved.rewrite or "", gain=gain, shared=False)
