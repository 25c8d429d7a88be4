"""A dry run finds uses of memory that nothing orders, and is silent where something does: pairs, wrong and right."""

from __future__ import annotations

import copy
import functools
import inspect
import io
import pickle
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import syncscan
from syncscan import habits
from syncscan.detect import PREAMBLE, RuleDoc, catalogue
from syncscan.model.finding import Finding
from syncscan.model.race import EXAMPLES, Race, RaceKind

torch = pytest.importorskip("torch")

import benchmarks.race_programs.in_arrays  # noqa: E402
import benchmarks.race_programs.in_other_forms  # noqa: E402
import benchmarks.race_programs.in_pipelines  # noqa: E402
import benchmarks.race_programs.in_training  # noqa: E402
import benchmarks.races  # noqa: E402, F401
from benchmarks.race_programs.pairs import PAIRS, Program  # noqa: E402
from tests.each import each  # noqa: E402


def races(program: Callable[[], Any]) -> list[Race]:
    """Return the races of a program."""
    with syncscan.pretend_gpu() as rec:
        program()
    return list(rec.analysis.races)


def races_in(program: Callable[[], Any]) -> list[tuple[RaceKind, str]]:
    """Return kind and function of each race of a program."""
    return [(race.kind, race.second.function) for race in races(program)]


def findings_of(program: Callable[[], Any]) -> tuple[Finding, ...]:
    """Return the syncs of a program."""
    with syncscan.pretend_gpu() as rec:
        program()
    return rec.analysis.findings


def run_code(code: str) -> None:
    """Run code as if it were this file's; one whose library isn't installed is skipped."""
    precision = torch.get_float32_matmul_precision()
    try:
        exec(compile(code, __file__, "exec"), {})
    except ModuleNotFoundError as missing:
        pytest.skip(str(missing))
    finally:
        torch.set_float32_matmul_precision(precision)


def source_lines(program: Callable[[], Any]) -> set[tuple[str, str]]:
    """Return the source of the two lines of each race of a program: of the copy, and of the use."""
    lines = Path(__file__).read_text().splitlines()
    return {(lines[race.first.line - 1].strip(), lines[race.second.line - 1].strip()) for race in races(program)}


QUICK = list({(kind, wrong.__module__): (kind, wrong, right) for kind, wrong, right in reversed(PAIRS)}.values())
"""A pair of each kind in each file of them."""
OTHERS = [pair for pair in PAIRS if pair not in QUICK]


@each(("kind", "wrong", "right"), QUICK, ids=[wrong.__name__ for _, wrong, _ in QUICK])
def test_a_race_is_found_and_its_right_form_is_none(kind: RaceKind, wrong: Program, right: Program) -> None:
    """The wrong program has races of one kind, at its own lines; the right one none."""
    assert_told_apart(kind, wrong, right)


@pytest.mark.slow
@each(("kind", "wrong", "right"), OTHERS, ids=[wrong.__name__ for _, wrong, _ in OTHERS])
def test_so_is_each_other_race(kind: RaceKind, wrong: Program, right: Program) -> None:
    """Each pair that is written down is tried."""
    assert_told_apart(kind, wrong, right)


def assert_told_apart(kind: RaceKind, wrong: Program, right: Program) -> None:
    lines, first = inspect.getsourcelines(wrong)
    seen = races(lambda: wrong(lambda: None, 3.0))
    assert {race.kind for race in seen} == {kind}
    assert all(first <= race.second.line < first + len(lines) for race in seen)
    assert races(lambda: right(lambda: None, 3.0)) == []


def test_there_are_a_hundred_and_ten_pairs() -> None:
    """Each of a wrong program and a right one that looks like it."""
    assert len(PAIRS) >= 110


def test_a_training_step_has_no_races() -> None:
    """Forward on the default stream, backward, fused optimizer, prefetch on a side stream that is ordered."""

    def train() -> None:
        model, side = torch.nn.Linear(8, 8).cuda(), torch.cuda.Stream()
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(3):
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                batch = torch.zeros(4, 8).pin_memory().to("cuda", non_blocking=True)
            torch.cuda.current_stream().wait_stream(side)
            batch.record_stream(torch.cuda.current_stream())
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()

    assert races_in(train) == []


def test_a_backward_pass_on_a_side_stream_has_no_races() -> None:
    """Autograd orders the streams of its nodes itself."""

    def train() -> None:
        model, side = torch.nn.Linear(8, 8).cuda(), torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            loss = model(torch.ones(4, 8, device="cuda")).sum()
        torch.cuda.current_stream().wait_stream(side)
        loss.backward()

    assert races_in(train) == []


