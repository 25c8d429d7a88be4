"""No option is ignored: each one given changes what a command does, in every format, or is refused.

What a command does is what it prints and writes, how it ends, and what it asks of the functions that analyze, measure
and show: of those that run programs or servers these tests take the place.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from syncscan import api, gate
from syncscan.capture.main_script import Exit
from syncscan.cli import all_commands, group, memory_limit, module_of
from syncscan.cli.needs import Need, name
from syncscan.errors import SyncscanError
from syncscan.fixing import document
from syncscan.model.analysis import Analysis
from syncscan.proof.command_trial import CommandOptions
from syncscan.proof.outcome import Proof
from syncscan.report import html
from syncscan.watching.watch_command import OF_A_RUN
from syncscan.watching.watch_file import Journal
from tests.builder import TraceBuilder
from tests.fixing.test_report import FIXED
from tests.fleet.example import job
from tests.proof.test_report import PROOF
from tests.watching.example import begin, window

pytest.importorskip("torch")

ARGUMENTS = {
    "attach": ["4321"],
    "demo": [],
    "profile": ["program.py"],
    "diff": ["t.json", "other.json"],
    "fleet": ["ranks"],
    "annotate": ["t.json", "-o", "new.pt.trace.json"],
    "report": ["t.json", "-o", "new.html"],
    "repair": ["t.json", "-o", "new.json"],
    "prove": ["program.py", "program.py"],
    "dryrun": ["program.py:step"],
    "fix": ["program.py"],
    "lint": ["program.py"],
    "explain": ["nonzero", "t.json"],
    "serve": ["lsp"],
    "skill": [],
    "watch": ["w.watch.jsonl"],
}
"""Arguments of each command besides its options; by default the trace."""
OF_COMMANDS = ("metric", "better", "ready", "client", "same_output")
"""Options of `prove` for commands, which it takes in place of programs."""
PROGRAMS = ("profile", "prove", "dryrun", "fix", "watch")
"""Commands whose options come before the program, as what comes after it is the program's own."""
INSTEAD = {
    ("dryrun", "module"): ["program"],
    ("profile", "module"): ["json.tool"],
    ("check", "update_baseline"): ["t.json", "--baseline", "base.json"],
    ("watch", "module"): ["json.tool"],
    **{("watch", option): ["program.py"] for option in OF_A_RUN if option != "module"},
    ("prove", "first"): ["--after", "true"],
    ("prove", "second"): ["--before", "true"],
    **{("prove", option): ["--before", "true", "--after", "true"] for option in OF_COMMANDS},
    ("diff", "before"): ["--after", "other.json"],
    ("diff", "after"): ["--before", "t.json"],
}
"""Arguments that an option needs in place of those."""
VALUES = {
    "active": "7",
    "after": "t.json",
    "around": "1",
    "baseline": "known.json",
    "before": "t.json",
    "device": "cpu",
    "evidence": "1",
    "every": "100",
    "exports": "prometheus:metrics.prom",
    "fail_on": "guess",
    "fixes": "fixes.json",
    "host": "::1",
    "ignore": "item",
    "inputs": "inputs",
    "limit": "scope:loss*,syncs=0",
    "min_saves": "1s",
    "on_alarm": "true",
    "on_signal": "USR1",
    "out": "elsewhere",
    "output": "given.out",
    "prefix": "p",
    "process": "100",
    "remove": "rule:item",
    "revisions": "HEAD",
    "sample": "2",
    "scheduler": "tcp://127.0.0.1:1",
    "select": "item",
    "source_root": ".",
    "start_at": "7",
    "step_ms": "15",
    "steps": "none",
    "trace": "t.json",
    "viewer": "perfetto",
    ("diff", "fail_on"): "new",
    ("dryrun", "steps"): "5",
    ("fix", "limit"): "7",
    ("fix", "steps"): "7",
    ("profile", "wait"): "7",
    ("profile", "repeat"): "7",
    ("profile", "warmup"): "7",
    ("profile", "calibrate"): "7",
    ("prove", "limit"): "2m",
    ("prove", "metric"): "(1)",
    ("prove", "better"): "higher",
    ("prove", "steps"): "7",
    ("open", "port"): "8123",
}
"""A value with which an option means something here; else 1."""


def files(folder: Path) -> None:
    """A trace with a read in the program's code and one in a library's, another, a job, a script and limits."""
    folder.mkdir()
    recorded(400).write(folder / "t.json")
    recorded(300, "aten::masked_select > aten::nonzero").write(folder / "other.json")
    (folder / "ranks").mkdir()
    recorded(400).write(folder / "ranks" / "rank0.json")
    reads = "".join(f"        x[{k}].item()\n" for k in range(12))
    (folder / "program.py").write_text(
        "import torch\ndef inputs(batch=1):\n    return ()\n"
        f"def step():\n    for x in [torch.ones(12, device='cuda')]:\n{reads}        torch.cuda.synchronize()\n"
    )
    known = gate.baseline_of([api.analyze(folder / "t.json")], ())
    (folder / "known.json").write_text(gate.text_of(known))
    (folder / "limits.toml").write_text(
        '[tool.syncscan]\nsyncs = 50\n[[tool.syncscan.allow]]\nrule = "item"\nreason = "r"\n'
    )
    (folder / "fixes.json").write_text(document.render(FIXED))
    (folder / "there.out").write_text("")
    journal = Journal(folder / "w.watch.jsonl")
    for record in (begin(), window(1), window(2)):
        journal.write(record)
    journal.close()


