"""CUPTI is let go where that is safe, and the environment is as before; kineto's part is played by a thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from syncscan.capture import cupti, device

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A torch for CUDA 12.6 that has used its GPU."""
    monkeypatch.setattr(torch.version, "cuda", "12.6")
    monkeypatch.setattr(device, "vendor", lambda: "cuda")
    monkeypatch.setattr(device, "used", lambda: True)
    monkeypatch.setattr(device, "drain", lambda: None)
    monkeypatch.delenv(cupti.TEARDOWN, raising=False)
    monkeypatch.delenv(cupti.LAZY, raising=False)
    before = cupti.stays_attached
    yield
    cupti.stays_attached = before


def stopped(attachment: cupti.Attachment, *, lets_go: bool = True) -> str | None:
    """What kineto saw in the environment when its thread had let go, `None` where it didn't come to that."""
    seen: list[str | None] = []
    drained = threading.Event()

    def kineto() -> None:
        drained.wait(0.1 if lets_go else 30)
        seen.append(os.environ.get(cupti.TEARDOWN))

    attachment.before_stop()
    thread = threading.Thread(target=kineto, daemon=True)
    thread.start()
    attachment.release()
    drained.set()
    return seen[0] if seen else None


def test_the_variable_stands_until_kineto_has_let_go() -> None:
    """It reads it once more then; afterwards it is gone again."""
    attachment = cupti.Attachment()
    assert stopped(attachment) == "1"
    assert attachment.kept is None
    assert cupti.TEARDOWN not in os.environ
    assert not cupti.stays_attached


def test_a_kineto_that_does_not_let_go_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it is said, and the variable stands, for it may still come to that."""
    monkeypatch.setattr(cupti, "PATIENCE_S", 0.05)
    attachment = cupti.Attachment()
    assert stopped(attachment, lets_go=False) is None
    assert "hadn't let it go" in str(attachment.kept)
    assert cupti.stays_attached
    monkeypatch.delenv(cupti.TEARDOWN)


def test_a_profiler_that_never_started_leaves_nothing() -> None:
    """And nothing is waited for."""
    attachment = cupti.Attachment()
    attachment.release()
    assert attachment.kept is None
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
    assert reason in str(attachment.kept) if reason else attachment.kept is None
    assert {name: os.environ[name] for name in (cupti.TEARDOWN, cupti.LAZY) if name in os.environ} == variables
    assert cupti.stays_attached == (reason is not None)


def test_without_cuda_there_is_nothing_to_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU, on ROCm, on an XPU."""
    monkeypatch.setattr(torch.version, "cuda", None)
    attachment = cupti.Attachment()
    attachment.before_stop()
    attachment.release()
    assert attachment.kept is None


def test_a_gpu_that_was_not_used_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No CUDA call would come for kineto to let go at."""
    monkeypatch.setattr(device, "used", lambda: False)
    attachment = cupti.Attachment()
    attachment.before_stop()
    assert cupti.TEARDOWN not in os.environ
    attachment.release()
    assert attachment.kept is None
