"""A guard sees the syncs of its thread, lets be what is allowed, and leaves the process as it was."""

from __future__ import annotations

import linecache
import os
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import syncscan
from syncscan.capture import device, session
from syncscan.errors import UsageError
from tests.as_on_a_gpu import SYNC, Machine

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::syncscan.SyncWarning")


def in_thread(action: Callable[[], object]) -> None:
    thread = threading.Thread(target=action)
    thread.start()
    thread.join()


@pytest.mark.parametrize(
    "text",
    [
        b"called a synchronizing CUDA operation (Triggered internally at  ../c10/cuda/CUDAFunctions.cpp:144.)",
        b"called a synchronizing CUDA operation (Triggered internally at ../c10/cuda/CUDAFunctions.cpp:149.)",
        SYNC,
    ],
    ids=["1.13", "2.1", "2.13"],
)
def test_each_sync_counts_with_its_line(machine: Machine, text: bytes) -> None:
    """Also the same line again, which Python would show once."""
    with syncscan.guard() as guard:
        for _ in range(3):
            machine.saying(text)()
    this_test = test_each_sync_counts_with_its_line
    assert guard.count == 3
    assert {(v.kind, v.file, v.function, v.called) for v in guard.violations} == {
        ("stream", __file__, this_test.__name__, "")
    }
    assert "saying(text)()" in linecache.getline(__file__, guard.violations[0].line)


def test_each_thread_has_its_own_guard(machine: Machine) -> None:
    """Another thread's syncs are neither counted nor shown, and its guard ends without disarming this one."""
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with syncscan.guard(limit=9) as guard:
            in_thread(machine.sync)

            def guarded() -> None:
                with syncscan.guard(limit=9) as inner:
                    machine.sync()
                    machine.sync()
                counts.append(inner.count)

            counts: list[int] = []
            in_thread(guarded)
            machine.sync()
    assert (guard.count, counts, shown) == (1, [2], [])


def test_a_comment_on_the_line_allows_it(machine: Machine) -> None:
    """As for `syncscan check`: its own line's or the next one's, with a reason."""
    with syncscan.guard() as guard:
        machine.sync()  # syncscan: allow[item] the first
        # syncscan: allow[item] the second
        machine.sync()
        machine.sync()  # syncscan: allow[item]
    assert (guard.by_reason, guard.count) == ({"the first": 1, "the second": 1}, 1)


def test_a_guard_of_all_threads_sees_them_all(machine: Machine) -> None:
    """And names each."""
    with syncscan.guard(threads="all") as guard:
        in_thread(machine.sync)
        machine.sync()
    assert [v.thread == threading.current_thread().name for v in guard.violations] == [False, True]


def test_nested_guards_count_each_for_itself(machine: Machine) -> None:
    """The inner one ends, the outer one goes on."""
    with syncscan.guard() as outer:
        machine.sync()
        with syncscan.guard() as inner:
            machine.sync()
        machine.sync()
    assert (outer.count, inner.count) == (3, 1)


def test_raising_comes_up_from_the_guilty_line(machine: Machine) -> None:
    """And the guard is off then."""
    with syncscan.guard(on_violation="raise") as guard, pytest.raises(syncscan.UnexpectedSync) as caught:
        machine.sync()
    assert caught.value.sync == guard.violations[0]
    assert caught.value.sync.called == "sync"
    assert machine.mode == 0


def test_another_thread_is_never_killed(machine: Machine) -> None:
    """As torch's own "error" would."""
    died: list[BaseException] = []

    def worker() -> None:
        try:
            machine.sync()
        except BaseException as error:
            died.append(error)

    with syncscan.guard(on_violation="raise"):
        in_thread(worker)
    assert died == []


def test_a_callback_gets_each_one_and_may_sync_itself(machine: Machine) -> None:
    """Its own syncs aren't counted."""
    seen: list[syncscan.GuardedSync] = []

    def act(sync: syncscan.GuardedSync) -> None:
        seen.append(sync)
        machine.sync()

    with syncscan.guard(on_violation=act) as guard:
        machine.sync()
        machine.sync()
    assert len(seen) == guard.count == 2