def recorded(lasts: float, *more: str) -> TraceBuilder:
    """Three steps that load data, look for hits in a library's code, synchronize, and read a dozen numbers."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=20_000):
        with t.scope("data", start + 1, start + 50):
            t.op("aten::zeros", start + 2, start + 40)
        t.frame("train.py(3): loss", start + 60, start + 19_900)
        t.launch("gemm", at=start + 70, lasts=lasts)
        with t.scope("timed", start + 80, start + 1000):
            t.synchronize(at=start + 100)
        for k, op in enumerate((*more, *["aten::item > aten::_local_scalar_dense"] * 12)):
            with t.scope(f"metric{k}", start + 1000 * (k + 2), start + 1000 * (k + 3) - 1):
                t.launch("gemm", at=start + 1000 * (k + 2) + 10, lasts=lasts)
                t.sync(op, at=start + 1000 * (k + 2) + 50)
        t.frame("torch/utils/log.py(9): hits", start + 16_000, start + 18_000)
        t.launch("gemm", at=start + 16_010, lasts=lasts)
        t.sync("aten::nonzero", at=start + 16_050)
    return t


class Runs:
    """Runs commands, each in the same folder with the same files, and tells what they did."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._files, self._place = folder / "files", folder / "place"
        files(self._files)
        self._calls: list[str] = []
        self._known: dict[tuple[str, ...], tuple[object, ...]] = {}
        self._patch = monkeypatch

    def stand_in(self, target: str, answer: Callable[..., Any]) -> None:
        """Note each call of a function, which is answered so."""

        def called(*args: Any, **kwargs: Any) -> Any:
            values = {k: v for k, v in kwargs.items() if k not in ("progress", "clock")}
            self._calls.append(re.sub(" at 0x[0-9a-f]+", "", f"{target}{args}{sorted(values.items())}"))
            return answer(*args, **kwargs)

        self._patch.setattr(target, called)

    def outcome(self, *words: str) -> tuple[object, ...]:
        """Return the exit code, output and effects of the command with these words."""
        return self._run(words)

    def usual(self, *words: str) -> tuple[object, ...]:
        """Return the effects that the command with these words has every time."""
        if words not in self._known:
            self._known[words] = self._run(words)
            assert self._run(words) == self._known[words]
        return self._known[words]

    def _run(self, words: tuple[str, ...]) -> tuple[object, ...]:
        shutil.rmtree(self._place, ignore_errors=True)
        shutil.copytree(self._files, self._place)
        self._patch.chdir(self._place)
        self._calls.clear()
        result = CliRunner().invoke(group, words)
        assert isinstance(result.exception, (type(None), SystemExit, SyncscanError)), result.exception
        assert "Traceback" not in result.stderr, result.stderr
        written = {str(p.relative_to(self._place)): p.read_bytes() for p in self._place.rglob("*") if p.is_file()}
        return result.exit_code, repr(result.exception), result.stdout, result.stderr, written, tuple(self._calls)


def captured(script: str, arguments: object, make_session: Callable[[], Any], **how: bool) -> Any:
    """A script's run under a capture, which is told and not done."""
    from syncscan.capture.script_capture import ScriptRun

    session = make_session()
    click.echo(f"{session._out} {session._name} {session.plan} {session.demand}")
    return ScriptRun(0, (Path("t.json"),), 10, "optimizer", complete=True, stopped=True)


def compared(commands: object, of: CommandOptions, **how: object) -> Proof:
    """The proof of two commands, which tells how they were to be compared."""
    told = msgspec.structs.replace(PROOF, before=f"{commands} {of.higher} {of.ready} {of.client} {of.same_output}")
    return msgspec.structs.replace(told, metric=of.metric.text if of.metric else "")


