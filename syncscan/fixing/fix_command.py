"""`syncscan fix SCRIPT [ARGS]`: patch a program so that it waits less, and verify the patch without a GPU."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from syncscan import files, scratch
from syncscan.cli import running_options
from syncscan.cli.output import deliver, drawn, explain, refuse, say, warn, width
from syncscan.cli.result_options import result_options
from syncscan.cli.running_options import note_misplaced
from syncscan.errors import ProgramFailed, UsageError

if TYPE_CHECKING:
    from syncscan.model.fix import Fixed
    from syncscan.proof.outcome import Proof

FORMATS = ("text", "json", "markdown", "sarif", "pr")
_WITH_PROOF = ("text", "markdown", "pr")
"""Formats that have a proof in them; with the others it goes to stderr."""
PROVED_S = 180
"""Seconds that `--prove` takes at most."""
FIXABLE, NOT_JUDGED = 1, 2
"""Exit codes of --check."""


@click.command(
    "fix",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Rewrite code that waits for the GPU, and verify the patch without a GPU.",
)
@running_options.module
@click.option("--write", is_flag=True, help="Apply the patch to the files.")
@click.option("--check", is_flag=True, help="Exit 1 if anything can be fixed, 2 if that is unknown.")
@click.option("--select", multiple=True, metavar="RULE", help="Fix only these rules: ids or globs, comma-separated.")
@click.option("--ignore", multiple=True, metavar="RULE", help="Skip these rules: ids or globs, comma-separated.")
@click.option(
    "--unsafe", is_flag=True, help="Also apply fixes that change memory use, laziness or the moment of an exception."
)
@click.option("--unverified", is_flag=True, help="Also apply fixes whose new lines didn't run.")
@click.option("--trace", metavar="TRACE", help="Show projected gains from this recording; skip fixes without a gain.")
@running_options.steps(None, "End the program's loops after this many steps.  [default: run to its end]")
@running_options.limit("120s", "each run")
@click.option("--prove", is_flag=True, help="Measure the patch on this machine's GPU, and write it only if it gains.")
@result_options(
    FORMATS,
    form="Report format; pr is the title and body of a pull request.",
    force="Overwrite files with uncommitted changes; replace FILE if it exists.",
)
@click.argument("script")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def command(
    module: bool,
    write: bool,
    check: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    unsafe: bool,
    unverified: bool,
    trace: str | None,
    steps: int | None,
    limit: float,
    prove: bool,
    form: str,
    output: str | None,
    force: bool,
    script: str,
    args: tuple[str, ...],
) -> None:
    """Find where SCRIPT would wait for a GPU, rewrite those places, and print the patch with a table of its changes.

    SCRIPT runs with ARGS several times on the CPU with a simulated GPU: unchanged, and with the changes, always with
    the same seed. A change is applied only if it removes its wait, adds no new wait, and leaves the program's
    output and results the same. FILE.py:FUNCTION calls a function instead. No file is changed without --write: what
    SCRIPT writes goes to scratch copies that are gone afterwards, and its standard input is empty. Options come
    before SCRIPT.

    Fixes are safe (only the wait changes), unsafe (also memory use, laziness or the moment of an exception), or manual
    (left to you, with the reason). The exit code is 0; with --check it is 1 if anything can be fixed, and 2 if it is
    unknown: the program fails, or nothing could be verified.
    """
    from syncscan.cli.analysis_options import globs, refuse_unknown
    from syncscan.fixing import fix
    from syncscan.model.view import View

    refuse(output, force and not write, *([trace] if trace else []))
    view = View(select=globs(select), ignore=globs(ignore))
    refuse_unknown(view)
    note_misplaced(script, args)
    say(scratch.sentence())
    with _not_judged_if_it_fails(check):
        fixed = fix(
            script,
            args,
            module=module,
            select=view.select,
            ignore=view.ignore,
            unsafe=unsafe,
            unverified=unverified,
            trace=trace,
            steps=steps or 0,
            limit_s=limit,
            progress=say if sys.stderr.isatty() else None,
        )
    proof = _proof(fixed, module, trace) if prove and fixed.files else None
    chosen = bool(select or ignore or unsafe or unverified)  # `fix --prove` alone measures another patch
    unprovable = module or prove or (chosen and not write)
    next_command = () if unprovable else _next((script, *args), write)
    deliver(_result(fixed, form, output, proof, next_command), output, force)
    if proof is not None and form not in _WITH_PROOF:
        from syncscan.proof import report as proof_report
        from syncscan.report import terminal

        click.echo(terminal.drawn(proof_report.blocks(proof), width()), err=True)
    if write:
        _write(fixed, proof, force)
    click.get_current_context().exit(_exit_code(fixed) if check else 0)


def _exit_code(fixed: Fixed) -> int:
    """Return the exit code of --check."""
    if fixed.files:
        return FIXABLE
    return NOT_JUDGED if fixed.unjudged else 0


@contextlib.contextmanager
def _not_judged_if_it_fails(check: bool) -> Iterator[None]:
    """Have --check end with the exit code of what couldn't be judged where the program fails."""
    try:
        yield
    except ProgramFailed as failed:
        if not check:
            raise
        explain(failed)
        click.get_current_context().exit(NOT_JUDGED)


