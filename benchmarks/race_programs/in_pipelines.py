"""Loops that prefetch, buffer and replay on several streams with one wait left out, beside their right forms."""

from __future__ import annotations

import importlib
from typing import Any

from benchmarks.race_programs.pairs import FREED, READ, STREAMS, WRITE, Spin, awaited, device, pair, pinned

torch: Any = importlib.import_module("torch")


class Prefetcher:
    """Copies the next batch on a stream of its own while the current one is computed with.

    Args:
        batches: tensors in pinned memory.
    """

    def __init__(self, batches: list[Any]) -> None:
        self.batches, self.stream = iter(batches), torch.cuda.Stream()
        self.next_batch: Any = None
        self.preload()

    def preload(self) -> None:
        """Start the copy of the next batch, if there is one."""
        batch = next(self.batches, None)
        if batch is None:
            self.next_batch = None
            return
        with torch.cuda.stream(self.stream):
            self.next_batch = batch.to("cuda", non_blocking=True).mul(1)

    def next(self) -> Any:
        """Return the batch that was copied, and start the copy of the one after it."""
        torch.cuda.current_stream().wait_stream(self.stream)
        batch = self.next_batch
        batch.record_stream(torch.cuda.current_stream())
        self.preload()
        return batch


def prefetched(spin: Spin, k: float) -> Any:
    built = []
    batches = Prefetcher([pinned(k + i) for i in range(4)])
    for _ in range(4):
        batch = batches.next()
        spin()
        built.append(batch * 1)
    return awaited(built[0])


@pair(STREAMS, prefetched)
def prefetched_without_a_wait(spin: Spin, k: float) -> Any:
    hosts, stream = [pinned(k + i) for i in range(2)], torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        spin()
        batch = hosts[0].to("cuda", non_blocking=True)
    batch.record_stream(torch.cuda.current_stream())
    return awaited(batch * 1)


def prefetched_and_recorded(spin: Spin, k: float) -> Any:
    hosts, stream, built = [pinned(k + i) for i in range(4)], torch.cuda.Stream(), []
    for host in hosts:
        with torch.cuda.stream(stream):
            batch = host.to("cuda", non_blocking=True)
        torch.cuda.current_stream().wait_stream(stream)
        batch.record_stream(torch.cuda.current_stream())
        spin()
        built.append(batch * 1)
        del batch
    return awaited(built[0])


@pair(FREED, prefetched_and_recorded)
def prefetched_and_not_recorded(spin: Spin, k: float) -> Any:
    hosts, stream, built = [pinned(k + i) for i in range(4)], torch.cuda.Stream(), []
    for host in hosts:
        with torch.cuda.stream(stream):
            batch = host.to("cuda", non_blocking=True)
        torch.cuda.current_stream().wait_stream(stream)
        spin()
        built.append(batch * 1)
        del batch
    return awaited(built[0])


def two_device_buffers(spin: Spin, k: float) -> Any:
    """The copy waits until the buffer is used, the work until it is filled."""
    current, stream = torch.cuda.current_stream(), torch.cuda.Stream()
    hosts, buffers, built = [pinned(k + i) for i in range(4)], [device(0), device(0)], []
    filled, used = ([torch.cuda.Event() for _ in range(2)] for _ in range(2))
    stream.wait_stream(current)
    for i, host in enumerate(hosts):
        stream.wait_event(used[i % 2])
        with torch.cuda.stream(stream):
            buffers[i % 2].copy_(host, non_blocking=True)
            filled[i % 2].record()
        current.wait_event(filled[i % 2])
        spin()
        built.append(buffers[i % 2] * 1)
        used[i % 2].record()
    return awaited(built[0])


@pair(STREAMS, two_device_buffers)
def two_device_buffers_refilled_while_used(spin: Spin, k: float) -> Any:
    current, stream = torch.cuda.current_stream(), torch.cuda.Stream()
    hosts, buffers, built = [pinned(k + i) for i in range(4)], [device(0), device(0)], []
    filled = [torch.cuda.Event() for _ in range(2)]
    stream.wait_stream(current)
    for i, host in enumerate(hosts):
        with torch.cuda.stream(stream):
            buffers[i % 2].copy_(host, non_blocking=True)
            filled[i % 2].record()
        current.wait_event(filled[i % 2])
        spin()
        built.append(buffers[i % 2] * 1)
    return awaited(built[0])


@pair(STREAMS, two_device_buffers)
def two_device_buffers_with_the_other_event(spin: Spin, k: float) -> Any:
    """The work waits until the other buffer is filled."""
    current, stream = torch.cuda.current_stream(), torch.cuda.Stream()
    hosts, buffers, built = [pinned(k + i) for i in range(2)], [device(0), device(0)], []
    filled = [torch.cuda.Event() for _ in range(2)]
    stream.wait_stream(current)
    for i, host in enumerate(hosts):
        with torch.cuda.stream(stream):
            spin()
            buffers[i].copy_(host, non_blocking=True)
            filled[i].record()
        current.wait_event(filled[1 - i])
        built.append(buffers[i] * 1)
    return awaited(built[0])


