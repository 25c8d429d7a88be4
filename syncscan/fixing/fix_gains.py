"""Gains of fixes: as a recording projects them for source lines, and as this machine measures them for a patch."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from syncscan import api
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding
from syncscan.model.fix import Fix, Fixed, FixGain
from syncscan.model.projection import Projection
from syncscan.proof.outcome import Proof
from syncscan.proof.prove import prove


def gains_of(trace: str) -> dict[tuple[str, int], FixGain]:
    """Return the projected gains of a recording's findings, by file (from the working directory on) and line."""
    return of_analysis(api.analyze(trace))


def of_analysis(analysis: Analysis) -> dict[tuple[str, int], FixGain]:
    """Return the projected gains of an analysis, by absolute path and line; of several findings of a line the sum."""
    step = analysis.step.unprofiled_us or analysis.step.observed_us
    result: dict[tuple[str, int], FixGain] = {}
    for finding in analysis.findings:
        key, gain, limits = _place(finding), finding.recoverable_us, finding.recoverable_range_us
        if key is None or gain is None or limits is None:
            continue
        so_far = result.get(key, FixGain(0.0, 0.0, 0.0, 0.0 if step else None))
        us, (low, high) = so_far.us + gain, limits
        share = us / step if step else None
        result[key] = FixGain(us, so_far.low_us + low, so_far.high_us + high, share)
    return result


def projected(analysis: Analysis, fixes: Iterable[Fix]) -> Projection | None:
    """Return the projected step without the waits that these fixes remove; None if the recording has none of them."""
    spans = [(fix, str(Path(fix.file).absolute()), range(fix.line, fix.end_line + 1)) for fix in fixes]
    staying = {(file, line) for fix, file, lines in spans for line in lines if fix.shared}
    lines = {(file, line) for _, file, lines in spans for line in lines} - staying
    removed = [f.id for f in analysis.findings if f.recoverable_us is not None and _place(f) in lines]
    return analysis.whatif(*(f"id:{number}" for number in removed), fix=True) if removed else None


def with_note(fixed: Fixed, trace: str) -> Fixed:
    """Return the patch with a note if the recording at `trace` shows the gain of none of its fixes."""
    if not fixed.fixes or any(fix.gain for fix in fixed.fixes):
        return fixed
    note = f"{trace} has no projected wait at these lines, so gains are unknown: does it record this program?"
    return replace(fixed, notes=(*fixed.notes, note))


def _place(finding: Finding) -> tuple[str, int] | None:
    source = finding.source
    return (str(Path(source.file).absolute()), source.line) if source is not None else None


def prove_patch(
    fixed: Fixed,
    limit_s: float,
    progress: Callable[[str], None] | None = None,
    trace: str | None = None,
) -> Proof:
    """Run the program as it is and with its patch in turn, as `syncscan prove` does.

    All runs together take `limit_s` seconds at most; `progress` is called with a sentence after each pair. The gain
    that `trace`, a recording of the unchanged program, projects for the whole patch is shown beside the measured one.
    The patched text takes the original's place in a scratch copy: the user's folder gets no file.
    """
    target, *arguments = shlex.split(fixed.program)
    projection = projected(api.analyze(trace), fixed.applied) if trace else None
    with _texts(fixed) as patched:
        return prove(
            target,
            target,
            patched=patched,
            arguments=arguments,
            limit_s=limit_s,
            projected=projection,
            progress=progress,
        )


@contextmanager
def _texts(fixed: Fixed) -> Iterator[list[tuple[Path, Path]]]:
    """Write the patched files into a temporary folder; yield each original with its patched one."""
    with tempfile.TemporaryDirectory(prefix="syncscan-fix-") as folder:
        pairs = [(Path(file.path), Path(folder, str(number))) for number, file in enumerate(fixed.files)]
        for file, (_, text) in zip(fixed.files, pairs, strict=True):
            text.write_bytes(file.after.encode(file.encoding))
        yield pairs