def _write(fixed: Fixed, proof: Proof | None, force: bool) -> None:
    if proof is not None and not proof.proven:
        warn([f"The gain isn't proven ({proof.verdict.value}), so no file was written."])
        return
    for path in write_files(fixed, force):
        say(f"Wrote {path}.")


def write_files(fixed: Fixed, force: bool) -> list[str]:
    """Write the files of a patch, and return their names; with `force` also where git knows of uncommitted changes."""
    for file in fixed.files:
        path = Path(file.path)
        if path.read_bytes() != file.before.encode(file.encoding):
            raise UsageError(f"{file.file} was changed while its fixes were verified.", "Run syncscan fix again.")
        if not force and _is_dirty(path):
            raise UsageError(f"{file.file} has uncommitted changes.", "Commit them, or add --force.")
    for file in fixed.files:
        files.write(Path(file.path), [file.after.encode(file.encoding)], force=True)
    return [file.file for file in fixed.files]


def _is_dirty(path: Path) -> bool:
    """Return whether git tracks a file and it isn't as it was committed."""
    git = shutil.which("git")
    if git is None:
        return False
    command = [git, "-C", str(path.parent), "status", "--porcelain", "--untracked-files=no", "--", path.name]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    return answer.returncode == 0 and bool(answer.stdout.strip())


def _next(program: tuple[str, ...], write: bool) -> tuple[str, ...]:
    """Return the command that measures a patch: one that isn't applied, or one that changes the working tree."""
    return ("syncscan", "prove", "--rev", "HEAD", *program) if write else ("syncscan", "fix", "--prove", *program)


def _result(
    fixed: Fixed, form: str, output: str | None, proof: Proof | None, next_command: tuple[str, ...]
) -> str | bytes:
    """Return the report; for a file or a pipe, `git apply` takes the patch in it, which has the files' encodings."""
    from syncscan.fixing import document
    from syncscan.fixing import report as fix_report
    from syncscan.proof import report as proof_report
    from syncscan.report import sarif

    if form == "pr":
        return fix_report.pull_request(fixed, proof)
    if form in ("text", "markdown"):
        report = (*fix_report.blocks(fixed, next_command), *(proof_report.blocks(proof) if proof else ()))
        if form == "markdown":
            return drawn((*report, *fix_report.patch(fixed)), form)
        if output is None and sys.stdout.isatty():
            return drawn((*fix_report.patch(fixed), *report), form)
        return fixed.patch + drawn(report, form, output).encode("utf-8", "replace")
    if form == "sarif":
        return sarif.drawn([fix_report.flagged_fixes(fixed)])
    return document.render(fixed)


def _proof(fixed: Fixed, module: bool, trace: str | None) -> Proof:
    from syncscan.fixing.fix_gains import prove_patch

    if module:
        raise UsageError(
            "--prove doesn't support modules.", "Give its script, or compare revisions: syncscan prove --rev."
        )
    say(f"Measuring the patch, for {PROVED_S} s at most.")
    return prove_patch(fixed, float(PROVED_S), say, trace)
