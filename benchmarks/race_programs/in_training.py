"""Patterns of trainers and servers with one wait left out, beside their right forms: gather, offload, swap, log."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from benchmarks.race_programs.pairs import FREED, READ, STREAMS, WRITE, Spin, awaited, device, pair, pinned

torch: Any = importlib.import_module("torch")


def _side() -> tuple[Any, Any]:
    """Return the current stream and a new one that begins after it."""
    current, side = torch.cuda.current_stream(), torch.cuda.Stream()
    side.wait_stream(current)
    return current, side


# loaders that prefetch


def _one_ahead(hosts: list[Any], spin: Spin) -> Iterator[Any]:
    """Yield each batch while the next is copied, as timm's `PrefetchLoader` does."""
    current, side = _side()
    batch: Any = None
    for host in hosts:
        with torch.cuda.stream(side):
            spin()
            following = host.to("cuda", non_blocking=True).mul(1)
        if batch is not None:
            yield batch
        current.wait_stream(side)
        following.record_stream(current)
        batch = following
    yield batch


def last_batch_awaited(spin: Spin, k: float) -> Any:
    hosts = [pinned(k + 2), pinned(k + 1), pinned(k)]
    return awaited([batch * 1 for batch in _one_ahead(hosts, spin)][-1])


@pair(STREAMS, last_batch_awaited)
def last_batch_not_awaited(spin: Spin, k: float) -> Any:
    current, side = _side()
    hosts = [pinned(k + 2), pinned(k + 1), pinned(k)]
    used = []
    for host in hosts:
        with torch.cuda.stream(side):
            spin()
            batch = host.to("cuda", non_blocking=True).mul(1)
        if host is not hosts[-1]:
            current.wait_stream(side)
        batch.record_stream(current)
        used.append(batch * 1)
    return awaited(used[-1])


def ring_with_its_events(spin: Spin, k: float) -> Any:
    ring, copied, built = [pinned() for _ in range(3)], [torch.cuda.Event() for _ in range(3)], []
    for i in range(7):
        copied[i % 3].synchronize()
        ring[i % 3].fill_(k + i)
        spin()
        built.append(ring[i % 3].to("cuda", non_blocking=True))
        copied[i % 3].record()
    return awaited(built[3]) - 3


@pair(WRITE, ring_with_its_events)
def ring_with_events_of_the_first_round(spin: Spin, k: float) -> Any:
    ring, copied, built = [pinned() for _ in range(3)], [torch.cuda.Event() for _ in range(3)], []
    for i in range(7):
        copied[i % 3].synchronize()
        ring[i % 3].fill_(k + i)
        spin()
        built.append(ring[i % 3].to("cuda", non_blocking=True))
        if i < 3:
            copied[i].record()
    return awaited(built[3]) - 3


def token_buffer_filled_after_its_event(spin: Spin, k: float) -> Any:
    """A server's input buffer: a few tokens of each request are written to pinned memory, and copied."""
    tokens, copied, sent = torch.zeros(16, dtype=torch.long).pin_memory(), torch.cuda.Event(), []
    for i in range(3):
        copied.synchronize()
        tokens[:4] = torch.tensor([int(k) + i] * 4)
        spin()
        sent.append(tokens[:4].to("cuda", non_blocking=True).float())
        copied.record()
    return awaited(sent[0])


@pair(WRITE, token_buffer_filled_after_its_event)
def token_buffer_filled_at_once(spin: Spin, k: float) -> Any:
    tokens, sent = torch.zeros(16, dtype=torch.long).pin_memory(), []
    for i in range(3):
        tokens[:4] = torch.tensor([int(k) + i] * 4)
        spin()
        sent.append(tokens[:4].to("cuda", non_blocking=True).float())
    return awaited(sent[0])


# gradients and weights on a stream of their own


def bucket_reduced_before_the_step(spin: Spin, k: float) -> Any:
    """As `DistributedDataParallel`: a bucket is reduced on a stream that waits for it, and that the step waits for."""
    current, side = _side()
    weight, gradient = device(0), device(k)
    side.wait_stream(current)
    with torch.cuda.stream(side):
        spin()
        gradient.mul_(2).div_(4)
    current.wait_stream(side)
    weight.add_(gradient, alpha=2)
    return awaited(weight)


