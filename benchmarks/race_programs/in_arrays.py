"""Programs that race through numpy, files and collates, and slots of one buffer, beside their right forms."""

from __future__ import annotations

import copy
import importlib
import io
import time
from typing import Any

import numpy as np

from benchmarks.race_programs.pairs import READ, WRITE, Spin, awaited, device, pair, pinned

torch: Any = importlib.import_module("torch")

# reads


def array_made_before_the_copy_read_after(spin: Spin, k: float) -> Any:
    spin()
    host = pinned()
    array = host.numpy()
    host.copy_(device(k), non_blocking=True)
    torch.cuda.synchronize()
    return array.mean()


@pair(READ, array_made_before_the_copy_read_after)
def array_made_before_the_copy(spin: Spin, k: float) -> Any:
    spin()
    host = pinned()
    array = host.numpy()
    host.copy_(device(k), non_blocking=True)
    return array.mean()


def row_of_an_array_that_no_copy_fills(spin: Spin, k: float) -> Any:
    """A row is a view: to make it reads nothing, and the other row is filled."""
    spin()
    host = pinned(k).view(2, 32)
    rows = host.numpy()
    host[0].copy_(device(0, 32), non_blocking=True)
    first, second = rows[0], rows[1]
    assert first.shape == second.shape
    return second.mean()


@pair(READ, row_of_an_array_that_no_copy_fills)
def row_of_an_array_that_a_copy_fills(spin: Spin, k: float) -> Any:
    spin()
    host = pinned().view(2, 32)
    rows = host.numpy()
    host[0].copy_(device(k, 32), non_blocking=True)
    return rows[0].mean()


def from_start(file: io.BytesIO) -> io.BytesIO:
    file.seek(0)
    return file


def saved_after_synchronize(spin: Spin, k: float) -> Any:
    spin()
    state, file = {"weight": device(k).to("cpu", non_blocking=True)}, io.BytesIO()
    torch.cuda.synchronize()
    torch.save(state, file)
    return torch.load(from_start(file))["weight"].mean()


@pair(READ, saved_after_synchronize)
def saved_at_once(spin: Spin, k: float) -> Any:
    spin()
    state, file = {"weight": device(k).to("cpu", non_blocking=True)}, io.BytesIO()
    torch.save(state, file)
    return torch.load(from_start(file))["weight"].mean()


def shown_after_event(spin: Spin, k: float) -> Any:
    spin()
    host = device(k).mean().to("cpu", non_blocking=True)
    copied = torch.cuda.current_stream().record_event()
    copied.synchronize()
    return float(repr(host).removeprefix("tensor(").removesuffix(")"))


@pair(READ, shown_after_event)
def shown_at_once(spin: Spin, k: float) -> Any:
    spin()
    host = device(k).mean().to("cpu", non_blocking=True)
    return float(repr(host).removeprefix("tensor(").removesuffix(")"))


def collated_after_synchronize(spin: Spin, k: float) -> Any:
    spin()
    samples = [device(k).to("cpu", non_blocking=True) for _ in range(2)]
    torch.cuda.synchronize()
    return torch.utils.data.default_collate(samples).mean()


@pair(READ, collated_after_synchronize)
def collated_at_once(spin: Spin, k: float) -> Any:
    spin()
    samples = [device(k).to("cpu", non_blocking=True) for _ in range(2)]
    return torch.utils.data.default_collate(samples).mean()


def kept_by_a_blocking_copy(spin: Spin, k: float) -> Any:
    spin()
    best = copy.deepcopy(device(k).to("cpu"))
    return best.mean()


@pair(READ, kept_by_a_blocking_copy)
def kept_at_once(spin: Spin, k: float) -> Any:
    spin()
    best = copy.deepcopy(device(k).to("cpu", non_blocking=True))
    torch.cuda.synchronize()
    return best.mean()


def asked_until_the_copy_is_done(spin: Spin, k: float) -> Any:
    spin()
    host = device(k).to("cpu", non_blocking=True)
    copied = torch.cuda.Event()
    copied.record()
    while not copied.query():
        time.sleep(0.001)
    return host.mean()


@pair(READ, asked_until_the_copy_is_done)
def asked_until_the_work_before_is_done(spin: Spin, k: float) -> Any:
    x, computed = device(k), torch.cuda.Event()
    computed.record()
    spin()
    host = x.to("cpu", non_blocking=True)
    while not computed.query():
        time.sleep(0.001)
    return host.mean()


# writes


def array_filled_after_event(spin: Spin, k: float) -> Any:
    host, x = pinned(k), device(0)
    array = host.numpy()
    spin()
    x.copy_(host, non_blocking=True)
    torch.cuda.current_stream().record_event().synchronize()
    array[:] = -1
    return awaited(x)


