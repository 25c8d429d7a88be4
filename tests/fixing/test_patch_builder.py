"""A program's patch lists changes that are applied, changes that are tried and dropped, and waits that are left."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import syncscan
from syncscan.errors import ProgramFailed, UsageError
from syncscan.fixing import report as fix_report
from syncscan.fixing.messages import ProgramJob, RunResult
from syncscan.fixing.patch_builder import Options, PatchBuilder
from syncscan.fixing.runs import Runs
from syncscan.model.fix import Fix, Fixed, FixGain, Safety

HEAD = 'import torch\nlosses = torch.rand(8, device="cuda").unbind()\n'
SUM = HEAD + "total = 0.0\nfor loss in losses:\n    total += loss.item()\nprint(total)\n"


@pytest.fixture(autouse=True)
def one_server(runs: Runs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All programs run in the process that has imported torch already."""

    @contextlib.contextmanager
    def shared(limit_s: float) -> Iterator[Runs]:
        yield runs

    monkeypatch.setattr("syncscan.fixing.patch_builder.Runs", shared)
    monkeypatch.chdir(tmp_path)


def fixed(source: str, target: str = "train.py", **options: object) -> Fixed:
    Path("train.py").write_text(source)
    return syncscan.fix(target, **options)  # type: ignore[arg-type]


def at(result: Fixed, line: int) -> Fix:
    return next(fix for fix in result.fixes if fix.line == line)


def test_a_read_that_can_wait_is_fixed_and_one_that_steers_is_left() -> None:
    """The file on disk stays as it is; the patch is verified."""
    source = HEAD + (
        "total = 0.0\nfor loss in losses:\n    total += loss.item()\n"
        "    if (loss * 2).item() > 4:\n        break\nprint(total)\n"
    )
    result = fixed(source)
    sums, steers = at(result, 5), at(result, 6)
    assert (sums.applied, sums.verified, sums.safety, sums.rewrite) == (True, True, Safety.SAFE, "deferred-read")
    assert (steers.safety, steers.why) == (Safety.MANUAL, "its value controls what runs next")
    assert result.files[0].after == source.replace("total += loss.item()", "total += loss.double()").replace(
        "break\n", "break\ntotal = float(total)\n"
    )
    assert Path("train.py").read_text() == source
    assert result.waits_after == result.waits_before - 7


def test_a_number_that_only_a_tensor_takes_is_never_read() -> None:
    """So its change doesn't speak of a read after the loop."""
    tensor = HEAD + "x = losses[0]\nfor loss in losses:\n    x = x + loss.item()\nprint(x.item())\n"
    assert at(fixed(tensor), 5).change == "keep the value on the device"
    assert at(fixed(SUM), 5).change == "keep the value on the device and read it after the loop"


def test_a_line_after_the_loop_may_wait_itself() -> None:
    """The line that reads the sum stands before it, and is no wait of its own."""
    source = SUM.replace("print(total)", "print(total, losses[0].item())")
    result = fixed(source)
    assert at(result, 5).applied
    assert "total = float(total)\nprint(total, losses[0].item())\n" in result.files[0].after


def test_what_is_read_behind_a_loop_is_verified_in_a_shorter_run() -> None:
    """The loop ends after the steps that were asked for, and the line behind it runs."""
    source = (
        'import torch\nw = torch.ones(3, device="cuda", requires_grad=True)\nopt = torch.optim.SGD([w], lr=0.1)\n'
        "total = 0.0\nfor step in range(10**9):\n    loss = w.sum()\n    loss.backward()\n    opt.step()\n"
        "    total += loss.item()\nprint(total)\n"
    )
    result = fixed(source, steps=6)
    assert at(result, 9).verified
    assert "total = float(total)\nprint(total)\n" in result.files[0].after