@pair(STREAMS, bucket_reduced_before_the_step)
def bucket_reduced_during_the_step(spin: Spin, k: float) -> Any:
    current, side = _side()
    weight, gradient = device(0), device(k)
    side.wait_stream(current)
    with torch.cuda.stream(side):
        spin()
        gradient.mul_(2).div_(4)
    weight.add_(gradient, alpha=2)
    return awaited(weight)


@pair(STREAMS, bucket_reduced_before_the_step)
def bucket_reduced_before_its_gradient(spin: Spin, k: float) -> Any:
    current, side = _side()
    weight, gradient = device(0), device(0)
    side.wait_stream(current)
    spin()
    gradient.add_(k)
    with torch.cuda.stream(side):
        gradient.mul_(2).div_(4)
    current.wait_stream(side)
    weight.add_(gradient, alpha=2)
    return awaited(weight)


def gathered_after_the_layer_before(spin: Spin, k: float) -> Any:
    """Two layers' weights are gathered into one buffer, on a stream of their own."""
    current, side = _side()
    shards, buffer, x, results = [device(k), device(-1)], device(0), device(1), []
    for shard in shards:
        side.wait_stream(current)
        with torch.cuda.stream(side):
            buffer.copy_(shard)
        current.wait_stream(side)
        spin()
        results.append(x * buffer)
    return awaited(results[0])


@pair(STREAMS, gathered_after_the_layer_before)
def gathered_during_the_layer_before(spin: Spin, k: float) -> Any:
    current, side = _side()
    shards, buffer, x, results = [device(k), device(-1)], device(0), device(1), []
    side.wait_stream(current)
    for shard in shards:
        with torch.cuda.stream(side):
            buffer.copy_(shard)
        current.wait_stream(side)
        spin()
        results.append(x * buffer)
    return awaited(results[0])


def weights_freed_behind_an_event(spin: Spin, k: float) -> Any:
    """As FSDP: the gathering stream waits for the layer that used the weights before it allocates the next ones."""
    current, side = _side()
    shards, used, results = [device(k), device(-1)], torch.cuda.Event(), []
    side.wait_stream(current)
    for shard in shards:
        side.wait_event(used)
        with torch.cuda.stream(side):
            weight = shard.clone()
        current.wait_stream(side)
        spin()
        results.append(weight * 1)
        used.record()
        del weight
    return awaited(results[0])


@pair(FREED, weights_freed_behind_an_event)
def weights_freed_behind_an_event_too_early(spin: Spin, k: float) -> Any:
    current, side = _side()
    shards, used, results = [device(k), device(-1)], torch.cuda.Event(), []
    side.wait_stream(current)
    for shard in shards:
        side.wait_event(used)
        with torch.cuda.stream(side):
            weight = shard.clone()
        current.wait_stream(side)
        used.record()
        spin()
        results.append(weight * 1)
        del weight
    return awaited(results[0])


def averaged_before_the_next_step(spin: Spin, k: float) -> Any:
    """A moving average of the weights is updated on a stream of its own."""
    current, side = _side()
    weight, average = device(k), device(k)
    side.wait_stream(current)
    with torch.cuda.stream(side):
        spin()
        average.lerp_(weight, 0.5)
    current.wait_stream(side)
    weight.sub_(2)
    return awaited(average)


@pair(STREAMS, averaged_before_the_next_step)
def averaged_during_the_next_step(spin: Spin, k: float) -> Any:
    current, side = _side()
    weight, average = device(k), device(k)
    side.wait_stream(current)
    with torch.cuda.stream(side):
        spin()
        average.lerp_(weight, 0.5)
    weight.sub_(2)
    return awaited(average)