def test_warning_shows_a_line_once(machine: Machine) -> None:
    """With the program's line, as Python shows any warning."""
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        with syncscan.guard() as guard:
            for _ in range(3):
                machine.sync()
                guard.step()
    assert [w.category for w in shown] == [syncscan.SyncWarning]
    assert "waits for the device (a blocking copy or a stream synchronization); the limit is 0 per step" in str(
        shown[0].message
    )


def test_a_limit_holds_for_each_step(machine: Machine) -> None:
    """And for the whole block where no step is told."""
    with syncscan.guard(limit=2) as guard:
        for syncs in (2, 3, 1):
            for _ in range(syncs):
                machine.sync()
            guard.step()
    assert (guard.count, guard.violation_count, guard.highest, guard.steps) == (6, 1, 3, 3)


def test_it_is_armed_after_the_warm_up(machine: Machine, process: Callable[[], dict[str, Any]]) -> None:
    """Before, nothing of the process is touched."""
    before = process()
    with syncscan.guard(warmup=2) as guard:
        for step in range(4):
            assert guard.armed == (step >= 2)
            if step < 2:
                assert process() == before
            machine.sync()
            guard.step()
    assert guard.count == 2


@pytest.mark.parametrize("action", ["ignore", "error", "always"])
def test_a_program_s_own_filters_hide_nothing(machine: Machine, action: Any) -> None:
    """Nor do they raise, nor does `catch_warnings` end the guard."""
    with syncscan.guard(limit=9) as guard:
        with warnings.catch_warnings():
            warnings.simplefilter(action)
            machine.sync()
            with warnings.catch_warnings(record=True):
                warnings.resetwarnings()
                machine.sync()
        machine.sync()
    assert guard.count == 3


def test_filters_that_a_program_sets_meanwhile_stay(machine: Machine) -> None:
    """In the list that was there before."""
    with warnings.catch_warnings():
        before = warnings.filters
        with syncscan.guard():
            warnings.filterwarnings("ignore", message="mine")
        assert warnings.filters is before
        assert [item[1].pattern for item in before if item[1] is not None and item[1].pattern == "mine"] == ["mine"]


@pytest.mark.parametrize("how", ["ends", "raises", "twice"])
def test_nothing_is_left_behind(machine: Machine, process: Callable[[], dict[str, Any]], how: str) -> None:
    """Names of torch, filters, the mode."""
    before = process()
    for _ in range(2 if how == "twice" else 1):
        try:
            with syncscan.guard() as guard, syncscan.guard(threads="all"):
                assert process() != before
                machine.sync()
                guard.step()
                if how == "raises":
                    raise ValueError
        except ValueError:
            pass
    assert process() == before


def test_guards_that_end_in_another_order_leave_nothing(
    machine: Machine, process: Callable[[], dict[str, Any]]
) -> None:
    """One begins before the other's end."""
    before = process()
    first, second = syncscan.guard(), syncscan.guard()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    machine.sync()
    second.__exit__(None, None, None)
    assert (first.count, second.count) == (0, 1)
    assert process() == before


def test_a_program_that_sets_the_mode_disarms_nobody(machine: Machine) -> None:
    """The mode that it sets is the mode that it reads, that holds for unguarded threads, and that stays afterwards."""
    inner = torch._C
    with syncscan.guard(limit=9) as guard:
        inner._cuda_set_sync_debug_mode(0)
        machine.sync()
        inner._cuda_set_sync_debug_mode(2)
        assert inner._cuda_get_sync_debug_mode() == 2
        with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
            machine.sync()
    assert guard.count == 2
    assert machine.mode == 2


def test_a_program_s_own_warnings_are_still_shown(machine: Machine) -> None:
    """Where it has set torch's mode to "warn" itself."""
    machine.mode = 1
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with syncscan.guard(limit=9) as guard:
            machine.sync()
    assert (guard.count, len(shown), machine.mode) == (1, 1, 1)


def test_explicit_synchronizes_count(machine: Machine) -> None:
    """The debug mode is silent about a device's."""
    inner = torch._C
    with syncscan.guard() as guard:
        inner._cuda_synchronize()
    assert [(v.kind, v.function, v.called) for v in guard.violations] == [
        ("device", "test_explicit_synchronizes_count", "_cuda_synchronize")
    ]