def graph_input_copied_on_its_stream(spin: Spin, k: float) -> Any:
    """One stream: the copy is done before the replay, and the replay before the next copy."""
    x, graph, built = device(0), torch.cuda.CUDAGraph(), []
    with torch.cuda.graph(graph):
        y = x.mul(1)
    for i in range(3):
        spin()
        x.copy_(pinned(k + i), non_blocking=True)
        graph.replay()
        built.append(y.clone())
    return awaited(built[0])


@pair(STREAMS, graph_input_copied_on_its_stream)
def graph_input_copied_on_another_stream(spin: Spin, k: float) -> Any:
    x, graph, side = device(0), torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.graph(graph):
        y = x.mul(1)
    host = pinned(k)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        spin()
        x.copy_(host, non_blocking=True)
    graph.replay()
    return awaited(y)


@pair(WRITE, graph_input_copied_on_its_stream)
def graph_input_copied_from_one_host_buffer(spin: Spin, k: float) -> Any:
    x, graph, host, built = device(0), torch.cuda.CUDAGraph(), pinned(), []
    with torch.cuda.graph(graph):
        y = x.mul(1)
    for i in range(3):
        host.fill_(k + i)
        spin()
        x.copy_(host, non_blocking=True)
        graph.replay()
        built.append(y.clone())
    return awaited(built[0])


def graph_output_read_after_a_wait(spin: Spin, k: float) -> Any:
    x, graph, side = device(k), torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.graph(graph):
        y = x.mul(1)
    spin()
    graph.replay()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        z = y * 1
    return awaited(z)


@pair(STREAMS, graph_output_read_after_a_wait)
def graph_output_read_during_a_replay(spin: Spin, k: float) -> Any:
    x, graph, side = device(k), torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.graph(graph):
        y = x.mul(1)
    spin()
    graph.replay()
    with torch.cuda.stream(side):
        z = y * 1
    return awaited(z)


def copied_out_on_a_stream_that_waits(spin: Spin, k: float) -> Any:
    side = torch.cuda.Stream()
    spin()
    x = device(k)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        host = x.to("cpu", non_blocking=True)
    side.synchronize()
    return host.mean()


@pair(STREAMS, copied_out_on_a_stream_that_waits)
def copied_out_on_a_stream_that_does_not_wait(spin: Spin, k: float) -> Any:
    side = torch.cuda.Stream()
    spin()
    x = device(k)
    with torch.cuda.stream(side):
        host = x.to("cpu", non_blocking=True)
    side.synchronize()
    return host.mean()


def three_stages(spin: Spin, k: float) -> Any:
    decode, encode = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(decode):
        spin()
        frame = device(k)
    decoded = decode.record_event()
    encode.wait_event(decoded)
    with torch.cuda.stream(encode):
        packet = frame * 1
    encoded = encode.record_event()
    torch.cuda.current_stream().wait_event(encoded)
    return awaited(packet * 1)


@pair(STREAMS, three_stages)
def three_stages_with_one_event_too_few(spin: Spin, k: float) -> Any:
    decode, encode = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(decode):
        spin()
        frame = device(k)
    with torch.cuda.stream(encode):
        packet = frame * 1
    encoded = encode.record_event()
    torch.cuda.current_stream().wait_event(encoded)
    return awaited(packet * 1)


def logged_a_step_later(spin: Spin, k: float) -> Any:
    """Each step's value is read in the next, after the event of its copy."""
    pending: Any = None
    read = []
    for i in range(3):
        spin()
        loss = device(k + i).mean()
        host = loss.to("cpu", non_blocking=True)
        if pending is not None:
            value, copied = pending
            copied.synchronize()
            read.append(value.item())
        pending = host, torch.cuda.current_stream().record_event()
    return read[0]


@pair(READ, logged_a_step_later)
def logged_a_step_later_without_its_event(spin: Spin, k: float) -> Any:
    pending: Any = None
    read = []
    for i in range(3):
        spin()
        loss = device(k + i).mean()
        if pending is not None:
            read.append(pending.item())
        pending = loss.to("cpu", non_blocking=True)
    return read[0]


def parts_copied_after_their_mask(spin: Spin, k: float) -> Any:
    """`.cpu()` waits, and with it for the copies before it."""
    spin()
    parts = [device(k + i).to("cpu", non_blocking=True) for i in range(2)]
    device(1).cpu()
    return sum(parts).mean() - k - 1


@pair(READ, parts_copied_after_their_mask)
def parts_mapped_to_the_host(spin: Spin, k: float) -> Any:
    spin()
    parts = (x.flatten().to("cpu", non_blocking=True) for x in (device(k), device(k + 1)))
    return sum(parts).numpy().mean() - k - 1


def last_element_written_in_a_copy_of_its_own(spin: Spin, k: float) -> Any:
    host, x = pinned(k), device(0)
    spin()
    x.copy_(host, non_blocking=True)
    host.clone()[-1].fill_(-1)
    return awaited(x)


@pair(WRITE, last_element_written_in_a_copy_of_its_own)
def last_element_written_while_copied(spin: Spin, k: float) -> Any:
    host, x = pinned(k), device(0)
    spin()
    x.copy_(host, non_blocking=True)
    host[-1].fill_(-1)
    return awaited(x)
