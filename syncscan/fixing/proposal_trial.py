"""Tries proposals: runs the program with them, compares the run with the original, and accepts or rejects them."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable

import msgspec

from syncscan.fixing.edits import Clash, Draft, Edit, Origin, applied, origins, statement_lines
from syncscan.fixing.messages import ProgramJob, RunResult
from syncscan.fixing.printed_lines import MOST, TOLERANCE, SteadyLines, several
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Proposal, import_torch
from syncscan.fixing.runs import Runs
from syncscan.fixing.written_files import SteadyFiles
from syncscan.proof import sameness
from syncscan.proof.outcome import Same
from syncscan.source.text import Text
from syncscan.source.tree import lines_of

GRAPHS = 20
"""Nodes of autograd's graphs that may be alive in addition, beside twice as many as before."""
_WARNING = re.compile(r"^\S.*:\d+: \w*Warning: ")


class Reference:
    """The behavior of the original program, from two runs, so that noise between them is known.

    `files` are those that two runs of the original program wrote; not compared if missing. `constants` are the numbers
    in the program's source and arguments, which it prints without computing anything.
    """

    def __init__(
        self,
        first: RunResult,
        again: RunResult,
        files: SteadyFiles | None = None,
        constants: Container[float] = (),
    ) -> None:
        self.first, self.again = first, again
        self.printed = SteadyLines(first.printed, again.printed)
        self.errors = SteadyLines(_without_warnings(first.errors), _without_warnings(again.errors))
        self.files = files if files is not None else SteadyFiles({}, {})
        self._constants = constants

    @property
    def noise(self) -> list[str]:
        """Output that differs between the two runs, in a few words each."""
        streams = (("printed", self.printed), ("stderr", self.errors))
        lines = [
            f"{several(len(noise), f'{name} line')}, such as {noise[0][:MOST]!r}"
            for name, stream in streams
            if (noise := stream.noise)
        ]
        return [*lines, *self.files.noise]

    @property
    def why_nothing_is_compared(self) -> str:
        """Why no result of the program can be compared; empty where one can.

        A result is a loss, a parameter, a returned tensor, or a number that it prints or writes to a file, as long as
        two unchanged runs agree on it. A number that only counts lines is none, nor is one that the source holds.
        """
        first, again = self.first.fingerprint, self.again.fingerprint
        if first.losses or first.end.shapes:
            result = sameness.judge(first, again, again, tolerance=TOLERANCE) if first != again else None
            unknown = result is not None and result.same is Same.UNKNOWN
            return f"nothing that it computes could be compared: {result.why}" if result and unknown else ""
        if any(output.has_results(self._constants) for output in (self.printed, self.errors, self.files)):
            return ""
        if self.noise:
            return "nothing that it computes could be compared: what it prints or writes differs from run to run"
        return "nothing that it computes could be compared: it has no optimizer, and prints or writes no result"

    def differs(self, run: RunResult) -> str:
        """Return what a run of a changed program does otherwise, as the end of a sentence; empty where nothing."""
        if run.failure:
            return run.failure
        if run.raised is not None and self.first.raised is None:
            return f"the patched program raises {run.raised.at_code}"
        if run.code != self.first.code:
            last = [line for line in run.errors.splitlines() if line.strip()][-1:]
            return f"the patched program ended with exit code {run.code}" + (f": {last[0][:160]}" if last else "")
        return (
            self.printed.differs(run.printed, "the patched program prints")
            or self.errors.differs(_without_warnings(run.errors), "the patched program writes to stderr")
            or self.files.differs(run.written)
            or self._computes(run)
            or self._keeps(run)
            or self._races(run)
        )

    def _computes(self, run: RunResult) -> str:
        first, again, other = self.first.fingerprint, self.again.fingerprint, run.fingerprint
        if first == other or (not first.losses and not first.end.shapes):
            return ""
        result = sameness.judge(first, other, again, tolerance=TOLERANCE)
        if result.same is Same.YES:
            return ""
        return result.why or "the patched program computes something else"

    def _keeps(self, run: RunResult) -> str:
        if run.graph <= 2 * self.first.graph + GRAPHS:
            return ""
        return f"the patched program keeps autograd graphs alive: {run.graph} nodes instead of {self.first.graph}"

    def _races(self, run: RunResult) -> str:
        """Return what races in the changed program and didn't before: by kind and file, since lines move."""
        races_before = Counter((race.kind, race.file) for race in self.first.races)
        for race in run.races:
            if not races_before[race.kind, race.file]:
                return f"the patched program races: {race.title}, in line {race.line}"
            races_before[race.kind, race.file] -= 1
        return ""


def _without_warnings(text: str) -> str:
    """Return stderr without Python's warnings, which quote the code that they are about."""
    lines, result, skip = text.splitlines(), [], False
    for line in lines:
        if _WARNING.match(line):
            skip = True
        elif skip and line.startswith(("  ", "Consider using")):
            skip = not line.startswith("  ")
        else:
            skip = False
            result.append(line)
    return "\n".join(result)


def waits_of(run: RunResult) -> Counter[tuple[str, int]]:
    counts: Counter[tuple[str, int]] = Counter()
    for place in run.places:
        counts[place.file, place.line] += place.count
    return counts


Wanted = list[tuple[str, Proposal]]
"""Proposals, each with its file's path."""


class Passed(msgspec.Struct):
    """Proposals that leave the program's results unchanged and remove waits."""

    run: RunResult
    wanted: Wanted
    edits: dict[str, list[Edit]]
    not_run: dict[int, str]
    """By the proposal's place in `wanted`: the code of a line that it writes and that didn't run."""


