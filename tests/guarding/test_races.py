"""A guard sees what the host does with memory that a copy may still use: on a simulated device, with real values."""

from __future__ import annotations

import copy
import inspect
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import syncscan
from syncscan.capture import device
from syncscan.dryrun.tensor_memory import DEVICE, place_of
from syncscan.guarding import dispatch
from syncscan.guarding.copy_order import CopyOrder
from syncscan.model.race import RaceKind

torch = pytest.importorskip("torch")

import benchmarks.race_programs.in_arrays  # noqa: E402
import benchmarks.race_programs.in_other_forms  # noqa: E402
import benchmarks.race_programs.in_pipelines  # noqa: E402
import benchmarks.race_programs.in_training  # noqa: E402
import benchmarks.races  # noqa: E402, F401
from benchmarks.race_programs.pairs import PAIRS, READ, WRITE, Program  # noqa: E402
from syncscan.guarding import debts  # noqa: E402

UNSEEN = {
    "array_made_before_the_copy",
    "row_of_an_array_that_a_copy_fills",
    "array_filled_at_once",
    "array_counted_up_at_once",
    "slots_of_a_ring_without_their_events",
    "tensor_of_the_array",
    "module_used_at_once",
    "block_read_on_the_host_while_swapped_out",
}
"""Programs whose array or view was made before the copy, or made a tensor again, or whose parameter was copied: no
watched tensor is between them and memory."""
IN_GRAPHS = {"copy_within_a_graph", "target_of_a_graph_read"}
"""Programs that a guard sees nothing of on a device, as replays open no debts; a dry run's capture runs the copies."""


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A simulated device that a guard takes for a real one, and whose waits it hears of."""
    with syncscan.pretend_gpu() as rec:
        monkeypatch.setattr(device, "vendor", lambda: "cuda")
        monkeypatch.setattr(torch._C, "_cuda_getDevice", lambda: 0, raising=False)
        monkeypatch.setattr(torch._C, "_cuda_getCurrentStream", current_stream, raising=False)
        monkeypatch.setattr(debts, "on_device", lambda tensor: place_of(tensor) == DEVICE)
        session = rec._pretence.session
        assert session is not None
        session.on_wait = tell
        for name in (
            "__repr__",
            "__deepcopy__",
            "__array__",
        ):  # a dry run sets its own, which don't ask the class as torch's do
            monkeypatch.setattr(torch.Tensor, name, asking(getattr(torch.Tensor, name), name))
        yield


def asking(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    def called(tensor: Any, *arguments: Any, **options: Any) -> Any:
        if type(tensor) is debts.Owed:
            return debts.Owed.__torch_function__(called, (), (tensor, *arguments), options)
        return method(tensor, *arguments, **options)

    called.__name__ = name
    return called


def current_stream(index: int) -> tuple[int, int, int]:
    stream = torch.cuda.current_stream()
    return stream.stream_id, stream.device_index, stream.device_type


def tell(met: Any) -> None:
    """Pass a wait of the simulated device on, as torch's debug mode and the entry points do."""
    dispatch.tell("device" if "cudaDeviceSynchronize" in met.wait.calls else "stream", sys._getframe())


def races_in(program: Callable[[], Any]) -> list[syncscan.GuardedRace]:
    with syncscan.guard(10**9, on_violation=lambda race: None, threads="all") as guard:
        program()
    return guard.races


HOST_PAIRS = [(k, w, r) for k, w, r in PAIRS if k in (READ, WRITE) and w.__name__ not in IN_GRAPHS]


@pytest.mark.parametrize(("kind", "wrong", "right"), HOST_PAIRS, ids=[wrong.__name__ for _, wrong, _ in HOST_PAIRS])
def test_a_race_is_seen_and_its_right_form_is_none(gpu: None, kind: RaceKind, wrong: Program, right: Program) -> None:
    """Races of host and copies are at the program's own lines, and the right form has none."""
    seen = races_in(lambda: wrong(lambda: None, 3.0))
    assert {race.kind for race in seen} == (set() if wrong.__name__ in UNSEEN else {kind})
    lines, first = inspect.getsourcelines(wrong)
    for race in seen:
        assert any(file == inspect.getfile(wrong) and 0 <= line - first < len(lines) for file, line, _ in race.chain)
    assert races_in(lambda: right(lambda: None, 3.0)) == []


STREAM_PAIRS = [program for kind, wrong, right in PAIRS if kind not in (READ, WRITE) for program in (wrong, right)]