def microbatches_with_an_event_each(spin: Spin, k: float) -> Any:
    current, second = _side()
    built = []
    for i in range(3):
        spin()
        hidden = device(k + i)
        done = current.record_event()
        second.wait_event(done)
        with torch.cuda.stream(second):
            built.append(hidden * 1)
        hidden.record_stream(second)
    return awaited(built[2]) - 2


@pair(STREAMS, microbatches_with_an_event_each)
def microbatches_with_the_event_of_the_first(spin: Spin, k: float) -> Any:
    _, second = _side()
    done, built = torch.cuda.Event(), []
    for i in range(3):
        spin()
        hidden = device(k + i)
        if i == 0:
            done.record()
        second.wait_event(done)
        with torch.cuda.stream(second):
            built.append(hidden * 1)
        hidden.record_stream(second)
    return awaited(built[2]) - 2


# activations and optimizer states in pinned memory


def activations_brought_back_in_time(spin: Spin, k: float) -> Any:
    """Tensors saved for the backward pass lie in pinned memory meanwhile."""
    current, side = _side()
    x = device(1).requires_grad_()

    def packed(saved: Any) -> Any:
        host = torch.zeros(saved.shape).pin_memory()
        side.wait_stream(current)
        with torch.cuda.stream(side):
            host.copy_(saved.detach(), non_blocking=True)
        saved.record_stream(side)
        return host

    def unpacked(host: Any) -> Any:
        with torch.cuda.stream(side):
            saved = torch.empty_like(host, device="cuda").copy_(host, non_blocking=True)
        torch.cuda.current_stream().wait_stream(side)
        saved.record_stream(torch.cuda.current_stream())
        return saved

    with torch.autograd.graph.saved_tensors_hooks(packed, unpacked):
        loss = (x.square() * (k / 2)).sum()
    with torch.cuda.stream(side):
        spin()
    loss.backward()
    return awaited(x.grad)


@pair(STREAMS, activations_brought_back_in_time)
def activations_used_before_they_are_back(spin: Spin, k: float) -> Any:
    current, side = _side()
    x = device(1).requires_grad_()

    def packed(saved: Any) -> Any:
        host = torch.zeros(saved.shape).pin_memory()
        side.wait_stream(current)
        with torch.cuda.stream(side):
            host.copy_(saved.detach(), non_blocking=True)
        saved.record_stream(side)
        return host

    def unpacked(host: Any) -> Any:
        with torch.cuda.stream(side):
            saved = torch.empty_like(host, device="cuda").copy_(host, non_blocking=True)
        saved.record_stream(torch.cuda.current_stream())
        return saved

    with torch.autograd.graph.saved_tensors_hooks(packed, unpacked):
        loss = (x.square() * (k / 2)).sum()
    with torch.cuda.stream(side):
        spin()
    loss.backward()
    return awaited(x.grad)


def activations_copied_out_in_time(spin: Spin, k: float) -> Any:
    current, side = _side()
    host, x = pinned(), device(0)
    spin()
    hidden = x.add_(k)
    side.wait_stream(current)
    with torch.cuda.stream(side):
        host.copy_(hidden, non_blocking=True)
    current.wait_stream(side)
    return awaited(x.copy_(host, non_blocking=True))


@pair(STREAMS, activations_copied_out_in_time)
def activations_copied_out_before_they_are_computed(spin: Spin, k: float) -> Any:
    current, side = _side()
    host, x = pinned(), device(0)
    side.wait_stream(current)
    spin()
    hidden = x.add_(k)
    with torch.cuda.stream(side):
        host.copy_(hidden, non_blocking=True)
    current.wait_stream(side)
    return awaited(x.copy_(host, non_blocking=True))


def activations_freed_behind_their_copy(spin: Spin, k: float) -> Any:
    current, side = _side()
    host, hidden = pinned(), device(k)
    side.wait_stream(current)
    with torch.cuda.stream(side):
        spin()
        host.copy_(hidden, non_blocking=True)
    hidden.record_stream(side)
    del hidden
    device(-1)
    torch.cuda.synchronize()
    return host.mean()