def test_a_program_that_fails_when_its_loops_end_early_is_stopped_at_once() -> None:
    """Here it counts on all of its steps."""
    source = (
        'import torch\nw = torch.ones(3, device="cuda", requires_grad=True)\nopt = torch.optim.SGD([w], lr=0.1)\n'
        "n = 0\nfor step in range(10**9):\n    w.sum().backward()\n    opt.step()\n"
        '    y = torch.tensor([n], device="cuda")\n    n += 1\nassert n == 10**9\n'
    )
    result = fixed(source, steps=6)
    assert at(result, 8).applied
    assert result.notes == ()


def test_a_change_that_is_seen_in_the_output_is_dropped() -> None:
    """Here through a way to the number that no analysis of the file follows."""
    source = SUM.replace("import torch\n", "import torch, __main__\n").replace(
        "    total += loss.item()\n", "    total += loss.item()\n    print(__main__.total)\n"
    )
    result = fixed(source)
    assert result.files == ()
    assert at(result, 5).how.startswith('tried and dropped: the patched program prints "tensor(')


def test_a_change_that_lets_the_program_race_is_dropped() -> None:
    """The read that would go is what the host waited with for a copy before it, which a dry run's values don't show."""
    source = """\
import torch

x, total, means = torch.ones(8, device="cuda"), 0.0, []
for step in range(4):
    loss = (x * step).mean()
    host = x.to("cpu", non_blocking=True)
    total += loss.item()
    means.append(host.mean())
print(total, len(means))
"""
    result = fixed(source)
    assert at(result, 7).how.startswith("tried and dropped: the patched program races: the host reads memory")
    assert result.files == ()


def test_lines_that_did_not_run_keep_a_fix_from_being_verified() -> None:
    """It is applied only where that is wanted."""
    source = HEAD + (
        "def run():\n    total = 0.0\n    for step, loss in enumerate(losses):\n        total += loss.item()\n"
        "        if step == 99:\n            return total\n    return total\nprint(run())\n"
    )
    left = fixed(source)
    assert (left.files, at(left, 6).how) == ((), "not verified: `total = float(total)` didn't run")
    forced = fixed(source, unverified=True)
    assert (len(forced.files), at(forced, 6).verified) == (1, False)


def test_rules_are_selected_and_ignored() -> None:
    """By id or glob."""
    assert fixed(SUM, ignore=["item"]).files == ()
    assert fixed(SUM, select=["nonz*"]).files == ()
    assert len(fixed(SUM, select=["it*"]).files) == 1


def test_unsafe_fixes_are_made_on_request() -> None:
    """The report says what else they change."""
    source = HEAD + (
        "from torch.distributions import Normal\nfor loss in losses:\n    p = Normal(loss, 1.0)\nprint(p.mean.item())\n"
    )
    safe = fixed(source)
    assert (safe.files, at(safe, 5).safety, at(safe, 5).why[:30]) == (
        (),
        Safety.MANUAL,
        "with --unsafe: turn off the ar",
    )
    fix = at(fixed(source, unsafe=True), 5)
    assert (fix.safety, fix.applied, fix.why) == (Safety.UNSAFE, True, "an invalid argument raises later, or never")


def test_what_gains_nothing_is_not_tried() -> None:
    """By the recording."""
    Path("train.py").write_text(SUM)
    gains = {(str(Path("train.py").absolute()), 5): FixGain(0.0, 0.0, 0.0, 0.0)}
    left = PatchBuilder("train.py", [], Options(gains=gains)).run()
    assert (left.files, at(left, 5).gains_nothing) == ((), True)


def test_a_function_is_fixed_without_a_script() -> None:
    """It is called a few times; what its module binds may be used from elsewhere."""
    source = (
        HEAD + "def step():\n    total = 0.0\n    for loss in losses:\n        total += loss.item()\n    return total\n"
    )
    result = fixed(source, "train.py:step")
    assert "total = float(total)" in result.files[0].after
    assert result.program == "train.py:step"


