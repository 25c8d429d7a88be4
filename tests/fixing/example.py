"""Runs many short programs at once, so that a rewrite's examples cost two processes together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from syncscan.fixing.edits import Draft, applied
from syncscan.fixing.messages import ProgramJob, RunResult
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal, Rewrite
from syncscan.fixing.proposal_trial import compatible, waits_of
from syncscan.fixing.runs import Runs
from syncscan.source.text import read

HEAD = """\
import torch
torch.manual_seed(0)
device = "cuda"
x, y = torch.rand(4, 6, device=device), torch.rand(4, 6, device=device)
mask, rows = x > 0.5, torch.tensor([0, 2]).to(device)
losses = torch.rand(12, device=device).unbind()
"""
"""Stands before each program; its tensors lie on the simulated GPU."""
RUN = """\
import importlib
for k in range({count}):
    print(" ".join(str(vars(importlib.import_module(f"example_{{k}}")).get("result")).split()))
"""


@dataclass(frozen=True)
class Rewritten:
    """A program before and after a rewrite."""

    text: str
    """Its patched source, without `HEAD`."""
    waits: tuple[int, int]
    """How often it waits, before and after."""
    results: tuple[str, str]
    """Its `result`, printed before and after."""
    left: tuple[str, ...]
    """Reasons for what is left to the author."""


def rewrite(runs: Runs, folder: Path, pattern: Rewrite, programs: Mapping[str, str]) -> dict[str, Rewritten]:
    """Return each program as one rewrite leaves it, with its waits and results of both versions."""
    paths = [folder / f"example_{k}.py" for k in range(len(programs))]
    for path, body in zip(paths, programs.values(), strict=True):
        path.write_text(HEAD + body + "\n")
    (folder / "main.py").write_text(RUN.format(count=len(paths)))
    files = [str(path) for path in paths]
    before = runs.run(ProgramJob(target=str(folder / "main.py"), arguments=[], probed=files))
    assert before.code == 0, before.errors
    patched, left = zip(*(_patched(file, before, pattern) for file in files), strict=True)
    after = runs.run(
        ProgramJob(target=str(folder / "main.py"), arguments=[], sources=dict(zip(files, patched, strict=True)))
    )
    assert after.code == 0, after.errors
    rows = zip(before.printed.split("\n"), after.printed.split("\n"), strict=True)
    parts = zip(programs, files, patched, left, rows, strict=False)
    return {
        name: Rewritten(text.removeprefix(HEAD).rstrip("\n"), (_waits(before, file), _waits(after, file)), row, why)
        for name, file, text, why, row in parts
    }


def _patched(path: str, run: RunResult, pattern: Rewrite) -> tuple[str, tuple[str, ...]]:
    text = read(path)
    file = File(text, run.observed[path], main=True, places=[place for place in run.places if place.file == path])
    answers = list(pattern.answers(file))
    wanted = compatible({path: file}, [(path, one) for one in answers if isinstance(one, Proposal)])
    draft = Draft(text)
    for _, proposal in wanted:
        draft.merge(proposal.draft)
    return applied(text.text, draft.edits()), tuple(one.why for one in answers if isinstance(one, Left))


def _waits(run: RunResult, path: str) -> int:
    return sum(count for (file, line), count in waits_of(run).items() if file == path and line > HEAD.count("\n"))