@pair(FREED, activations_freed_behind_their_copy)
def activations_freed_during_their_copy(spin: Spin, k: float) -> Any:
    current, side = _side()
    host, hidden = pinned(), device(k)
    side.wait_stream(current)
    with torch.cuda.stream(side):
        spin()
        host.copy_(hidden, non_blocking=True)
    del hidden
    device(-1)
    torch.cuda.synchronize()
    return host.mean()


def stepped_on_the_host_after_the_gradient(spin: Spin, k: float) -> Any:
    """An optimizer whose state is on the host: the gradient is copied out, the weight back in."""
    momentum, weight = torch.zeros(64), pinned()
    spin()
    gradient = device(k).to("cpu", non_blocking=True)
    torch.cuda.current_stream().record_event().synchronize()
    momentum.mul_(0.9).add_(gradient)
    weight.add_(momentum)
    return awaited(weight.to("cuda", non_blocking=True))


@pair(READ, stepped_on_the_host_after_the_gradient)
def stepped_on_the_host_before_the_gradient(spin: Spin, k: float) -> Any:
    momentum, weight = torch.zeros(64), pinned()
    spin()
    gradient = device(k).to("cpu", non_blocking=True)
    momentum.mul_(0.9).add_(gradient)
    weight.add_(momentum)
    return awaited(weight.to("cuda", non_blocking=True))


def weight_stepped_after_it_was_sent(spin: Spin, k: float) -> Any:
    weight, sent, on_device = pinned(k), torch.cuda.Event(), []
    for _ in range(3):
        spin()
        on_device.append(weight.to("cuda", non_blocking=True))
        sent.record()
        sent.synchronize()
        torch._foreach_add_([weight], 1.0)
    return awaited(on_device[0])


@pair(WRITE, weight_stepped_after_it_was_sent)
def weight_stepped_while_it_is_sent(spin: Spin, k: float) -> Any:
    weight, on_device = pinned(k), []
    for _ in range(3):
        spin()
        on_device.append(weight.to("cuda", non_blocking=True))
        torch._foreach_add_([weight], 1.0)
    return awaited(on_device[0])


def state_copied_before_the_next_step(spin: Spin, k: float) -> Any:
    """A checkpoint that is copied out behind the training."""
    current, side = _side()
    weight = device(k)
    side.wait_stream(current)
    with torch.cuda.stream(side):
        spin()
        saved = {"weight": weight.to("cpu", non_blocking=True)}
    current.wait_stream(side)
    weight.sub_(1)
    side.synchronize()
    return saved["weight"].mean()


@pair(STREAMS, state_copied_before_the_next_step)
def state_copied_during_the_next_step(spin: Spin, k: float) -> Any:
    current, side = _side()
    weight = device(k)
    side.wait_stream(current)
    with torch.cuda.stream(side):
        spin()
        saved = {"weight": weight.to("cpu", non_blocking=True)}
    weight.sub_(1)
    side.synchronize()
    return saved["weight"].mean()


# blocks of a cache that are swapped


def block_swapped_out_before_it_is_used_again(spin: Spin, k: float) -> Any:
    current, side = _side()
    cache, host = device(k, 256).view(4, 64), pinned(0.0, 256).view(4, 64)
    side.wait_stream(current)
    with torch.cuda.stream(side):
        spin()
        host[2].copy_(cache[1], non_blocking=True)
        swapped = side.record_event()
    current.wait_event(swapped)
    cache[1].fill_(-1)
    swapped.synchronize()
    return host[2].mean()


@pair(STREAMS, block_swapped_out_before_it_is_used_again)
def block_used_again_while_swapped_out(spin: Spin, k: float) -> Any:
    current, side = _side()
    cache, host = device(k, 256).view(4, 64), pinned(0.0, 256).view(4, 64)
    side.wait_stream(current)
    with torch.cuda.stream(side):
        spin()
        host[2].copy_(cache[1], non_blocking=True)
        swapped = side.record_event()
    cache[1].fill_(-1)
    swapped.synchronize()
    return host[2].mean()


