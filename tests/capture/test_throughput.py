"""Facts about the search for a batch size, against an exhaustive one, with a made-up allocator and clock."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncscan.capture.stopwatch import HostStopwatch
from syncscan.capture.throughput import Search, out_of_memory
from syncscan.errors import UsageError

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module", autouse=True)
def no_collection() -> Iterator[None]:
    """Garbage is collected after each failure: some tenths of a second where much is imported, and nothing to find."""
    with mock.patch("gc.collect"):
        yield


class Fake(HostStopwatch):
    """A clock that takes each call's word for how long it took, and counts how often memory was given back."""

    def __init__(self):
        self.cleaned = 0

    def blocks(self, call, blocks, block):
        return [float(call()) for _ in range(blocks)]

    def clean(self):
        self.cleaned += 1


def device(limit, time=lambda batch: 1000 + batch):
    """A made-up device with memory for `limit` samples, on which a batch takes `time(batch)` µs."""

    def make(batch):
        def call():
            if batch > limit:
                raise torch.OutOfMemoryError("CUDA out of memory.")
            return time(batch)

        return call

    return make


@settings(max_examples=30, deadline=None)
@given(limit=st.integers(1, 50_000))
def test_the_batch_found_is_within_one_doubling_of_an_exhaustive_search(limit):
    """Samples a second rise with the batch here, so the exhaustive answer is the largest that fits; 1/16 is missed."""
    result = Search(device(limit), Fake()).run()
    assert limit / 2 < result.best.batch <= limit
    assert result.largest >= limit * (1 - 1 / 16) - 1
    assert not result.fits_all


@pytest.mark.parametrize("peak", [3, 40, 100, 700])
@pytest.mark.parametrize("limit", [50, 1000, 3000])
def test_the_most_samples_a_second_need_not_be_at_the_largest_batch(peak, limit):
    """Where samples per second rise to a peak and fall behind it, the best found is at most one doubling from it."""
    rates = {b: b / (peak * peak + b * b) for b in range(1, limit + 1)}
    exhaustive = max(rates, key=rates.__getitem__)
    best = Search(device(limit, lambda b: peak * peak + b * b), Fake()).run().best.batch
    assert exhaustive / 2 <= best <= exhaustive * 2


def test_memory_is_given_back_after_each_failure():
    """The tensors of the failed call are dropped before the next size is tried."""
    held = []

    def make(batch):
        def call():
            block = torch.zeros(1)
            held.append(__import__("weakref").ref(block))
            if batch > 4:
                raise torch.OutOfMemoryError("CUDA out of memory.")
            return 1.0

        return call

    watch = Fake()
    Search(make, watch).run()
    assert watch.cleaned > 0
    assert [ref() for ref in held] == [None] * len(held)


def test_a_failure_while_the_inputs_are_made_counts_too():
    """The batch itself may not fit."""

    def make(batch):
        if batch > 10:
            raise MemoryError
        return lambda: 1.0

    assert Search(make, Fake()).run().largest == 10


def test_another_error_is_not_taken_for_missing_memory():
    """A bug in the user's function ends the search with its own traceback."""

    def make(batch):
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        Search(make, Fake()).run()


def test_nothing_fits():
    """Then there is no answer, and the error says so."""
    with pytest.raises(UsageError, match="Not even a batch of 1"):
        Search(device(0), Fake()).run()


def test_on_a_plateau_the_search_ends_before_memory_does():
    """Three doublings without a gain end it once patience is over; the largest of equals is the best."""
    result = Search(lambda batch: lambda: float(max(batch, 64)), Fake(), patience_s=0).run()
    assert [t.batch for t in result.tried][-1] == 512
    assert result.best.batch == 512
    assert result.enough.batch == 64
    assert result.fits_all


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (torch.OutOfMemoryError("CUDA out of memory."), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: you tried"), True),
        (MemoryError(), True),
        (RuntimeError("CUDA error: device-side assert triggered"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_what_counts_as_out_of_memory(error, expected):
    """The class of torch itself, and the words of cuBLAS and the host's allocator in a RuntimeError."""
    assert out_of_memory(error) is expected


def test_a_size_that_takes_a_second_is_run_five_times():
    """Once, once more to warm up, and three times for its time: a search of twenty sizes has two minutes."""
    calls = []

    def make(batch):
        return lambda: calls.append(batch) or 1e6

    Search(make, Fake(), max_batch=1).run()
    assert calls == [1] * 5
