"""Finds, writes and verifies the changes of one program."""

from __future__ import annotations

import ast
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from syncscan.errors import ProgramFailed
from syncscan.fixing.edits import applied, change, origins, unified
from syncscan.fixing.messages import Observed, ProgramJob, RunResult, WaitingLine
from syncscan.fixing.patch_entries import NOT_VERIFIED, PatchEntries, runs_once
from syncscan.fixing.printed_lines import TOLERANCE, several, shown_path, source_numbers
from syncscan.fixing.program_file import File, names_apple
from syncscan.fixing.proposal import Left, Proposal, by_hand, is_too_long, with_torch
from syncscan.fixing.proposal_trial import Passed, ProposalTrial, Reference, Wanted, compatible, together
from syncscan.fixing.rewrites import REWRITES
from syncscan.fixing.runs import Runs
from syncscan.fixing.written_files import SteadyFiles
from syncscan.model.fix import Fix, Fixed, FixGain, Patched, Safety
from syncscan.model.json_text import written
from syncscan.model.view import matches
from syncscan.source.text import Text, read
from syncscan.source.tree import lines_of

PASSES = 3
"""A fix may clear the way for another one."""
SHORTER = 20
"""Steps of a program that has come to no end within the limit."""
VERIFIED = "both versions ran dry: this wait is gone, there is no new one, and output and results agree"
PAGEABLE = (
    "Copies of more than 256 KB from pageable memory may wait for the device with non_blocking=True too, so they are "
    "counted as before ({}): pin the memory, such as with pin_memory=True of the data loader."
)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a patch, as in `syncscan.fix`."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    unsafe: bool = False
    unverified: bool = False
    gains: Mapping[tuple[str, int], FixGain] = {}
    """Projected gains of a recording, by absolute path and line."""
    steps: int = 0
    limit_s: float = 120.0
    progress: Callable[[str], None] = lambda sentence: None