@pytest.mark.parametrize("program", STREAM_PAIRS, ids=[program.__name__ for program in STREAM_PAIRS])
def test_streams_that_race_are_no_races_of_the_host(gpu: None, program: Program) -> None:
    assert races_in(lambda: program(lambda: None, 3.0)) == []


def copied() -> Any:
    return torch.arange(4.0, device="cuda").to("cpu", non_blocking=True)


READS: dict[str, Callable[[Any], object]] = {
    "item": lambda host: host[0].item(),
    "float": lambda host: float(host[1]),
    "tolist": lambda host: host.tolist(),
    "mean": lambda host: host.mean(),
    "view": lambda host: host.view(2, 2)[1].sum(),
    "numpy": lambda host: host.numpy().sum(),
    "print": lambda host: str(host),
    "format": lambda host: f"{host.sum():.1f}",
    "pickle": lambda host: pickle.dumps(host),
    "deepcopy": lambda host: copy.deepcopy(host),
    "stack": lambda host: torch.stack([host, host]),
    "collate": lambda host: torch.utils.data.default_collate([host, torch.ones(4)]),
    "if": lambda host: bool(host[0] > 2),
    "iteration": lambda host: [value.item() for value in host],
    "clone": lambda host: host.clone(),
    "add to": lambda host: torch.zeros(4).add_(host),
}


@pytest.mark.parametrize("name", READS)
def test_each_way_to_read_is_a_race_before_the_copy_is_awaited(gpu: None, name: str) -> None:
    """And none afterwards."""
    read = READS[name]

    def too_early() -> None:
        read(copied())

    def in_time() -> None:
        host = copied()
        torch.cuda.current_stream().synchronize()
        read(host)

    assert {(race.kind, race.file, race.first.function) for race in races_in(too_early)} == {(READ, __file__, "copied")}
    assert races_in(in_time) == []


ABOUT: dict[str, Callable[[Any], object]] = {
    "shape": lambda host: (host.shape, host.size(), host.dim(), len(host), host.dtype, host.device, host.is_cpu),
    "view": lambda host: host.view(2, 2)[0],
    "array": lambda host: host.numpy()[1:],
    "pinned": lambda host: host.is_pinned(),
    "to the device": lambda host: torch.zeros(4, device="cuda").copy_(host, non_blocking=True),
    "copied again": lambda host: host.copy_(torch.ones(4, device="cuda"), non_blocking=True),
    "in a list": lambda host: len([host, host]),
    "is": lambda host: isinstance(host, torch.Tensor),
    "copied as a shell": lambda host: copy.copy(host),
}


@pytest.mark.parametrize("name", ABOUT)
def test_what_reads_no_value_is_no_race(gpu: None, name: str) -> None:
    assert races_in(lambda: ABOUT[name](copied())) == []


def seen_on_a_host(use: Callable[[Any], object]) -> list[RaceKind]:
    """Return the races of a use of a tensor whose copy is pending, on torch's own tensors, without a dry run."""
    seen: list[RaceKind] = []
    owing = debts.Debts(CopyOrder(), lambda device: (0, device, 1), lambda kind, debt, frame: seen.append(kind))
    end = owing.begin()
    try:
        host = torch.arange(4.0)
        owing.copied(READ, host, 0, sys._getframe())
        use(host)
    finally:
        end()
    return seen


@pytest.mark.parametrize("show", [repr, str, "{}".format, lambda host: f"{host[0]:.1f}"])
def test_to_print_is_a_read_though_torch_turns_its_modes_off_for_it(show: Callable[[Any], str]) -> None:
    """`_tensor_str` runs its ops where no mode sees them."""
    assert seen_on_a_host(show) == [READ]


def test_a_shell_of_a_tensor_reads_nothing_and_is_watched() -> None:
    """`copy.copy` makes a tensor of the same memory."""
    assert seen_on_a_host(copy.copy) == []
    assert seen_on_a_host(lambda host: copy.copy(host).sum()) == [READ]


def test_a_race_is_reported_with_both_lines_and_what_to_do(gpu: None) -> None:
    """As a warning at the line that reads, once."""
    with warnings.catch_warnings(record=True) as shown, syncscan.guard(10**9):
        warnings.simplefilter("always")
        host = copied()
        host.sum()
        host.sum()
    warning = shown[-1]
    assert (len(shown), warning.category, warning.filename) == (1, syncscan.RaceWarning, __file__)
    assert "reads memory that a copy in" in str(warning.message)
    assert "event.record()" in str(warning.message)


