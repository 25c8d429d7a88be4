"""A patch, and optionally its proof, as title and body of a pull request."""

from __future__ import annotations

import shlex

from syncscan.model.fix import Fixed
from syncscan.model.proof import Proof
from syncscan.report import fix_story
from syncscan.report.markup import cell, code, escaped
from syncscan.report.units import duration
from syncscan.version import __version__


def render(fixed: Fixed, proof: Proof | None = None) -> str:
    """Return the title in the first line and the body after an empty line.

    Args:
        proof: the measured gain; without one the body says how to measure it.
    """
    return "\n".join([title(fixed, proof), "", *_body(fixed, proof), ""])


def title(fixed: Fixed, proof: Proof | None = None) -> str:
    """Return the title: `Remove 3 host-device syncs from train.py: a step takes 12% less`."""
    count = len({(f.file, f.line) for f in fixed.applied})
    subject = f"Remove {count} host-device {'sync' if count == 1 else 'syncs'} from {_name(fixed)}"
    if proof is None or not proof.proven or proof.gain is None:
        return subject
    return f"{subject}: a step takes {proof.gain.share:.1%} less"


def _name(fixed: Fixed) -> str:
    """Return the program without its arguments."""
    return next((word for word in shlex.split(fixed.program) if word != "-m"), fixed.program)


def _body(fixed: Fixed, proof: Proof | None) -> list[str]:
    lines = [
        "The host waits for the device in these lines:",
        "",
        "| line | rule | what changes | projected gain |",
        "|---|---|---|---|",
    ]
    for f in fixed.applied:
        cells = [cell(fix_story.where(f)), cell(f.rule), escaped(f.change), escaped(fix_story.gain(f))]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "| | before | after |", "|---|---|---|", *_before_and_after(fixed, proof), ""]
    lines += ["**Evidence**", "", f"- {escaped(fix_story.tolerance(fixed))}"]
    if proof is not None:
        lines += [f"- {escaped(_measured_text(proof), 500)}"]
    program = fixed.program
    lines += [
        "",
        "**How to reproduce**",
        "",
        f"- {code(f'syncscan fix {program}')} writes the patch and verifies it without a GPU",
    ]
    lines += [f"- {code(f'syncscan prove --rev main {program}')} measures the gain on a GPU", ""]
    return [*lines, f"<sub>syncscan {__version__}</sub>"]


def _before_and_after(fixed: Fixed, proof: Proof | None) -> list[str]:
    rows = [f"| waits in the dry run | {fixed.waits_before} | {fixed.waits_after} |"]
    if proof is not None and proof.gain is not None:
        rows.append(
            f"| step time on {escaped(proof.device)} | {duration(proof.before_us)} | {duration(proof.after_us)} |"
        )
    return rows


def _measured_text(proof: Proof) -> str:
    if proof.gain is None:
        return f"Not proven: {proof.stopped}."
    g, projected = proof.gain, proof.projected_gain
    beside = f" Projected: {projected.share:.1%} ({projected.low:.1%} to {projected.high:.1%})." if projected else ""
    return (
        f"{proof.verdict.value.capitalize()} on {proof.device}: a step takes {g.share:.1%} less ({g.low:.1%} to "
        f"{g.high:.1%}, 95% of {len(proof.pairs)} pairs of processes); results: {proof.result.same.value}.{beside}"
    )
