"""Measures the gain of a patch: the original and the patched program take turns on this machine."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from syncscan import api
from syncscan.errors import UsageError
from syncscan.fixing.recorded_gains import projected
from syncscan.model.fix import Fixed
from syncscan.proof.outcome import Proof
from syncscan.proof.prove import prove


def prove_patch(
    fixed: Fixed,
    limit_s: float,
    progress: Callable[[str], None] | None = None,
    trace: str | None = None,
    in_place: bool = False,
) -> Proof:
    """Run the program as it is and with its patch in turn, as `syncscan prove` does.

    All runs together take `limit_s` seconds at most; `progress` is called with a sentence after each pair. The gain
    that `trace`, a recording of the unchanged program, projects for the whole patch is shown beside the measured one.
    With `in_place`, both write into the user's files, not into scratch copies: the patched program lies beside the
    original then, as long as it takes; otherwise its text only takes the original's place in the copy. In place, only a
    patch of the program's own file can be measured.
    """
    target, *arguments = shlex.split(fixed.program)
    projection = projected(api.analyze(trace), fixed.applied) if trace else None
    options: dict[str, Any] = {
        "arguments": arguments,
        "limit_s": limit_s,
        "projected": projection,
        "progress": progress,
    }
    if in_place:
        with _beside(fixed, target) as beside:
            return prove(target, beside, in_place=True, **options)
    with _texts(fixed) as patched:
        return prove(target, target, patched=patched, **options)


@contextmanager
def _texts(fixed: Fixed) -> Iterator[list[tuple[Path, Path]]]:
    """Write the patched files into a temporary folder; yield each original with its patched one."""
    with tempfile.TemporaryDirectory(prefix="syncscan-fix-") as folder:
        pairs = [(Path(file.path), Path(folder, str(number))) for number, file in enumerate(fixed.files)]
        for file, (_, text) in zip(fixed.files, pairs, strict=True):
            text.write_bytes(file.after.encode(file.encoding))
        yield pairs


@contextmanager
def _beside(fixed: Fixed, target: str) -> Iterator[str]:
    """Write the patched program beside the original, and delete it afterwards; yield its target."""
    script = Path(target.rpartition(":")[0] or target)
    if [Path(file.path) for file in fixed.files] != [script.absolute()]:
        raise UsageError(
            "--in-place only takes a patch of the program's own file.",
            "Leave --in-place out, or use syncscan prove --rev.",
        )
    file = fixed.files[0]
    with tempfile.NamedTemporaryFile(prefix=f"{script.stem}_fixed_", suffix=".py", dir=script.parent) as beside:
        beside.write(file.after.encode(file.encoding))
        beside.flush()
        yield target.replace(str(script), str(script.with_name(Path(beside.name).name)), 1)