def test_a_race_can_raise(gpu: None) -> None:
    """The wait is at the line that reads; the tensor is as any other afterwards."""
    with syncscan.guard(10**9, on_violation="raise"), pytest.raises(syncscan.UnorderedUse) as caught:
        copied().tolist()
    assert caught.value.race.kind == READ
    assert "event.synchronize()" in (caught.value.hint or "")


def test_a_race_can_be_allowed(gpu: None) -> None:
    with syncscan.guard(10**9, on_violation="raise") as guard:
        with syncscan.allow("an old number will do"):
            copied().sum()
        copied().sum()  # syncscan: allow[read-before-copy] so will this one
    assert (guard.race_count, dict(guard.by_reason)) == (0, {"an old number will do": 1, "so will this one": 1})


def test_races_are_exported(gpu: None) -> None:
    with syncscan.guard(10**9, on_violation=lambda race: None) as guard:
        copied().sum()
    assert 'syncscan_races_total{guard="guard"} 1' in guard.prometheus()


def test_a_guard_that_asks_for_no_races_sees_none(gpu: None) -> None:
    with syncscan.guard(10**9, on_violation="raise", watch_races=False):
        copied().sum()


def test_a_guard_that_asks_within_one_that_does_not_sees_its_own(gpu: None) -> None:
    with (
        syncscan.guard(10**9, watch_races=False) as outer,
        syncscan.guard(10**9, on_violation=lambda race: None) as inner,
    ):
        copied().sum()
    assert (outer.race_count, inner.race_count) == (0, 1)


def test_tensors_are_of_their_class_once_awaited_and_once_the_guard_ends(gpu: None) -> None:
    with syncscan.guard(10**9):
        awaited, pinned = copied(), torch.ones(4, pin_memory=True)
        pinned.to("cuda", non_blocking=True)
        assert type(awaited) is not torch.Tensor
        torch.cuda.synchronize()
        assert type(awaited) is type(pinned) is torch.Tensor
        left = copied()
    assert type(left) is torch.Tensor
    assert left.tolist() == [0, 1, 2, 3]


def test_a_pageable_source_may_be_written_to(gpu: None) -> None:
    """The driver has taken its values when the call returns."""

    def refill() -> None:
        host = torch.ones(4)
        host.to("cuda", non_blocking=True)
        host.fill_(2)

    assert races_in(refill) == []


def test_a_source_may_be_read_while_it_is_copied(gpu: None) -> None:
    def look() -> None:
        host = torch.ones(4, pin_memory=True)
        host.to("cuda", non_blocking=True)
        assert (host.sum().item(), host.shape) == (4, (4,))

    assert races_in(look) == []


def test_the_values_are_right_whatever_is_watched(gpu: None) -> None:
    """Calls with a watched tensor return what they would return, as torch's own tensors."""
    with syncscan.guard(10**9, on_violation=lambda race: None):
        host = copied()
        parts = [(host + 1).tolist(), host[1:].tolist(), host.unbind()[3].item(), torch.cat([host, host]).shape]
    assert parts == [[1, 2, 3, 4], [1, 2, 3], 3, (8,)]
    assert type(host) is torch.Tensor


def test_what_is_captured_opens_no_debt(gpu: None) -> None:
    def capture() -> None:
        graph, host, source = torch.cuda.CUDAGraph(), torch.zeros(4, pin_memory=True), torch.ones(4, device="cuda")
        graph.capture_begin()
        host.copy_(source, non_blocking=True)
        graph.capture_end()
        host.sum()

    assert races_in(capture) == []


def test_methods_of_classes_in_c_are_put_back() -> None:
    """`torch.Event` is one; its methods lead past the guard while it is open."""
    from syncscan.guarding import awaiting

    before = torch.Event.synchronize
    stop = awaiting.Awaiting(CopyOrder(), lambda: (0, 0, 1), lambda: None).watch()
    during = torch.Event.synchronize
    stop()
    assert torch.Event.synchronize is before
    assert during is not before


def test_a_source_that_is_copied_again_and_again_has_one_debt(gpu: None) -> None:
    """The last copy from it on its stream is done after the others; the race is the last one's."""

    def refill() -> None:
        host, x = torch.ones(4, pin_memory=True), torch.zeros(4, device="cuda")
        for _ in range(50):
            x.copy_(host, non_blocking=True)
        host.fill_(2)

    assert [race.kind for race in races_in(refill)] == [WRITE]