class ProposalTrial:
    """Tries the proposals of one pass; `job` makes a job of new texts in the place of files, whose lines are noted."""

    def __init__(
        self, runs: Runs, files: dict[str, File], reference: Reference, job: Callable[[dict[str, str]], ProgramJob]
    ) -> None:
        self._runs, self._files, self._reference, self._job = runs, files, reference, job
        self._before = waits_of(reference.first)

    def of(self, wanted: Wanted) -> Passed | str:
        """Run the program with all of these; return what came of it, or why it won't do: the end of a sentence."""
        try:
            edits = self._edits(wanted)
        except Clash:
            return "it conflicts with another fix"
        texts = {path: applied(self._files[path].text.text, ours) for path, ours in edits.items()}
        for text in texts.values():
            try:
                ast.parse(text)
            except SyntaxError as error:
                return f"the patched file isn't valid Python: {error.msg}"
        run = self._runs.run(self._job(texts))
        lines = {path: origins(self._files[path].text, ours, texts[path]) for path, ours in edits.items()}
        why = self._reference.differs(run) or self._waits(wanted, lines, run)
        return why or Passed(run, wanted, edits, _not_run(wanted, lines, texts, run))

    def _edits(self, wanted: Iterable[tuple[str, Proposal]]) -> dict[str, list[Edit]]:
        drafts: dict[str, Draft] = {}
        for path, proposal in wanted:
            drafts.setdefault(path, Draft(self._files[path].text)).merge(proposal.draft)
        for path, draft in drafts.items():
            import_torch(self._files[path], draft)
        return {path: draft.edits() for path, draft in drafts.items()}

    def _waits(self, wanted: Wanted, lines: dict[str, list[Origin]], run: RunResult) -> str:
        """Return why the waits of a run fail the trial: one is left, or a new one came in."""
        after: dict[tuple[str, int], int] = {}
        added = 0
        shown = {(p, line) for p, one in wanted for node in one.reads for line in lines_of(node)}
        for (file, line), count in waits_of(run).items():
            known = 0 < line <= len(lines.get(file, ()))
            was, edit = lines[file][line - 1] if known else (line, None)
            key = file, was
            if key in shown:
                added += max(0, count - self._before[key])
            elif edit and (edit.begin == edit.end or not self._before[key]):
                added += count  # an edit that only adds lines leaves the line behind them its own waits
            else:
                after[key] = after.get(key, 0) + count
        more = [key for key, count in after.items() if count > self._before[key]]
        if more:
            return f"line {more[0][1]} would wait {several(after[more[0]], 'time')} instead of {self._before[more[0]]}"
        removed = sum(p.waits for _, p in wanted)
        if removed and sum(waits_of(run).values()) >= sum(self._before.values()):
            return f"the program waits {several(sum(self._before.values()), 'time')}, as before"
        if added * 2 > removed:
            return f"reading the values back would wait {several(added, 'time')}, to save {several(removed, 'wait')}"
        return self._still(wanted, after)

    def _still(self, wanted: Wanted, after: dict[tuple[str, int], int]) -> str:
        by_lines: Counter[tuple[str, range]] = Counter()
        for path, proposal in wanted:
            if not proposal.group:
                by_lines[path, lines_of(proposal.node)] += proposal.waits
        for (path, lines), waits in by_lines.items():
            was = sum(self._before[path, line] for line in lines)
            now = sum(after.get((path, line), 0) for line in lines)
            if was and was - now < min(waits, was) / 2:
                return f"line {lines.start} still waits, {several(now, 'time')}"
        return ""


def _not_run(wanted: Wanted, lines: dict[str, list[Origin]], texts: dict[str, str], run: RunResult) -> dict[int, str]:
    result: dict[int, str] = {}
    for path, text in texts.items():
        missing = sorted(statement_lines(text) - set(run.lines.get(path, [])))
        written = [(line, edit) for line in missing if (edit := lines[path][line - 1][1])]
        for number, (file, proposal) in enumerate(wanted):
            own = [line for line, edit in written if file == path and _is_of(edit, proposal)]
            if own:
                result[number] = Text(path, text).lines[own[0] - 1].strip()
    return result


def _is_of(edit: Edit, proposal: Proposal) -> bool:
    """Return whether an edit contains one of the proposal's edits."""
    return any(own.begin >= edit.begin and own.end <= edit.end for own in proposal.draft.edits())


def compatible(files: dict[str, File], wanted: Wanted) -> Wanted:
    """Return those that don't clash with one before them; the others get their turn in the next pass."""
    drafts: dict[str, Draft] = {}
    result: Wanted = []
    taken: set[ast.AST] = set()
    for path, proposal in wanted:
        nodes = {proposal.node, *proposal.group}
        if nodes & taken:
            continue
        draft = drafts.setdefault(path, Draft(files[path].text)).copy()
        try:
            draft.merge(proposal.draft)
            draft.edits()
        except Clash:
            continue
        drafts[path] = draft
        taken |= nodes
        result.append((path, proposal))
    return result


def together(wanted: Wanted) -> list[Wanted]:
    """Return groups of proposals that change a node or put lines beside a statement in common."""
    groups: list[Wanted] = []
    for path, proposal in wanted:
        own = _places(proposal)
        joined = [g for g in groups if any(p == path and own & _places(other) for p, other in g)]
        groups = [g for g in groups if g not in joined]
        groups.append([*(one for g in joined for one in g), (path, proposal)])
    return groups


def _places(proposal: Proposal) -> set[ast.AST]:
    before = {statement for statement, behind in proposal.draft.beside if not behind}
    return {*proposal.draft.nodes, *before} - {proposal.node}