def test_a_public_report_of_a_mask_on_unfinished_copies_is_found() -> None:
    """The program of pytorch 86264, small: tensors mapped to the host without waiting, masked and summed there."""

    def compute(x: Any, y: Any, w: Any) -> Any:
        counted = w > 0
        right, positive = (y >= 0.5) & counted, (x >= 0) & counted
        return sum(right & positive).numpy()

    tensors = [torch.rand(4, 5, 6) for _ in range(3)]
    wrong = lambda: compute(*(x.cuda().flatten(0, 1).to("cpu", non_blocking=True) for x in tensors))  # noqa: E731
    right = lambda: compute(*(x.cuda().flatten(0, 1).cpu() for x in tensors))  # noqa: E731
    copied, used = "wrong = lambda: compute(*(x.cuda()", ("counted = w > 0", "right, positive = (y >= 0.5)")
    assert {kind for kind, _ in races_in(wrong)} == {RaceKind.READ_BEFORE_COPY}
    assert all(first.startswith(copied) and second.startswith(used) for first, second in source_lines(wrong))
    assert races_in(right) == []


def test_a_public_report_of_a_source_written_while_copied_is_found() -> None:
    """The example in pytorch 127612: the last element of pinned memory is filled while it is copied to the device."""

    def program(wait: bool) -> None:
        a, b = torch.ones(1000, pin_memory=True), torch.zeros(1000, device="cuda")
        b.copy_(a, non_blocking=True)
        if wait:
            torch.cuda.synchronize()
        a[-1].fill_(-1)

    assert [kind for kind, _ in races_in(lambda: program(wait=False))] == [RaceKind.WRITE_BEFORE_COPY]
    assert source_lines(lambda: program(wait=False)) == {("b.copy_(a, non_blocking=True)", "a[-1].fill_(-1)")}
    assert races_in(lambda: program(wait=True)) == []


def test_a_public_report_of_waits_that_a_compiler_dropped_is_found() -> None:
    """The program of pytorch 174695, small: right as it stands, a race without its waits, as compiled."""

    def program(wait: bool) -> None:
        on_host, copied = [], []
        for x in [torch.rand(8, device="cuda") for _ in range(3)]:
            on_host.append(x.to("cpu", non_blocking=True))
            copied.append(torch.Event())
            copied[-1].record()
        for event in copied if wait else ():
            event.synchronize()
        torch.cat(on_host)

    copied = 'on_host.append(x.to("cpu", non_blocking=True))'
    assert [kind for kind, _ in races_in(lambda: program(wait=False))] == [RaceKind.READ_BEFORE_COPY]
    assert source_lines(lambda: program(wait=False)) == {(copied, "torch.cat(on_host)")}
    assert races_in(lambda: program(wait=True)) == []


def test_a_loop_with_a_pinning_loader_autocast_and_a_fused_optimizer_has_no_races(tmp_path: Path) -> None:
    """Right as it is: the loader pins each batch anew, the optimizer works on the current stream, `.item()` waits."""

    def train() -> None:
        data = torch.utils.data.TensorDataset(torch.rand(12, 8), torch.rand(12, 1))
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1)).cuda()
        optimizer, scaler = torch.optim.AdamW(model.parameters(), fused=True), torch.amp.GradScaler("cuda")
        for _ in range(2):
            for x, y in torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True):
                x, y = x.to("cuda", non_blocking=True), y.to("cuda", non_blocking=True)
                with torch.autocast("cuda"):
                    loss = (model(x) - y).square().mean()
                optimizer.zero_grad()
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
            loss.item()
            torch.save(model.state_dict(), tmp_path / "model.pt")

    assert races_in(train) == []


def test_arrays_of_pinned_memory_are_arrays_like_any_other() -> None:
    """Printed, pickled, collated and computed with, they are numpy's; results of a computation are plain."""
    with syncscan.pretend_gpu():
        array = torch.arange(4.0).pin_memory().numpy()
        array += 1
        array[0] = 7
        assert repr(array) == "array([7., 2., 3., 4.], dtype=float32)"
        assert type(pickle.loads(pickle.dumps(array))) is np.ndarray
        assert type(array * 2) is type(np.concatenate([array, array])) is type(array[[0, 1]]) is np.ndarray
        assert [float(x) for x in array] == [7, 2, 3, 4]
        assert array.sum() == np.sum(array) == array.mean() * 4 == 16
        assert (np.sort(array)[0], array.copy().max()) == (2, 7)
        assert torch.utils.data.default_collate([array, array]).tolist() == [[7, 2, 3, 4]] * 2
        assert torch.from_numpy(array[1:]).is_pinned()
        assert torch.as_tensor(array[::2]).tolist() == [7, 3]
        assert torch.tensor(array).tolist() == [7, 2, 3, 4]


def copied() -> Any:
    return torch.arange(4.0, device="cuda").to("cpu", non_blocking=True)


