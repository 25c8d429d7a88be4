"""CUPTI is let go where that is safe, and the environment is as before; kineto's part is played by a thread."""

from __future__ import annotations

import _thread
import os
import threading
from pathlib import Path

import pytest

from syncscan.capture import cupti, device

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch for CUDA 12.6 that has used its GPU."""
    monkeypatch.setattr(torch.version, "cuda", "12.6")
    monkeypatch.setattr(device, "vendor", lambda: "cuda")
    monkeypatch.setattr(device, "used", lambda: True)
    monkeypatch.setattr(device, "drain", lambda: None)
    monkeypatch.delenv(cupti.TEARDOWN, raising=False)
    monkeypatch.delenv(cupti.LAZY, raising=False)
    monkeypatch.setattr(cupti, "_variable_is_ours", False)


def stopped(attachment: cupti.Attachment, *, lets_go: bool = True) -> str | None:
    """Return the environment that kineto saw after its thread had ended; `None` if the thread didn't end."""
    seen: list[str | None] = []
    drained = threading.Event()

    def kineto() -> None:
        drained.wait(0.1 if lets_go else 30)
        seen.append(os.environ.get(cupti.TEARDOWN))

    attachment.before_stop()
    _thread.start_new_thread(kineto, ())  # as kineto's own, it is none of `threading`'s
    attachment.release()
    drained.set()
    return seen[0] if seen else None


def test_the_variable_stands_until_kineto_has_let_go() -> None:
    """It reads it once more then; afterwards it is gone again."""
    attachment = cupti.Attachment()
    assert stopped(attachment) == "1"
    assert attachment.attached_because is None
    assert cupti.TEARDOWN not in os.environ


def test_a_kineto_that_does_not_let_go_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it is said, and the variable stands, for it may still come to that."""
    monkeypatch.setattr(cupti, "PATIENCE_S", 0.05)
    attachment = cupti.Attachment()
    assert stopped(attachment, lets_go=False) is None
    assert "hadn't detached it" in str(attachment.attached_because)
    assert os.environ[cupti.TEARDOWN] == "1"


def test_a_variable_that_still_stands_is_withdrawn_for_the_next_profiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """With it kineto would let CUPTI go when that one prepares, and its device work would be lost."""
    with monkeypatch.context() as patch:
        patch.setattr(cupti, "PATIENCE_S", 0.05)
        stopped(cupti.Attachment(), lets_go=False)
    later = cupti.Attachment()
    assert cupti.TEARDOWN not in os.environ
    assert stopped(later) == "1"
    assert cupti.TEARDOWN not in os.environ


def test_the_user_s_own_setting_is_not_withdrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither before a profiler nor after it."""
    monkeypatch.setenv(cupti.TEARDOWN, "1")
    for _ in range(2):
        assert stopped(cupti.Attachment()) == "1"
    assert os.environ[cupti.TEARDOWN] == "1"


def test_a_device_that_fails_while_it_is_waited_for_leaves_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was; and nobody knows whether CUPTI has gone."""

    def fail() -> None:
        raise RuntimeError("CUDA error")

    monkeypatch.setattr(device, "drain", fail)
    attachment = cupti.Attachment()
    with pytest.raises(RuntimeError, match="CUDA error"):
        stopped(attachment, lets_go=False)
    assert cupti.TEARDOWN not in os.environ


def test_a_new_thread_of_python_s_is_not_taken_for_kineto_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loader's, say, which would be waited for in vain."""
    monkeypatch.setattr(cupti, "PATIENCE_S", 0.05)
    over = threading.Event()
    attachment = cupti.Attachment()
    attachment.before_stop()
    threading.Thread(target=over.wait, daemon=True).start()
    attachment.release()
    over.set()
    assert attachment.attached_because is None


def test_where_threads_are_not_listed_it_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody could tell when it has been let go."""
    monkeypatch.setattr(cupti, "_TASKS", tmp_path / "none")
    attachment = cupti.Attachment()
    attachment.before_stop()
    assert cupti.TEARDOWN not in os.environ
    attachment.release()
    assert "doesn't list its threads" in str(attachment.attached_because)


def test_a_profiler_that_never_started_leaves_nothing() -> None:
    """And nothing is waited for."""
    attachment = cupti.Attachment()
    attachment.release()
    assert attachment.attached_because is None
    assert cupti.TEARDOWN not in os.environ


@pytest.mark.parametrize(
    ("version", "variables", "reason"),
    [
        ("12.4", {}, "CUDA 12.4"),
        ("11.8", {}, "CUDA 11.8"),
        ("12.6", {cupti.TEARDOWN: "0"}, "TEARDOWN_CUPTI=0 is set"),
        ("13.0", {cupti.LAZY: "1"}, "DISABLE_CUPTI_LAZY_REINIT is set"),
        ("12.6", {}, None),
        ("12.10", {}, None),
        ("13.0", {cupti.TEARDOWN: "1"}, None),
    ],
)
def test_it_is_kept_where_letting_go_is_not_safe_or_not_wanted(
    version: str, variables: dict[str, str], reason: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's own setting stays in any case."""
    monkeypatch.setattr(torch.version, "cuda", version)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    attachment = cupti.Attachment()
    attachment.before_stop()
    attachment.release()
    assert reason in str(attachment.attached_because) if reason else attachment.attached_because is None
    assert {name: os.environ[name] for name in (cupti.TEARDOWN, cupti.LAZY) if name in os.environ} == variables


def test_without_cuda_there_is_nothing_to_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU, on ROCm, on an XPU."""
    monkeypatch.setattr(torch.version, "cuda", None)
    attachment = cupti.Attachment()
    attachment.before_stop()
    attachment.release()
    assert attachment.attached_because is None


def test_a_gpu_that_was_not_used_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No CUDA call would come for kineto to let go at."""
    monkeypatch.setattr(device, "used", lambda: False)
    attachment = cupti.Attachment()
    attachment.before_stop()
    assert cupti.TEARDOWN not in os.environ
    attachment.release()
    assert attachment.attached_because is None