def test_arguments_reach_the_program() -> None:
    """And are quoted in its name."""
    result = fixed(SUM + "import sys\nassert sys.argv[1] == 'a b'\n", arguments=["a b"])
    assert (result.program, len(result.files)) == ("train.py 'a b'", 1)


def test_imported_files_are_fixed_too() -> None:
    """Names of a module's own are read back, as other files may import them."""
    Path("parts.py").write_text(SUM.replace("print(total)\n", ""))
    result = fixed("import parts\nprint(parts.total)\n")
    assert [file.file for file in result.files] == ["parts.py"]
    assert result.files[0].after.endswith("total = float(total)\n")


def test_a_sum_needs_double_precision_on_each_device() -> None:
    """Apple's has none, whichever file of the program names it."""
    Path("parts.py").write_text('DEVICE = "mps" if False else "cuda"\n')
    result = fixed("from parts import DEVICE\n" + SUM)
    assert at(result, 6).why == "its value would need double precision, which Apple's devices don't have"
    assert not result.files


def test_what_a_public_function_of_an_imported_file_returns_stays_a_number() -> None:
    """Other files may call it."""
    step = "def step(loss):\n    return loss.item()\n"
    step += "def run():\n    total = 0.0\n    for loss in losses:\n        total += step(loss)\n    return total\n"
    Path("parts.py").write_text(HEAD + step)
    result = fixed("import parts\nprint(parts.run())\n")
    assert "which has unknown callers" in at(result, 4).why


def test_a_program_that_fails_is_refused() -> None:
    """With its exception, the first line of the message, and its own line; else with its exit code and last words."""
    with pytest.raises(ProgramFailed, match=r"train.py can't be run dry: ValueError: no data \(train.py:3\)\.$"):
        fixed("import ast\ndef load(n):\n    raise ValueError('no data\\nSee https://example.org')\nload(1)\n")
    with pytest.raises(ProgramFailed, match=r"dry: ValueError: malformed node .* \(train.py:2\)\.$"):
        fixed("import ast\nast.literal_eval('f()')\n")
    with pytest.raises(ProgramFailed, match=r"dry: it ends with exit code 3: no data\.$"):
        fixed("import sys\nprint('no data', file=sys.stderr)\nsys.exit(3)\n")


def test_a_program_that_fails_after_its_waits_is_not_judged() -> None:
    """Its waits are listed, and nothing is called fixed."""
    result = fixed(SUM + "raise SystemExit('no data')\n")
    assert result.unjudged == "the program fails: SystemExit: no data (train.py:7)"
    assert (result.files, at(result, 5).how) == ((), f"not verified: {result.unjudged}")
    assert fix_report.verdict(result).startswith(f"train.py: could not be judged, since {result.unjudged}. ")


def test_a_program_without_a_result_is_not_judged() -> None:
    """Its change is applied only where that is wanted, and what differs from run to run is named."""
    source = SUM.replace("print(total)", "import threading\nprint('ended', threading.get_native_id())")
    result = fixed(source)
    why = "nothing that it computes could be compared: what it prints or writes differs from run to run"
    assert (result.files, result.unjudged, at(result, 5).how) == ((), why, f"not verified: {why}")
    assert [noise[:31] for noise in result.not_compared] == ["1 printed line, such as 'ended "]
    assert fixed(source, unverified=True).files


def test_a_file_that_the_program_writes_is_compared() -> None:
    """It is a result though nothing is printed, and it isn't left behind."""
    source = HEAD + (
        "import json\nscores = []\nfor loss in losses:\n    now = loss * 2\n    scores.append(now.item())\n"
        "with open('scores.json', 'w') as file:\n    json.dump(scores, file)\n"
    )
    result = fixed(source)
    assert (len(result.files), result.not_compared, result.unjudged) == (1, (), "")
    assert not Path("scores.json").exists()


