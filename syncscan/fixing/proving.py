"""Measures the gain of a patch: the original and the patched program take turns on this machine."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from syncscan import api
from syncscan.errors import UsageError
from syncscan.fixing.recorded_gains import projected
from syncscan.model.fix import Fixed
from syncscan.model.proof import Proof
from syncscan.proof.prove import prove


def prove_patch(
    fixed: Fixed,
    limit_s: float,
    progress: Callable[[str], None] | None = None,
    trace: str | None = None,
    in_place: bool = False,
) -> Proof:
    """Run the program as it is and with its patch in turn, as `syncscan prove` does.

    Args:
        fixed: a patch of one file, which is the program's own.
        limit_s: how long all runs together may take, in seconds.
        progress: called with a sentence after each pair of runs.
        trace: a recording of the unchanged program; the gain that it projects for the whole patch is shown beside the
            measured one.
        in_place: let both write into the user's files, not into scratch copies.

    Raises:
        UsageError: the patch changes other files.
        ProgramFailed: a program fails, or makes no steps.
    """
    target, *arguments = shlex.split(fixed.program)
    script = Path(target.rpartition(":")[0] or target)
    if len(fixed.files) != 1 or Path(fixed.files[0].path) != script.absolute():
        raise UsageError(
            "--prove only takes a patch of the program's own file.", "Commit the patch, then run syncscan prove --rev."
        )
    projection = projected(api.analyze(trace), fixed.applied) if trace else None
    with _beside(fixed) as patched:
        after = target.replace(str(script), str(patched), 1)
        return prove(
            target,
            after,
            arguments=arguments,
            limit_s=limit_s,
            in_place=in_place,
            projected=projection,
            progress=progress,
        )


@contextmanager
def _beside(fixed: Fixed) -> Iterator[Path]:
    """Write the patched program beside the original, and delete it afterwards."""
    file = fixed.files[0]
    path = Path(file.path)
    with tempfile.TemporaryDirectory(prefix="syncscan-fix-") as folder:
        copy = Path(folder, path.name)
        copy.write_bytes(file.after.encode(file.encoding))
        beside = path.with_name(f"{path.stem}_fixed_{Path(folder).name.rpartition('-')[2]}.py")
        shutil.copy(copy, beside)
        try:
            yield beside
        finally:
            beside.unlink(missing_ok=True)


__all__ = ["prove_patch"]