def answered(key: str, say: object = None) -> dict[str, Any]:
    """Answer as an attached process does."""
    return {"done": ["t.json"], "threads": [], "syncs": [], "steps": 2, "lost": 0}


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    """The effects of a command are compared; running programs, servers or processes is replaced by an example."""
    analyses: dict[str, Analysis] = {}
    analyzed = api.analyze

    def analyze(path: str, **kwargs: Any) -> Analysis:
        key = f"{path}{sorted((k, v) for k, v in kwargs.items() if k not in ('progress', 'clock'))}"
        if key not in analyses:
            analyses[key] = analyzed(path, **kwargs)
        return analyses[key]

    built = Runs(tmp_path, monkeypatch)
    monkeypatch.setattr("syncscan.capture.session.default_name", lambda: "default")
    monkeypatch.setattr("syncscan.load.memory_check.available", lambda: 8 << 30)
    monkeypatch.setattr("syncscan.cli.explain.colors", lambda: True)
    built.stand_in("syncscan.cli.memory_limit.limited", memory_limit.limited)
    built.stand_in("syncscan.api.analyze", analyze)
    built.stand_in("syncscan.fleet.analyze_fleet", lambda *args, **kwargs: job())
    built.stand_in("syncscan.viewers.open_command.show", lambda analysis, *args: click.echo(html.render(analysis)))
    built.stand_in("syncscan.capture.script_capture.run_script", captured)
    built.stand_in("syncscan.watching.start.run_watched", lambda *args, **kwargs: (Exit(0), SimpleNamespace(path=None)))
    built.stand_in("syncscan.watching.code_injection.process_of", lambda pid: pid)
    built.stand_in(
        "syncscan.watching.attach.attached",
        lambda *args, **how: contextlib.nullcontext(SimpleNamespace(until=answered)),
    )
    built.stand_in("syncscan.watching.watch_command._show", lambda *args: None)
    built.stand_in("syncscan.fixing.fix", lambda *args, **kwargs: FIXED)
    built.stand_in("syncscan.fixing.document.suggest", lambda analysis, fixes: analysis)
    built.stand_in("syncscan.fixing.fix_command.write_files", lambda *args: ["program.py"])
    built.stand_in("syncscan.fixing.fix_gains.prove_patch", lambda *args: PROOF)
    built.stand_in("syncscan.proof.prove.prove_commands", compared)
    built.stand_in("syncscan.proof.prove.prove", lambda *args, projected, **kwargs: replace(PROOF, projected=projected))
    return built


def command_of(command: str) -> click.Command:
    result = importlib.import_module(module_of(command)).command
    assert isinstance(result, click.Command)
    return result


def options_of(command: str) -> dict[str, click.Option]:
    return {str(p.name): p for p in command_of(command).params if isinstance(p, click.Option)}


def written(command: str, option: str, value: str = "") -> list[str]:
    """An option as a user gives it."""
    takes_value = not (options_of(command)[option].is_flag or options_of(command)[option].count)
    flag = name(command_of(command), option).partition("/")[0]
    values: dict[Any, str] = VALUES  # type: ignore[assignment]
    return [flag, value or values.get((command, option)) or values.get(option, "1")] if takes_value else [flag]


def needed(command: str, option: str) -> list[str]:
    """The options that this one means nothing without."""
    needs: tuple[Need, ...] = getattr(command_of(command).callback, "needs", ())
    own_rows = [
        need for need in needs if need.option == option and not need.never and need.other in options_of(command)
    ]
    words = [word for need in own_rows for word in written(command, need.other, need.values[-1] if need.values else "")]
    return [*words, "-o", "there.out"] if option == "force" else words


def line(command: str, words: list[str], options: list[str]) -> list[str]:
    """A command with its arguments and options."""
    return [command, *options, *words] if command in PROGRAMS else [command, *words, *options]


def refused(outcome: tuple[object, ...]) -> bool:
    """Whether a command was used wrongly."""
    return str(outcome[1]).startswith("UsageError")


QUICK = ("analyze", "diff", "lint", "annotate")
"""Commands that are tried in each run of the tests: none of them starts a process."""


@pytest.mark.parametrize(
    "command", [c if c in QUICK else pytest.param(c, marks=pytest.mark.slow) for c in all_commands()]
)
@pytest.mark.parametrize("formats", [2, pytest.param(None, marks=pytest.mark.slow)], ids=["two formats", "all"])
def test_every_option_is_heeded_in_every_format_or_refused(runs: Runs, command: str, formats: int | None) -> None:
    """With it the command does something else than without it, in one format at least where all are tried."""
    options, ignored = options_of(command), []
    for option in options:
        heeded = int(formats is not None)
        for form in forms(command, option)[:formats]:
            beside = needed(command, option)
            if option != "form" and form != options["form"].default if "form" in options else False:
                beside = ["--format", form, *beside]
            words = INSTEAD.get((command, option), ARGUMENTS.get(command, ["t.json"]))
            given = line(command, words, [*beside, *written(command, option, form if option == "form" else "")])
            usual = runs.usual(*line(command, words, beside))
            outcome = runs.outcome(*given)
            heeded += outcome != usual and not refused(outcome)
            ignored += [" ".join(given)] if outcome == usual and not refused(usual) else []
        ignored += [] if heeded else [f"{command} {option}, always"]
    assert not ignored, "\n".join(ignored)


def forms(command: str, option: str) -> list[str]:
    """The formats in which an option is tried; of a command without any the empty one."""
    form = options_of(command).get("form")
    if form is None:
        return [""]
    return [f for f in form.type.choices if option != "form" or f != form.default]  # type: ignore[attr-defined]