def another_block_used_while_one_is_swapped_out(spin: Spin, k: float) -> Any:
    current, side = _side()
    cache, host = device(k, 256).view(4, 64), pinned(0.0, 256).view(4, 64)
    side.wait_stream(current)
    with torch.cuda.stream(side):
        spin()
        host[2].copy_(cache[1], non_blocking=True)
        swapped = side.record_event()
    cache[3].fill_(-1)
    swapped.synchronize()
    return host[2].mean()


@pair(READ, another_block_used_while_one_is_swapped_out)
def block_read_on_the_host_while_swapped_out(spin: Spin, k: float) -> Any:
    current, side = _side()
    cache, host = device(k, 256).view(4, 64), pinned(0.0, 256).view(4, 64)
    side.wait_stream(current)
    with torch.cuda.stream(side):
        host[1].copy_(cache[0], non_blocking=True)
        swapped = side.record_event()
        spin()
        host[2].copy_(cache[1], non_blocking=True)
    swapped.synchronize()
    return host[1:3].mean()


def block_swapped_in_with_its_own_event(spin: Spin, k: float) -> Any:
    current, side = _side()
    hosts, cache, swapped = [pinned(k), pinned(k + 1)], device(0, 128).view(2, 64), []
    side.wait_stream(current)
    for i in range(2):
        with torch.cuda.stream(side):
            spin()
            cache[i].copy_(hosts[i], non_blocking=True)
            swapped.append(side.record_event())
    current.wait_event(swapped[1])
    return awaited(cache[1] * 1) - 1


@pair(STREAMS, block_swapped_in_with_its_own_event)
def block_swapped_in_with_the_event_of_another(spin: Spin, k: float) -> Any:
    current, side = _side()
    hosts, cache, swapped = [pinned(k), pinned(k + 1)], device(0, 128).view(2, 64), []
    side.wait_stream(current)
    for i in range(2):
        with torch.cuda.stream(side):
            spin()
            cache[i].copy_(hosts[i], non_blocking=True)
            swapped.append(side.record_event())
    current.wait_event(swapped[0])
    return awaited(cache[1] * 1) - 1


def host_slot_swapped_in_before_it_is_used_again(spin: Spin, k: float) -> Any:
    """Two streams copy from and to one place in pinned memory."""
    inwards, outwards = torch.cuda.Stream(), torch.cuda.Stream()
    slot, block, other = pinned(k), device(0), device(-1)
    torch.cuda.synchronize()
    with torch.cuda.stream(inwards):
        spin()
        block.copy_(slot, non_blocking=True)
    outwards.wait_stream(inwards)
    with torch.cuda.stream(outwards):
        slot.copy_(other, non_blocking=True)
    return awaited(block)


@pair(STREAMS, host_slot_swapped_in_before_it_is_used_again)
def host_slot_used_again_while_swapped_in(spin: Spin, k: float) -> Any:
    inwards, outwards = torch.cuda.Stream(), torch.cuda.Stream()
    slot, block, other = pinned(k), device(0), device(-1)
    torch.cuda.synchronize()
    with torch.cuda.stream(inwards):
        spin()
        block.copy_(slot, non_blocking=True)
    with torch.cuda.stream(outwards):
        slot.copy_(other, non_blocking=True)
    return awaited(block)


# graphs


def two_graphs_in_order(spin: Spin, k: float) -> Any:
    """One graph's output is the other's input."""
    current, side = _side()
    x, first, second = device(0), torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        hidden = x.mul(1)
    with torch.cuda.graph(second):
        y = hidden.mul(1)
    x.fill_(k)
    spin()
    first.replay()
    side.wait_stream(current)
    with torch.cuda.stream(side):
        second.replay()
    return awaited(y)


@pair(STREAMS, two_graphs_in_order)
def two_graphs_at_once(spin: Spin, k: float) -> Any:
    _, side = _side()
    x, first, second = device(0), torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        hidden = x.mul(1)
    with torch.cuda.graph(second):
        y = hidden.mul(1)
    torch.cuda.synchronize()
    x.fill_(k)
    spin()
    first.replay()
    with torch.cuda.stream(side):
        second.replay()
    return awaited(y)