class PatchBuilder:
    """Builds the patch of one program: a script, a `function` of one, or with `module` a module by its name."""

    def __init__(
        self, target: str, arguments: Sequence[str], options: Options, *, function: str = "", module: bool = False
    ) -> None:
        self._job = ProgramJob(target, list(arguments), function=function, module=module, steps=options.steps)
        self._options = options
        self._originals: dict[str, Text] = {}
        self._texts: dict[str, Text] = {}
        self._files: dict[str, File] = {}
        """The files as the last pass observed them."""
        self._lines: dict[str, list[int]] = {}
        """Original line of each current line, by file."""
        self._tried: set[tuple[str, str, int]] = set()
        """Path, rewrite and line of what isn't to be proposed again."""
        self._entries = PatchEntries(options.gains)
        self._constants: frozenset[float] = frozenset()
        """The numbers in the program's files and arguments."""
        self._has_float64 = True
        """Whether each device that the program's files name has double precision."""
        self._unfinished = ""
        """Why nothing can be verified: the program doesn't come to its end, or gives no result to compare."""
        self._unjudged = ""
        """Why it is unknown whether the program has anything to fix."""
        self._written: SteadyFiles | None = None
        """The files of the first two runs, of the unchanged program."""
        self._not_compared: list[str] = []
        """Output that differs between two unchanged runs."""
        self._notes: list[str] = []
        self._pageable = 0
        """Waits of changed copies that may go on until their memory is pinned."""

    def run(self) -> Fixed:
        """Find, write and verify."""
        began = time.monotonic()
        with Runs(self._options.limit_s) as runs:
            before = after = self._first(runs)
            self._take_files(before)
            for _ in range(PASSES):
                outcome = self._pass(runs, after)
                if outcome is None:
                    break
                after = outcome
        return self._fixed(before, after, time.monotonic() - began)

    def _first(self, runs: Runs) -> RunResult:
        self._options.progress("running the program dry")
        first = runs.run(self._make_job(), keep=True)
        if first.failure and first.code == -1 and not self._job.steps:
            self._notes.append(
                f"The program didn't end within {self._options.limit_s:g} s; it was stopped after {SHORTER} steps."
            )
            self._job.steps = SHORTER
            first = runs.run(self._make_job(), keep=True)
        if self._job.steps and (first.failure or first.code):
            self._job.ends_loops = False
            first = runs.run(self._make_job(), keep=True)
        if first.failure or (first.code and not first.places):
            late = "Give arguments that make a shorter run, or a longer --limit."
            hint = late if first.code == -1 else ""
            raise ProgramFailed(f"{self._job.target} can't be run dry: {first.why_failed}.", hint)
        if first.code:
            self._unjudged = self._unfinished = f"the program fails: {first.why_failed}"
        self._notes += [f"It is unknown whether {gap} waits." for gap in first.gaps]
        self._notes += [f"What the program sends to {machine} isn't held back." for machine in first.machines]
        return first

    def _make_job(self, texts: Mapping[str, str] = {}, **changes: object) -> ProgramJob:
        """Return the job of the program as it is patched so far, or with other `texts` of some files."""
        sources = {path: text.text for path, text in self._texts.items() if self._is_changed(path)}
        return msgspec.structs.replace(self._job, sources={**sources, **texts}, **changes)

    def _take_files(self, first: RunResult) -> None:
        """Read the user's files in which the program waits."""
        waiting = {place.file for place in first.places}
        self._has_float64 = not any(names_apple(path) for path in first.files)
        self._constants = source_numbers(first.files, self._job.arguments)
        for path in first.files:
            if path in waiting:
                text = read(path)
                self._originals[path] = self._texts[path] = text
                self._lines[path] = list(range(1, len(text.lines) + 1))

    def _pass(self, runs: Runs, now: RunResult) -> RunResult | None:
        """Find what can be fixed in the program as it is now, and fix it; None where nothing was."""
        paths = sorted(self._texts)
        if not paths:
            return None
        self._options.progress("observing its expressions")
        probed = runs.run(self._make_job(probed=paths), keep=True)
        if probed.failure or probed.code != now.code:
            self._unjudged = f"the program fails when its expressions are observed: {probed.why_failed}"
            return None
        files = self._files = {path: self._file(path, probed) for path in paths}
        wanted = [(path, p) for path in paths for p in self._proposed(path, files[path], now)]
        if not wanted:
            return None
        reference = self._reference(now, probed)
        trial = ProposalTrial(runs, files, reference, lambda texts: self._make_job(texts, covered=sorted(texts)))
        passed = self._verify(trial, compatible(files, wanted))
        return self._accepted(passed) if passed is not None else None

    def _reference(self, now: RunResult, again: RunResult) -> Reference:
        """Return what a changed program has to do; its files are those of the unchanged one, which are kept."""
        if self._written is None:
            self._written = SteadyFiles(now.written, again.written)
        reference = Reference(now, again, self._written, self._constants)
        self._not_compared += [noise for noise in reference.noise if noise not in self._not_compared]
        if not self._unfinished and (why := reference.why_nothing_is_compared):
            self._unfinished = why
        return reference

    def _file(self, path: str, run: RunResult) -> File:
        job = self._job
        main = not job.function and not job.module and str(Path(job.target).absolute()) == path
        places = [place for place in run.places if place.file == path]
        observed = run.observed.get(path, Observed())
        return File(self._texts[path], observed, main=main, places=places, has_float64=self._has_float64)

    # what is proposed

    def _proposed(self, path: str, file: File, now: RunResult) -> list[Proposal]:
        """Return the proposals to try, and note what rewrites leave to the author."""
        result: list[Proposal] = []
        places = [place for place in now.places if place.file == path]
        self._entries.once |= {(path, self._was(path, place.line)) for place in places if runs_once(file, place.line)}
        for rewrite in REWRITES:
            for candidate in rewrite.answers(file):
                if isinstance(candidate, Left):
                    self._leave(path, candidate)
                    continue
                proposal = msgspec.structs.replace(candidate, rule=_rule_at(places, candidate))
                if self._is_wanted(path, proposal) and not runs_once(file, lines_of(candidate.node).start):
                    result.append(proposal)
        return result

    def _leave(self, path: str, left: Left) -> None:
        self._entries.left[path, self._line(path, left.node)].append(left)

    def _is_wanted(self, path: str, proposal: Proposal) -> bool:
        options, rule = self._options, proposal.rule
        key = path, proposal.rewrite, self._line(path, proposal.node)
        if key in self._tried:
            return False
        if (options.select and not matches(rule, options.select)) or matches(rule, options.ignore):
            return False
        if proposal.safety is Safety.UNSAFE and not options.unsafe:
            why = f"with --unsafe: {proposal.change}, but {proposal.why}"
            self._leave(path, Left(proposal.node, why, proposal.setting))
            return False
        if is_too_long(proposal):
            self._leave(path, Left(proposal.node, by_hand(proposal), proposal.setting))
            return False
        lines = [self._line(path, node) for node in (proposal.node, *proposal.group)]
        gains = [options.gains[path, line] for line in lines if (path, line) in options.gains]
        if gains and all(gain.high_us <= 0 for gain in gains):
            self._tried.add(key)
            self._note(path, proposal, "not tried: the recording projects no gain", applied=False)
            return False
        return True

    def _line(self, path: str, node: ast.AST) -> int:
        """Return the first line of a node in the unchanged file."""
        return self._was(path, lines_of(node).start)

    def _was(self, path: str, line: int) -> int:
        lines = self._lines[path]
        return lines[line - 1] if 0 < line <= len(lines) else line

    # what passes

    def _verify(self, trial: ProposalTrial, wanted: Wanted) -> Passed | None:
        """Take all at once, or else what passes together with those before it."""
        self._options.progress(f"verifying {len(wanted)} changes")
        at_once = trial.of(wanted)
        if isinstance(at_once, str):
            self._options.progress(f"all changes together fail ({at_once}); trying them one by one")
        passed = self._one_by_one(trial, wanted) if isinstance(at_once, str) else at_once
        if passed is None or self._options.unverified or not (passed.not_run or self._unfinished):
            return passed
        return self._only_verified(trial, passed)

    def _one_by_one(self, trial: ProposalTrial, wanted: Wanted) -> Passed | None:
        last: Passed | None = None
        for group in together(wanted):
            passed = trial.of([*(last.wanted if last else []), *group])
            if isinstance(passed, Passed):
                last = passed
                continue
            for path, proposal in group:
                self._refuse(path, proposal, f"tried and dropped: {passed}")
        return last

    def _only_verified(self, trial: ProposalTrial, passed: Passed) -> Passed | None:
        """Leave out what has lines that didn't run."""
        unverified: Wanted = []
        for number, (path, proposal) in enumerate(passed.wanted):
            how = self._how(passed, number)
            if how == VERIFIED:
                unverified.append((path, proposal))
            else:
                self._refuse(path, proposal, how)
        if not unverified:
            return None
        again = trial.of(unverified)
        return again if isinstance(again, Passed) else None

    def _how(self, passed: Passed, number: int) -> str:
        if self._unfinished:
            return f"{NOT_VERIFIED}{self._unfinished}"
        if number in passed.not_run:
            return f"{NOT_VERIFIED}`{passed.not_run[number]}` didn't run"
        return VERIFIED

    def _refuse(self, path: str, proposal: Proposal, how: str) -> None:
        self._tried.add((path, proposal.rewrite, self._line(path, proposal.node)))
        self._note(path, proposal, how, applied=False)

    def _accepted(self, passed: Passed) -> RunResult:
        """Make it part of the patch."""
        for number, (path, proposal) in enumerate(passed.wanted):
            self._note(path, proposal, self._how(passed, number), applied=True)
            self._pageable += proposal.waits if proposal.pageable else 0
        for path, edits in passed.edits.items():
            text = self._texts[path]
            new = applied(text.text, edits)
            self._lines[path] = [self._was(path, line) for line, _ in origins(text, edits, new)]
            self._texts[path] = msgspec.structs.replace(text, text=new)
        return passed.run

    # what comes of it

    def _note(self, path: str, proposal: Proposal, how: str, *, applied: bool) -> None:
        """Note a fix for each statement that it is about."""
        text = self._texts[path]
        edits = [] if self._is_changed(path) else with_torch(self._files[path], proposal.draft).edits()
        changes = tuple(change(text, edit) for edit in edits)
        for node in (proposal.node, *proposal.group):
            begin, end = self._line(path, node), self._was(path, lines_of(node)[-1])
            if proposal.setting:
                self._entries.settings[path, begin].append(proposal.setting)
            self._entries.fixes.append(
                written(
                    Fix,
                    proposal,
                    file=shown_path(path),
                    line=begin,
                    end_line=end,
                    verified=how == VERIFIED,
                    how=how,
                    applied=applied,
                    changes=changes,
                    gain=self._options.gains.get((path, begin)),
                    shared=proposal.shared and node is proposal.node,
                )
            )

    def _fixed(self, before: RunResult, after: RunResult, seconds: float) -> Fixed:
        entries = self._entries
        still = {(p.file, self._was(p.file, p.line), p.advice) for p in after.places if p.file in self._lines}
        fixes = entries.all(before.places, still)
        if self._pageable:
            self._notes.append(PAGEABLE.format(several(self._pageable, "time")))
        unjudged = self._unjudged or entries.why_unjudged()
        if unjudged and any(fix.applied for fix in fixes):
            self._notes.append(f"There may be more to fix: {unjudged}.")
        return Fixed(
            program=self._command(),
            fixes=tuple(sorted(fixes, key=lambda fix: (fix.file, fix.line, fix.rewrite))),
            files=tuple(self._patched(path) for path in sorted(self._texts) if self._is_changed(path)),
            waits_before=sum(place.count for place in before.places),
            waits_after=sum(place.count for place in after.places) + self._pageable,
            waits_apart=sum(place.count for place in before.places if entries.is_apart(place)),
            tolerance=TOLERANCE,
            seconds=seconds,
            notes=tuple(dict.fromkeys(self._notes)),
            not_compared=tuple(self._not_compared),
            unjudged=unjudged,
        )

    def _command(self) -> str:
        """Return the program as the user named it, quoted for a shell."""
        job = self._job
        target = f"{job.target}:{job.function}" if job.function else job.target
        return shlex.join([*(["-m"] if job.module else []), target, *job.arguments])

    def _is_changed(self, path: str) -> bool:
        return self._texts[path].text != self._originals[path].text

    def _patched(self, path: str) -> Patched:
        before, after = self._originals[path], self._texts[path]
        name = shown_path(path)
        diff = unified(name, before.marked, after.marked)
        return Patched(name, path, before.text, after.text, before.encoding, diff)


def _rule_at(places: Sequence[WaitingLine], proposal: Proposal) -> str:
    rules = {place.rule for place in places if place.line in lines_of(proposal.node)}
    return proposal.rule if proposal.rule in rules or not rules else sorted(rules)[0]
