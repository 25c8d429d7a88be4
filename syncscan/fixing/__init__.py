"""Patches for programs that wait for their GPU: each change is written, run dry and compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from syncscan.model.fix import Fixed


def fix(
    program: str,
    arguments: Sequence[str] = (),
    *,
    module: bool = False,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    unsafe: bool = False,
    unverified: bool = False,
    trace: str | None = None,
    steps: int = 0,
    limit_s: float = 120.0,
    progress: Callable[[str], None] | None = None,
) -> Fixed:
    """Find where a program would wait for a GPU, rewrite those places, and verify each change by running both dry.

    Args:
        program: a script, or a function of one: `FILE.py:FUNCTION`.
        arguments: what a script finds in `sys.argv[1:]`.
        module: `program` is a module's name, to be run as by `python -m`.
        select: globs of rule ids to fix; all rules if empty.
        ignore: globs of rule ids to leave.
        unsafe: also propose fixes that change memory use, laziness or the moment of an exception.
        unverified: also apply fixes whose new lines didn't run.
        trace: a recording of the same code, or a saved analysis, from which the gain of each fix is projected.
        steps: end the loops of the program after this many steps; 0 runs it to its end.
        limit_s: time limit of one run, in seconds.
        progress: called with a few words about each stage.

    Returns:
        The patch, each fix in it, and each wait that is left, with the reason. No file is written.

    Raises:
        ProgramFailed: the unchanged program fails.
        UsageError: the program doesn't exist, or is a notebook.
        MissingExtra: torch isn't installed.
    """
    from pathlib import Path

    from syncscan.capture.commands import refuse_notebook
    from syncscan.errors import UsageError
    from syncscan.fixing.fix_gains import gains_of, with_note
    from syncscan.fixing.patch_builder import Options, PatchBuilder

    file, colon, function = program.rpartition(":")
    if not (colon and function.isidentifier() and not Path(program).exists()):
        file, function = program, ""
    refuse_notebook(file)
    if not module and not Path(file).is_file():
        raise UsageError(f"{file} doesn't exist.", "Give a script, or FILE.py:FUNCTION.")
    options = Options(
        select=tuple(select),
        ignore=tuple(ignore),
        unsafe=unsafe,
        unverified=unverified,
        gains=gains_of(trace) if trace else {},
        steps=steps,
        limit_s=limit_s,
        progress=progress or (lambda sentence: None),
    )
    fixed = PatchBuilder(file, arguments, options, function=function, module=module).run()
    return with_note(fixed, trace) if trace else fixed


__all__ = ["fix"]