@pair(WRITE, array_filled_after_event)
def array_filled_at_once(spin: Spin, k: float) -> Any:
    host, x = pinned(k), device(0)
    array = host.numpy()
    spin()
    x.copy_(host, non_blocking=True)
    array[:] = -1
    return awaited(x)


def array_of_pageable_memory(spin: Spin, k: float) -> Any:
    host, x = torch.full((64,), k), device(0)
    array = host.numpy()
    spin()
    x.copy_(host, non_blocking=True)
    array += 1
    return awaited(x)


@pair(WRITE, array_of_pageable_memory)
def array_counted_up_at_once(spin: Spin, k: float) -> Any:
    host, x = pinned(k), device(0)
    array = host.numpy()
    spin()
    x.copy_(host, non_blocking=True)
    array += 1
    return awaited(x)


def copied_into_the_array_of_another_buffer(spin: Spin, k: float) -> Any:
    host, other, x = pinned(k), pinned(), device(0)
    spin()
    x.copy_(host, non_blocking=True)
    np.copyto(other.numpy(), np.full(64, -1, np.float32))
    return awaited(x)


@pair(WRITE, copied_into_the_array_of_another_buffer)
def copied_into_the_array(spin: Spin, k: float) -> Any:
    host, x = pinned(k), device(0)
    spin()
    x.copy_(host, non_blocking=True)
    np.copyto(host.numpy(), np.full(64, -1, np.float32))
    return awaited(x)


def tensor_of_a_copied_array(spin: Spin, k: float) -> Any:
    host, x = pinned(k), device(0)
    again = torch.from_numpy(host.numpy().copy())
    spin()
    x.copy_(host, non_blocking=True)
    again.fill_(-1)
    return awaited(x)


@pair(WRITE, tensor_of_a_copied_array)
def tensor_of_the_array(spin: Spin, k: float) -> Any:
    host, x = pinned(k), device(0)
    again = torch.from_numpy(host.numpy())
    spin()
    x.copy_(host, non_blocking=True)
    again.fill_(-1)
    return awaited(x)


def stacked_into_a_buffer_after_event(spin: Spin, k: float) -> Any:
    host, built = pinned().view(2, 32), []
    for i in range(2):
        torch.cuda.current_stream().synchronize()
        torch.stack([torch.full((32,), k + i)] * 2, out=host)
        spin()
        built.append(host.to("cuda", non_blocking=True))
    return awaited(built[0])


@pair(WRITE, stacked_into_a_buffer_after_event)
def stacked_into_a_buffer(spin: Spin, k: float) -> Any:
    host, built = pinned().view(2, 32), []
    for i in range(2):
        torch.stack([torch.full((32,), k + i)] * 2, out=host)
        spin()
        built.append(host.to("cuda", non_blocking=True))
    return awaited(built[0])


def slots_of_a_ring(spin: Spin, k: float) -> Any:
    ring, copied, built = pinned(n=128).view(2, 64), [torch.cuda.Event() for _ in range(2)], []
    rows = ring.numpy()
    for i in range(4):
        slot = i % 2
        copied[slot].synchronize()
        rows[slot] = k + i
        spin()
        built.append(ring[slot].to("cuda", non_blocking=True))
        copied[slot].record()
    return awaited(built[0])


@pair(WRITE, slots_of_a_ring)
def slots_of_a_ring_without_their_events(spin: Spin, k: float) -> Any:
    ring, built = pinned(n=128).view(2, 64), []
    rows = ring.numpy()
    for i in range(4):
        rows[i % 2] = k + i
        spin()
        built.append(ring[i % 2].to("cuda", non_blocking=True))
    return awaited(built[0])


def event_of_a_later_copy(spin: Spin, k: float) -> Any:
    """The event of the next slot is of a later copy on the same stream: when that one is done, so is this slot's."""
    ring, copied, built = [pinned() for _ in range(3)], [torch.cuda.Event() for _ in range(3)], []
    for i in range(5):
        copied[(i + 1) % 3].synchronize()
        ring[i % 3].fill_(k + i)
        spin()
        built.append(ring[i % 3].to("cuda", non_blocking=True))
        copied[i % 3].record()
    return awaited(built[0])


@pair(WRITE, event_of_a_later_copy)
def event_awaited_after_the_fill(spin: Spin, k: float) -> Any:
    ring, copied, built = [pinned() for _ in range(3)], [torch.cuda.Event() for _ in range(3)], []
    for i in range(5):
        ring[i % 3].fill_(k + i)
        copied[i % 3].synchronize()
        spin()
        built.append(ring[i % 3].to("cuda", non_blocking=True))
        copied[i % 3].record()
    return awaited(built[0])
