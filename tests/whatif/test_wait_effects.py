"""A pageable copy that becomes a pinned one."""

from __future__ import annotations

import pytest

from syncscan.model.trace import Trace
from syncscan.whatif.wait_effects import Copies
from tests.builder import TraceBuilder

PAGEABLE = "Memcpy HtoD (Pageable -> Device)"
PINNED = "Memcpy HtoD (Pinned -> Device)"


def copies(*names: tuple[str, int], major: int | None = None) -> Trace:
    """Copies of so many bytes, each of 1,000 µs."""
    t = TraceBuilder()
    for k, (name, size) in enumerate(names):
        t.copy(name, at=1100 * k, lasts=1000)
        t.events[-1]["args"]["bytes"] = size
    if major is not None:
        t.metadata["deviceProperties"] = [{"id": 0, "name": "Test Device", "computeMajor": major}]
    return t.trace()


def saved_us(trace: Trace) -> float | None:
    """Return the saving of pinning the first copy, in µs; None if it isn't pageable."""
    call = int(trace.calls_of(trace.device_rows[:1])[0])
    result = Copies(trace, [call]).saved(call)
    return result[1] / 1e3 if result else None


def test_the_traces_own_pinned_copies_tell_the_links_speed() -> None:
    """20 MB at the speed of a pinned copy of 50 MB/ms take 400 of their 1,000 µs."""
    assert saved_us(copies((PAGEABLE, 20_000_000), (PINNED, 50_000_000))) == pytest.approx(600)


def test_without_one_the_devices_generation_tells_it() -> None:
    """Compute capability 9 has PCIe 5: about 50 bytes a ns."""
    assert saved_us(copies((PAGEABLE, 20_000_000), major=9)) == pytest.approx(600)


def test_without_either_nothing_is_assumed() -> None:
    """A copy on an unknown device stays as long as it was."""
    assert saved_us(copies((PAGEABLE, 20_000_000))) == 0


def test_a_pinned_copy_has_nothing_to_gain() -> None:
    """Only pageable copies become faster."""
    assert saved_us(copies((PINNED, 20_000_000), major=9)) is None


@pytest.mark.parametrize(("major", "saved"), [(6, 0), (7, 800), (8, 900), (9, 952), (10, 952), (12, 952)])
def test_a_generations_link_is_known(major: int, saved: float) -> None:
    """2.4 MB at 12, 24 and 50 bytes a ns (PCIe 3, 4 and 5, as measured copies reach) take 200, 100 and 48 µs."""
    assert saved_us(copies((PAGEABLE, 2_400_000), major=major)) == pytest.approx(saved)


@pytest.mark.parametrize(("size", "saved"), [(1_000_000, 900), (999_999, 998)])
def test_only_a_large_pinned_copy_tells_the_links_speed(size: int, saved: float) -> None:
    """A pinned copy of 1 MB in 1 ms says 1 byte a ns; a smaller one is mostly latency and says nothing."""
    assert saved_us(copies((PAGEABLE, 100_000), (PINNED, size), major=9)) == pytest.approx(saved)