def output_of_a_replay_copied_out(spin: Spin, k: float) -> Any:
    x, graph, copied = device(k), torch.cuda.CUDAGraph(), torch.cuda.Event()
    with torch.cuda.graph(graph):
        y = x.mul(1)
    host = pinned()
    spin()
    graph.replay()
    host.copy_(y, non_blocking=True)
    copied.record()
    copied.synchronize()
    return host.mean()


@pair(READ, output_of_a_replay_copied_out)
def output_of_a_replay_read_behind_the_wrong_event(spin: Spin, k: float) -> Any:
    x, graph, replayed = device(k), torch.cuda.CUDAGraph(), torch.cuda.Event()
    with torch.cuda.graph(graph):
        y = x.mul(1)
    host = pinned()
    graph.replay()
    replayed.record()
    spin()
    host.copy_(y, non_blocking=True)
    replayed.synchronize()
    return host.mean()


# values that are logged, compared and collected


def slots_of_a_log_read_at_its_end(spin: Spin, k: float) -> Any:
    log = pinned(0.0, 4)
    for i in range(4):
        spin()
        log[i].copy_(device(k).mean(), non_blocking=True)
    torch.cuda.current_stream().synchronize()
    return log.mean()


@pair(READ, slots_of_a_log_read_at_its_end)
def slots_of_a_log_read_one_behind(spin: Spin, k: float) -> Any:
    log, read = pinned(0.0, 4), []
    for i in range(4):
        spin()
        log[i].copy_(device(k).mean(), non_blocking=True)
        if i:
            read.append(log[i - 1].item())
    torch.cuda.current_stream().synchronize()
    return sum(read) / 3


def best_compared_after_the_event(spin: Spin, k: float) -> Any:
    best = float("inf")
    for i in range(3):
        spin()
        loss = device(k + 2 - i).mean().to("cpu", non_blocking=True)
        torch.cuda.current_stream().record_event().synchronize()
        if loss < best:
            best = float(loss)
    return best


@pair(READ, best_compared_after_the_event)
def best_compared_at_once(spin: Spin, k: float) -> Any:
    best = float("inf")
    for i in range(3):
        spin()
        loss = device(k + 2 - i).mean().to("cpu", non_blocking=True)
        if loss < best:
            best = float(loss)
    return best


def outputs_collected_and_awaited(spin: Spin, k: float) -> Any:
    outputs: dict[str, list[Any]] = {"scores": [], "labels": []}
    for _ in range(3):
        spin()
        outputs["scores"].append(device(k, 8).to("cpu", non_blocking=True))
        outputs["labels"].append(device(1, 8).to("cpu", non_blocking=True))
    torch.cuda.synchronize()
    return torch.cat(outputs["scores"]).numpy().mean()


@pair(READ, outputs_collected_and_awaited)
def outputs_collected_and_joined_at_once(spin: Spin, k: float) -> Any:
    outputs: dict[str, list[Any]] = {"scores": [], "labels": []}
    for _ in range(3):
        spin()
        outputs["scores"].append(device(k, 8).to("cpu", non_blocking=True))
        outputs["labels"].append(device(1, 8).to("cpu", non_blocking=True))
    return torch.cat(outputs["scores"]).numpy().mean()


def tokens_listed_after_the_copy(spin: Spin, k: float) -> Any:
    current, side = _side()
    spin()
    tokens = device(k, 4).long()
    side.wait_stream(current)
    with torch.cuda.stream(side):
        host = tokens.to("cpu", non_blocking=True)
        copied = side.record_event()
    copied.synchronize()
    return next(int(token) for token in host)


@pair(READ, tokens_listed_after_the_copy)
def tokens_listed_after_an_event_before_the_copy(spin: Spin, k: float) -> Any:
    current, side = _side()
    tokens = device(k, 4).long()
    side.wait_stream(current)
    with torch.cuda.stream(side):
        copied = side.record_event()
        spin()
        host = tokens.to("cpu", non_blocking=True)
    copied.synchronize()
    return next(int(token) for token in host)
