"""Tries proposals: runs the program with them, and accepts or rejects them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

import msgspec

from syncscan.fixing.edits import Clash, Draft, Edit, applied, moved_lines, span, statement_lines, written_lines
from syncscan.fixing.messages import ProgramJob, RunResult
from syncscan.fixing.printed_lines import several
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Proposal, import_torch
from syncscan.fixing.runs import Runs
from syncscan.fixing.source_text import Text
from syncscan.fixing.verify import Reference, waits_of

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
        why = self._reference.differs(run, late=any(p.shown_late for _, p in wanted)) or self._waits(
            wanted, edits, texts, run
        )
        return why or Passed(run, wanted, edits, self._not_run(wanted, edits, texts, run))

    def _edits(self, wanted: Iterable[tuple[str, Proposal]]) -> dict[str, list[Edit]]:
        drafts: dict[str, Draft] = {}
        for path, proposal in wanted:
            drafts.setdefault(path, Draft(self._files[path].text)).merge(proposal.draft)
        for path, draft in drafts.items():
            import_torch(self._files[path], draft)
        return {path: draft.edits() for path, draft in drafts.items()}

    def _waits(self, wanted: Wanted, edits: dict[str, list[Edit]], texts: dict[str, str], run: RunResult) -> str:
        """Return why the waits of a run fail the trial: one is left, or a new one came in."""
        origins = {p: moved_lines(self._files[p].text, ours, texts[p]) for p, ours in edits.items()}
        written = {p: written_lines(self._files[p].text, ours, texts[p]) for p, ours in edits.items()}
        after: dict[tuple[str, int], int] = {}
        added = 0
        shown = {(p, line) for p, one in wanted for node in one.reads for line in _lines(node)}
        for (file, line), count in waits_of(run).items():
            lines = origins.get(file)
            key = (file, line) if lines is None or not 0 < line <= len(lines) else (file, lines[line - 1])
            if key in shown:
                added += max(0, count - self._before[key])
            elif lines is not None and (edit := written[file].get(line)) and (_inserts(edit) or not self._before[key]):
                added += count
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
        by_lines: dict[tuple[str, int, int], int] = {}
        for path, proposal in wanted:
            if not proposal.group:
                key = path, *span(proposal.node)
                by_lines[key] = by_lines.get(key, 0) + proposal.waits
        for (path, begin, end), waits in by_lines.items():
            lines = range(begin, end + 1)
            was = sum(self._before[path, line] for line in lines)
            now = sum(after.get((path, line), 0) for line in lines)
            if was and was - now < min(waits, was) / 2:
                return f"line {begin} still waits, {several(now, 'time')}"
        return ""

    def _not_run(
        self, wanted: Wanted, edits: dict[str, list[Edit]], texts: dict[str, str], run: RunResult
    ) -> dict[int, str]:
        result: dict[int, str] = {}
        for path, text in texts.items():
            ran, lines = set(run.lines.get(path, [])), Text(path, text).lines
            written = written_lines(self._files[path].text, edits[path], text)
            missing = sorted(line for line in statement_lines(text) & set(written) if line not in ran)
            for number, (file, proposal) in enumerate(wanted):
                own = [line for line in missing if file == path and _is_of(written[line], proposal)]
                if own:
                    result[number] = lines[own[0] - 1].strip()
        return result


def _inserts(edit: Edit) -> bool:
    """Return whether an edit only adds lines: a line of the program that it stands in front of keeps its own waits."""
    return edit.begin == edit.end


def _lines(node: ast.AST) -> range:
    begin, end = span(node)
    return range(begin, end + 1)


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
    return {*proposal.draft.nodes, *proposal.draft.before} - {proposal.node}
