"""`syncscan fix SCRIPT [ARGS]`: patch a program so that it waits less, and verify the patch without a GPU."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from syncscan.cli.needs import Need, needs
from syncscan.cli.output import deliver, refuse, say, warn
from syncscan.cli.terminal import colors, width

if TYPE_CHECKING:
    from syncscan.model.fix import Fixed

FORMATS = ("text", "json", "markdown", "github")
FIXABLE = 1


@click.command(
    "fix",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Rewrite what makes a program wait, and verify the patch without a GPU.",
)
@click.option("-m", "module", is_flag=True, help="SCRIPT is a module, to be run as by `python -m`.")
@click.option("--write", is_flag=True, help="Apply the patch to the files.")
@click.option("--check", is_flag=True, help="Exit 1 where something can be fixed.")
@click.option("--select", multiple=True, metavar="RULE", help="Fix these only: ids or globs, with commas.")
@click.option("--ignore", multiple=True, metavar="RULE", help="Leave these: ids or globs, with commas.")
@click.option("--unsafe", is_flag=True, help="Also fixes that change memory, laziness or the moment of an exception.")
@click.option("--unverified", is_flag=True, help="Also fixes whose new lines the program didn't run.")
@click.option("--trace", metavar="TRACE", help="Show what each gains in this recording, and leave what gains nothing.")
@click.option("--all", "everything", is_flag=True, help="With --trace: also what gains nothing.")
@click.option("--steps", type=click.IntRange(1), help="End the program after so many steps of its optimizer.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=120,
    show_default=True,
    metavar="SECONDS",
    help="How long a run may take.",
)
@click.option("--prove", is_flag=True, help="Time the patch on the GPU here, as `syncscan prove` does.")
@click.option("--pr", is_flag=True, help="Print title and body of a pull request.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="Of the report.")
@click.option("-o", "--output", metavar="FILE", help="Write the report to FILE instead of stdout.")
@click.option("--force", is_flag=True, help="Write files that git knows uncommitted changes of; replace FILE.")
@click.argument("script")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@needs(Need("everything", "trace"), Need("form", "pr", never=True))
def command(
    module: bool,
    write: bool,
    check: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    unsafe: bool,
    unverified: bool,
    trace: str | None,
    everything: bool,
    steps: int | None,
    limit: int,
    prove: bool,
    pr: bool,
    form: str,
    output: str | None,
    force: bool,
    script: str,
    args: tuple[str, ...],
) -> None:
    """Find where SCRIPT would wait for a GPU, rewrite what can be rewritten, and print the patch with a table.

    SCRIPT runs with ARGS on the CPU while torch believes in a GPU, several times: as it is, and with the changes,
    seeded alike. A change stays where its wait is gone, no other came in, and what the program prints and computes is
    the same. FILE.py:FUNCTION calls a function instead. Options come before SCRIPT. Nothing is written without --write.

    Safe fixes change nothing else; unsafe ones memory, laziness or the moment of an exception; the others are left to
    you, with the reason. The exit code is 0, with --check 1 where something can be fixed.
    """
    from syncscan.cli.view import globs, refuse_unknown
    from syncscan.fixing import fix
    from syncscan.fixing.writing import written
    from syncscan.model.view import View

    refuse(output, force and not write, *([trace] if trace else []))
    view = View(select=globs(select), ignore=globs(ignore))
    refuse_unknown(view)
    fixed = fix(
        script,
        args,
        module=module,
        select=view.select,
        ignore=view.ignore,
        unsafe=unsafe,
        unverified=unverified,
        everything=everything,
        trace=trace,
        steps=steps or 0,
        limit_s=float(limit),
        progress=say if sys.stderr.isatty() else None,
    )
    proof = _proof(fixed, module) if prove and fixed.files else None
    deliver(_text(fixed, form, output, pr, proof), output, force)
    if write:
        for path in written(fixed, force):
            say(f"Wrote {path}.")
    warn(() if proof is None or proof.proven else [f"The gain isn't proven: {proof.verdict.value}."])
    click.get_current_context().exit(FIXABLE if check and fixed.files else 0)


def _text(fixed: Fixed, form: str, output: str | None, pr: bool, proof: Any) -> str:
    from syncscan.report import fix_github, fix_json, fix_markdown, fix_pr, fix_text

    if pr:
        return fix_pr.render(fixed, proof)
    if form == "text":
        shown = fix_text.render(fixed, width=width(), color=output is None and colors())
        return shown + (_proof_text(proof) if proof is not None else "")
    renderers = {
        "json": fix_json.render,
        "markdown": fix_markdown.render,
        "github": fix_github.render,
    }
    return renderers[form](fixed)


def _proof_text(proof: Any) -> str:
    from syncscan.report import proof as report

    return "\n" + report.render_text(proof, width=width(), color=False)


def _proof(fixed: Fixed, module: bool) -> Any:
    from syncscan.errors import UsageError
    from syncscan.fixing.proving import proven

    if module:
        raise UsageError("--prove doesn't take a module.", "Give its script, or compare two revisions with syncscan prove --rev.")
    return proven(fixed, say if sys.stderr.isatty() else None)