READS: dict[str, Callable[[Any], object]] = {
    "of its storage": lambda host: host.untyped_storage()[0],
    "of its storage as a list": lambda host: host.untyped_storage().tolist(),
    "saved": lambda host: torch.save(host, io.BytesIO()),
    "pickled": lambda host: pickle.dumps({"host": host}),
    "copied deeply": lambda host: copy.deepcopy([host]),
    "shown": lambda host: repr([host]),
    "formatted": lambda host: f"{host[0]:.1f}",
    "copied by numpy": lambda host: np.array(host.numpy()),
    "made contiguous by numpy": lambda host: np.ascontiguousarray(host.numpy()[::2]),
    "contiguous already": lambda host: np.ascontiguousarray(host.numpy()).sum(),
    "saved by numpy": lambda host: np.save(io.BytesIO(), host),
    "saved by its name": lambda host: np.savez(io.BytesIO(), host=host),
    "given to numpy": lambda host: np.from_dlpack(host).sum(),
    "given to torch": lambda host: torch.from_dlpack(host).sum(),
}


@each("name", READS)
def test_each_way_to_read_a_host_tensor_is_a_race(name: str) -> None:
    """Before its copy is done, at the line that reads."""
    assert {kind for kind, _ in races_in(lambda: READS[name](copied()))} == {RaceKind.READ_BEFORE_COPY}


NO_READS: dict[str, Callable[[Any], object]] = {
    "copied as a shell": lambda host: copy.copy(host),
    "its array as it is": lambda host: np.ascontiguousarray(host.numpy()),
    "its array taken": lambda host: np.array(host.numpy(), copy=False),
    "shared with torch": lambda host: torch.from_dlpack(host),
    "a parameter of it": lambda host: torch.nn.Parameter(host),
    "its address": lambda host: host.data_ptr(),
}


@pytest.mark.parametrize("name", NO_READS)
def test_what_reads_no_value_of_a_host_tensor_is_no_race(name: str) -> None:
    assert races_in(lambda: NO_READS[name](copied())) == []


def test_a_shell_of_a_tensor_shares_its_memory() -> None:
    """A result of `copy.copy` is read as the tensor itself, and has its attributes."""

    def program() -> None:
        host = copied()
        host.label = "loss"
        shell = copy.copy(host)
        assert (shell.label, shell.data_ptr(), type(copy.copy(torch.nn.Parameter(shell)))) == (
            "loss",
            host.data_ptr(),
            torch.nn.Parameter,
        )
        shell.sum()

    assert [kind for kind, _ in races_in(program)] == [RaceKind.READ_BEFORE_COPY]


@pytest.mark.parametrize("of_stream", [False, True])
def test_a_query_orders_what_comes_after_it_only_if_its_answer_is_looked_at(of_stream: bool) -> None:
    """A statement `event.query()` drops it: the copy may still run."""

    def program(looks: bool) -> None:
        host, event = copied(), torch.cuda.Event()
        event.record()
        awaited = torch.cuda.current_stream() if of_stream else event
        if looks:
            while not awaited.query():
                pass
        else:
            awaited.query()
        host.sum()

    assert races_in(lambda: program(looks=True)) == []
    assert [kind for kind, _ in races_in(lambda: program(looks=False))] == [RaceKind.READ_BEFORE_COPY]


def test_a_promised_size_that_is_wrong_fails_with_what_a_gpu_does() -> None:
    """A CPU raises at the call; the sentence says that a GPU raises later."""
    with syncscan.pretend_gpu():
        x, repeats = torch.arange(3, device="cuda"), torch.tensor([1, 2, 3], device="cuda")
        assert len(torch.repeat_interleave(x, repeats, output_size=6)) == 6
        with pytest.raises(RuntimeError, match="device-side assert"):
            torch.repeat_interleave(x, repeats, output_size=5)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_examples_in_rules_race_and_their_right_forms_do_not(kind: RaceKind) -> None:
    wrong, right = EXAMPLES[kind]

    def run(code: str) -> None:
        pinned = torch.ones(4, pin_memory=True)
        names = {"torch": torch, "values": torch.ones(4, device="cuda"), "pinned": pinned, "following": torch.zeros(4)}
        exec(compile(code, __file__, "exec"), names)

    assert {match for match, _ in races_in(lambda: run(wrong))} == {kind}
    assert races_in(lambda: run(right)) == []


ADVISED = [
    (preamble, doc)
    for preamble, docs in ((PREAMBLE, catalogue()), (habits.PREAMBLE, habits.catalogue()))
    for doc in docs
    if not re.search(r"^Not run: \S", doc.sections["Use instead"], re.MULTILINE)
]


ORDERED = re.compile(r"non_blocking|pin_memory|stream|graph|event", re.IGNORECASE)
"""Words that a program has to contain before it can have a race."""