def test_allowed_blocks_do_not_count(machine: Machine) -> None:
    """For their thread alone; the reasons are counted."""
    with syncscan.guard(threads="all") as guard:
        with syncscan.allow("the sampler reads its choice"):
            machine.sync()
            with syncscan.allow("inner"):
                machine.sync()
            in_thread(machine.sync)
        machine.sync()
    assert guard.count == 2
    assert dict(guard.by_reason) == {"the sampler reads its choice": 1, "inner": 1}


def test_first_only_allows_the_first_pass(machine: Machine) -> None:
    """Also where that makes several syncs at one line."""

    @syncscan.allow("filled once", first_only=True)
    def fill() -> None:
        machine.sync()
        machine.sync()

    with syncscan.guard() as guard:
        fill()
        assert guard.count == 0
        fill()
    assert (guard.count, guard.allowed_count) == (2, 2)


@pytest.mark.parametrize("glob", ["test_guard.py:{line}", "guarding/*.py", "tests/guarding/test_guard.py:named"])
def test_entries_of_the_list_match_any_frame(machine: Machine, glob: str) -> None:
    """By line, function or file, from any folder on."""

    def named() -> None:
        machine.sync()

    entry = glob.format(line=named.__code__.co_firstlineno + 1)
    with syncscan.guard(allow={"elsewhere.py": "no", entry: "its log"}) as guard:
        named()
    assert (guard.count, dict(guard.by_reason)) == (0, {"its log": 1})


def test_a_scope_limits_what_counts(machine: Machine) -> None:
    """By the names of the ranges that the thread has open."""
    with syncscan.guard(scope="decode*") as guard:
        machine.sync()
        with torch.profiler.record_function("decode 1"), torch.profiler.record_function("inner"):
            machine.sync()
        machine.sync()
    assert [v.scopes for v in guard.violations] == [("decode 1", "inner")]


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("/x/torch/_inductor/runtime/benchmarking.py", "torch.compile was running"),
        ("/x/triton/testing.py", "torch.compile was running"),
        (session.__file__, "a capture was running"),
    ],
)
def test_syncs_of_a_tool_are_its_own(machine: Machine, file: str, reason: str) -> None:
    """A compiler measures kernels in the middle of a step, a capture waits between two."""
    code = compile("def bench(sync):\n    sync()\n", file, "exec")
    names: dict[str, Any] = {}
    exec(code, names)
    with syncscan.guard() as guard:
        names["bench"](machine.sync)
    assert (guard.count, list(guard.by_reason)) == (0, [reason])


def test_without_a_device_it_does_nothing(
    machine: Machine, process: Callable[[], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program runs unchanged on a CPU."""
    monkeypatch.setattr(device, "vendor", lambda: None)
    before = process()
    with syncscan.guard() as guard:
        guard.step()
        assert not guard.armed
        assert process() == before


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_is_unguarded(machine: Machine, process: Callable[[], dict[str, Any]]) -> None:
    """A loader's worker copies tensors as fast as ever."""
    before = process()
    with syncscan.guard():
        child = os.fork()
        if child == 0:
            os._exit(0 if process() == before else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        {"limit": -1},
        {"warmup": -1},
        {"on_violation": "print"},
        {"threads": "some"},
        {"allow": {"x.py": ""}},
    ],
)
def test_arguments_that_mean_nothing_are_refused(arguments: dict[str, Any]) -> None:
    """With a sentence."""
    with pytest.raises(UsageError):
        syncscan.guard(**arguments)


def test_an_allowed_block_needs_a_reason() -> None:
    """Who reads it in a year wants to know."""
    with pytest.raises(UsageError):
        syncscan.allow("")


def test_backward_s_threads_count_for_who_called_backward(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gradient hook that reads a value runs on the engine's thread, where a device has one."""
    monkeypatch.setattr(torch._C, "_current_graph_task_id", lambda: 3)

    def _engine_run_backward() -> None:
        in_thread(machine.sync)

    with syncscan.guard() as guard:
        # The caller waits in C, so that this function's frame is its innermost; here it waits in `join`.
        monkeypatch.setattr("syncscan.guarding.dispatch._ENGINE", frozenset({"join", "_wait_for_tstate_lock", "wait"}))
        _engine_run_backward()
    assert guard.count == 1