def test_waits_outside_of_the_steps_are_counted_apart() -> None:
    """A model that moves once, and a checkpoint in each epoch."""
    source = (
        "import io, torch\nnet = torch.nn.Linear(2, 2).to('cuda')\n"
        "for step in range(9):\n    print(net.weight.sum().item())\n"
        "    if step % 3 == 0:\n        torch.save(net.state_dict(), io.BytesIO())\n"
    )
    result = fixed(source)
    assert result.waits_before - result.waits_apart == 9
    assert "The host waits 9 times in the dry run, apart from" in fix_report.verdict(result)


def test_what_prepares_several_data_sets_is_set_up() -> None:
    """Its copies run once for each, before the steps; in a loop they would be part of them."""
    source = HEAD + "def sent(n):\n    return torch.rand(n).to('cuda')\n"
    once = "print(sum(loss.item() for loss in losses), (sent(2) + sent(2)).sum().item(), sent(3).sum().item())\n"
    assert not [fix for fix in fixed(source + once).fixes if fix.line == 4]
    assert at(fixed(source + "for k in range(4):\n    print(sent(3).sum().item())\n"), 4).applied


def test_a_program_that_is_too_slow_when_observed_is_said_to_be(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last line on stderr, such as a progress bar's, wouldn't tell."""
    run = runs.run

    def late(job: ProgramJob, **options: bool) -> RunResult:
        failure = "it didn't end within 120 s"
        return RunResult(code=-1, failure=failure, errors="0%| | 0/5") if job.probed else run(job, **options)

    monkeypatch.setattr(runs, "run", late)
    assert fixed(SUM).unjudged == "the program fails when its expressions are observed: it didn't end within 120 s"


def test_a_missing_program_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"missing.py doesn't exist"):
        syncscan.fix("missing.py")


def test_a_program_without_waits_needs_no_patch() -> None:
    result = fixed("print(1)\n")
    assert (result.fixes, result.files, result.waits_before) == ((), (), 0)


def test_moving_a_model_once_is_not_left_to_the_author() -> None:
    """A place that no rewrite handles is listed if it waits again and again."""
    source = (
        "import torch\nnet = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))\nnet = net.to('cuda')\n"
        "for step in range(4):\n    print(net[0].weight.cpu().shape)\n"
    )
    assert [fix.line for fix in fixed(source).fixes] == [5]


def test_each_change_imports_what_it_needs() -> None:
    """A reader of SARIF, or of a report, applies one alone."""
    result = fixed(
        "from torch import rand\ny = rand(4, 6, device='cuda')\nfor _ in range(5):\n    z = y[:, [0, 2]]\nprint(z)"
    )
    (first, second) = at(result, 4).changes
    assert (first.line, first.column, first.text) == (1, 1, "import torch\n")
    assert second.text.startswith("torch.tensor([0, 2])")


def test_code_that_ran_is_not_said_not_to_have() -> None:
    """A number stays where its name may hold a tensor instead, and the reason says so."""
    source = HEAD + (
        "result = []\nfor step, loss in enumerate(losses):\n    value = loss.item()\n    if step == 5:\n"
        "        value = loss\n    result.append(value * 4)\nprint(result)\n"
    )
    assert at(fixed(source), 5).why.startswith("its value goes through code that other calls give a tensor (line ")


def test_a_large_copy_from_pageable_memory_counts_as_a_wait() -> None:
    """The report says that pinned memory is missing; a small copy is staged by the driver."""
    copies = "import torch\nfor k in range(4):\n    y = (torch.ones({}) * k).to('cuda')\n    print(y.sum().item())\n"
    large, small = fixed(copies.format(1 << 17)), fixed(copies.format(8))
    assert [fix.change for fix in large.applied] == [
        "copy with non_blocking=True, which helps once the pageable memory is pinned"
    ]
    assert large.waits_after == large.waits_before
    assert any("pin the memory" in note for note in large.notes)
    assert small.waits_after == small.waits_before - 4
    assert not small.notes
    assert "pin the memory" in at(fixed(copies.format(1 << 20)), 3).why