def can_have_none(case: tuple[str, RuleDoc]) -> bool:
    """Return whether all that a page advises runs in order."""
    return not ORDERED.search(case[1].code("Use instead"))


@each(("preamble", "doc"), ADVISED, [doc.id for _, doc in ADVISED], can_have_none)
def test_what_rules_and_habits_advise_has_no_race(preamble: str, doc: RuleDoc) -> None:
    """Each page's `Use instead` runs dry."""
    assert races_in(functools.partial(run_code, preamble + doc.code("Use instead"))) == []


SYNCHRONIZED = [(preamble, doc) for preamble, doc in ADVISED if "synchronize()" in doc.code("Example")]


@pytest.mark.parametrize(("preamble", "doc"), SYNCHRONIZED, ids=[doc.id for _, doc in SYNCHRONIZED])
def test_to_remove_what_a_page_s_example_is_advised_to_remove_adds_no_race(preamble: str, doc: RuleDoc) -> None:
    """Each `synchronize()` of an example whose finding says "Remove it"."""
    code = preamble + doc.code("Example")
    lines, kinds = code.splitlines(), Counter(kind for kind, _ in races_in(functools.partial(run_code, code)))
    for finding in findings_of(functools.partial(run_code, code)):
        source = finding.source
        at = source.line - 1 if source and source.file == __file__ else None
        if at is not None and finding.fix.startswith("Remove it") and "synchronize()" in lines[at]:
            without = "\n".join([*lines[:at], emptied(lines[at]), *lines[at + 1 :]])
            assert Counter(kind for kind, _ in races_in(functools.partial(run_code, without))) <= kinds, lines[at]


def test_there_is_such_advice() -> None:
    """In rules of syncs and in habits."""
    assert {doc.of_habit for _, doc in ADVISED} == {True, False}
    assert len(ADVISED) >= 70


def test_a_race_is_placed_at_both_lines() -> None:
    with syncscan.pretend_gpu() as rec:
        host = torch.ones(4, device="cuda").to("cpu", non_blocking=True)
        host.sum()
        host.sum()
    first, second = sorted(rec.analysis.races, key=lambda race: race.second.line)
    assert first.first == second.first
    assert (first.second.line - first.first.line, second.second.line - first.first.line) == (1, 2)  # type: ignore[union-attr]
    assert first.id != second.id


def emptied(line: str) -> str:
    """Return a line that does nothing, as far indented."""
    return re.match(r"\s*", line)[0] + "pass"  # type: ignore[index]


def without_line(program: Callable[..., Any], line: int) -> Callable[..., Any]:
    """Return a function of a file as it is where one of its lines does nothing."""
    path = Path(inspect.getsourcefile(program) or "")
    lines = path.read_text().splitlines()
    lines[line - 1] = emptied(lines[line - 1])
    names: dict[str, Any] = {"__name__": program.__module__, "__file__": str(path)}
    pairs = list(PAIRS)
    exec(compile("\n".join(lines), str(path), "exec"), names)
    PAIRS[:] = pairs  # the file lists its programs once more
    changed: Callable[..., Any] = names[program.__name__]
    return changed


def left_to_slow(program: Program) -> bool:
    """Return whether a program has no `synchronize()` in its own lines, though it may call one, or is one of many."""
    return "synchronize()" not in inspect.getsource(program) or all(program is not right for _, _, right in QUICK)


@each("right", [right for _, _, right in PAIRS], lambda right: right.__name__, left_to_slow)
def test_to_take_the_advice_on_a_synchronize_adds_no_race(right: Program) -> None:
    """Where it protects a use of memory, the advice is another: to keep a wait, for the copy alone."""
    with syncscan.pretend_gpu() as rec:
        right(lambda: None, 3.0)
    text = Path(inspect.getsourcefile(right) or "").read_text().splitlines()
    for finding in rec.analysis.findings:
        source = finding.source
        advised = finding.fix.startswith("Remove it") and source is not None
        if advised and source is not None and "synchronize()" in text[source.line - 1]:
            changed = without_line(right, source.line)
            assert races(functools.partial(changed, lambda: None, 3.0)) == [], source


def test_what_protects_a_read_says_so() -> None:
    """With the lines of the read and of the copy, and the event that is enough."""
    with syncscan.pretend_gpu() as rec:
        x, host = torch.ones(4, device="cuda"), torch.empty(4, pin_memory=True)
        host.copy_(x, non_blocking=True)
        torch.cuda.current_stream().synchronize()
        host.sum()
    first = inspect.getsourcelines(test_what_protects_a_read_says_so)[1]
    fixes = {f.source.line - first: f.fix for f in rec.analysis.findings if f.source}
    assert f"the read in line {first + 6} of what line {first + 4} copies" in fixes[5]
    assert "an event that is recorded right behind the copy" in fixes[5]
