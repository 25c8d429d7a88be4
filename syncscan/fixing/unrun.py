"""Proposes fixes for a file that nothing runs: none of them is verified."""

from __future__ import annotations

import ast
import time
from collections.abc import Sequence

import msgspec

from syncscan import api
from syncscan.capture.commands import refuse_notebook
from syncscan.errors import UsageError
from syncscan.fixing.assumed_run import observed
from syncscan.fixing.edits import Draft, applied, change, span
from syncscan.fixing.patch_builder import unified
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Proposal, import_torch, proposals_of, with_torch
from syncscan.fixing.proposal_trial import Wanted, compatible
from syncscan.fixing.rewrites import deferred
from syncscan.fixing.same_text import TOLERANCE
from syncscan.fixing.source_text import names_apple, read
from syncscan.model.fix import Fix, Fixed, Patched

HOW = "not verified: nothing ran"


def fix_source(path: str, *, select: Sequence[str] = (), ignore: Sequence[str] = (), unverified: bool = False) -> Fixed:
    """Return the fixes that the source alone shows; the file is neither run nor imported.

    They are part of the patch only if `unverified`; otherwise they are only listed.
    """
    began = time.monotonic()
    refuse_notebook(path)
    try:
        text = read(path)
        ast.parse(text.text)
    except (OSError, SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise UsageError(f"{path} can't be read as Python: {error}.") from None
    warnings = api.lint([path], select=select, ignore=ignore).warnings
    waits = {(warning.line, warning.column) for warning in warnings}
    file = File(text, observed(text, waits), has_float64=not names_apple(text.path))
    answers = [(path, one) for one in proposals_of(deferred, file) if isinstance(one, Proposal)]
    wanted = compatible({path: file}, answers)
    fixes = tuple(_fix(path, file, one, unverified) for _, one in wanted)
    files = (_patched(path, file, wanted),) if wanted and unverified else ()
    return Fixed(
        program=path,
        fixes=tuple(sorted(fixes, key=lambda one: one.line)),
        files=files,
        waits_before=0,
        waits_after=0,
        tolerance=TOLERANCE,
        seconds=time.monotonic() - began,
        notes=("The source alone doesn't show types and devices.",),
        ran=False,
    )


def _fix(path: str, file: File, proposal: Proposal, applies: bool) -> Fix:
    text = file.text
    begin, end = span(proposal.node)
    return Fix(
        file=path,
        line=begin,
        end_line=end,
        rule=proposal.rule,
        rewrite=proposal.rewrite,
        title=proposal.title,
        change=proposal.change,
        safety=proposal.safety,
        why=proposal.why,
        verified=False,
        how=HOW,
        waits=0,
        applied=applies,
        changes=tuple(change(text, edit) for edit in with_torch(file, proposal.draft).edits()),
    )


def _patched(path: str, file: File, wanted: Wanted) -> Patched:
    text, draft = file.text, Draft(file.text)
    for _, proposal in wanted:
        draft.merge(proposal.draft)
    import_torch(file, draft)
    after = msgspec.structs.replace(text, text=applied(text.text, draft.edits()))
    diff = unified(path, text.marked, after.marked)
    return Patched(path, text.path, text.text, after.text, text.encoding, diff)
