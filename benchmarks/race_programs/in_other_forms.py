"""Programs whose copies convert, stride, slice or hide in modules, threads and graphs, beside their right forms."""

from __future__ import annotations

import importlib
import pickle
import queue
import threading
from typing import Any

import numpy as np

from benchmarks.race_programs.pairs import FREED, READ, STREAMS, WRITE, Spin, awaited, device, pair, pinned

torch: Any = importlib.import_module("torch")

# reads


def _finish(event: Any) -> None:
    event.record()
    torch.cuda.current_stream().synchronize()


def waited_in_a_called_function(spin: Spin, k: float) -> Any:
    spin()
    host = device(k).to("cpu", non_blocking=True)
    _finish(torch.cuda.Event())
    return host.mean()


@pair(READ, waited_in_a_called_function)
def recorded_in_a_called_function(spin: Spin, k: float) -> Any:
    spin()
    host = device(k).to("cpu", non_blocking=True)
    torch.cuda.Event().record()
    return host.mean()


def event_awaited_by_the_host(spin: Spin, k: float) -> Any:
    spin()
    host = device(k).to("cpu", non_blocking=True)
    copied = torch.cuda.current_stream().record_event()
    torch.cuda.Stream().wait_event(copied)
    copied.synchronize()
    return host.mean()


@pair(READ, event_awaited_by_the_host)
def event_awaited_by_a_stream_alone(spin: Spin, k: float) -> Any:
    """A stream's wait doesn't hold the host."""
    spin()
    host = device(k).to("cpu", non_blocking=True)
    copied = torch.cuda.current_stream().record_event()
    torch.cuda.current_stream().wait_event(copied)
    return host.mean()


def _in_a_thread(function: Any) -> Any:
    values: list[Any] = []
    thread = threading.Thread(target=lambda: values.append(function()))
    thread.start()
    thread.join()
    return values[0]


def listed_in_a_thread_that_waits(spin: Spin, k: float) -> Any:
    spin()
    host = device(k).to("cpu", non_blocking=True)
    copied = torch.cuda.current_stream().record_event()

    def listed() -> float:
        copied.synchronize()
        return float(host.tolist()[0])

    return _in_a_thread(listed)


@pair(READ, listed_in_a_thread_that_waits)
def listed_in_a_thread_at_once(spin: Spin, k: float) -> Any:
    spin()
    host = device(k).to("cpu", non_blocking=True)
    return _in_a_thread(lambda: host.tolist()[0])


def its_stream_asked_until_done(spin: Spin, k: float) -> Any:
    spin()
    host = device(k).to("cpu", non_blocking=True)
    while not torch.cuda.current_stream().query():
        pass
    return host.mean()


@pair(READ, its_stream_asked_until_done)
def another_stream_asked_until_done(spin: Spin, k: float) -> Any:
    side = torch.cuda.Stream()
    spin()
    host = device(k).to("cpu", non_blocking=True)
    while not side.query():
        pass
    return host.mean()


def slices_awaited_by_the_last_event(spin: Spin, k: float) -> Any:
    host, parts = pinned(), [device(k, 32), device(k, 32)]
    for i, part in enumerate(parts):
        spin()
        host[32 * i : 32 * (i + 1)].copy_(part, non_blocking=True)
        copied = torch.cuda.current_stream().record_event()
    copied.synchronize()
    return host.mean()


@pair(READ, slices_awaited_by_the_last_event)
def slices_awaited_by_the_first_event(spin: Spin, k: float) -> Any:
    host, parts, events = pinned(), [device(k, 32), device(k, 32)], []
    for i, part in enumerate(parts):
        spin()
        host[32 * i : 32 * (i + 1)].copy_(part, non_blocking=True)
        events.append(torch.cuda.current_stream().record_event())
    events[0].synchronize()
    return host.mean()


def blocking_copy_behind_it(spin: Spin, k: float) -> Any:
    """A copy that blocks waits for its stream, and with it for the copy before."""
    spin()
    host = device(k).to("cpu", non_blocking=True)
    torch.zeros(4).to("cuda")
    return host.mean()


@pair(READ, blocking_copy_behind_it)
def copy_behind_it_that_blocks_nothing(spin: Spin, k: float) -> Any:
    other = pinned(n=4)
    spin()
    host = device(k).to("cpu", non_blocking=True)
    other.to("cuda", non_blocking=True)
    return host.mean()


def pageable_copy_behind_it(spin: Spin, k: float) -> Any:
    """A copy to pageable memory is done when its call returns, and so is the one before it."""
    pageable = torch.zeros(64)
    spin()
    x = device(k)
    host = x.to("cpu", non_blocking=True)
    pageable.copy_(x, non_blocking=True)
    return host.mean()


@pair(READ, pageable_copy_behind_it)
def pageable_copy_before_it(spin: Spin, k: float) -> Any:
    x, pageable = device(k), torch.zeros(64)
    pageable.copy_(x, non_blocking=True)
    spin()
    host = x.to("cpu", non_blocking=True)
    return host.mean()


def target_with_gaps(spin: Spin, k: float) -> Any:
    """A copy to every other element goes through pageable memory, and is done when its call returns."""
    host = pinned(n=128)[::2]
    spin()
    host.copy_(device(k), non_blocking=True)
    return host.mean()


@pair(READ, target_with_gaps)
def target_without_gaps(spin: Spin, k: float) -> Any:
    host = pinned(n=128)[:64]
    spin()
    host.copy_(device(k), non_blocking=True)
    return host.mean()


def converted_and_awaited(spin: Spin, k: float) -> Any:
    spin()
    return device(k).to("cpu", torch.float64).mean()


@pair(READ, converted_and_awaited)
def converted_on_the_way(spin: Spin, k: float) -> Any:
    """The device converts, and the copy blocks nothing."""
    spin()
    return device(k).to("cpu", torch.float64, non_blocking=True).mean()


def each_element_after_a_wait(spin: Spin, k: float) -> Any:
    spin()
    host = device(k, 4).to("cpu", non_blocking=True)
    torch.cuda.synchronize()
    return sum(float(value) for value in host) / 4


@pair(READ, each_element_after_a_wait)
def each_element_at_once(spin: Spin, k: float) -> Any:
    spin()
    host = device(k, 4).to("cpu", non_blocking=True)
    return sum(float(value) for value in host) / 4


def taken_by_numpy_and_read_after(spin: Spin, k: float) -> Any:
    """To take it as an array reads nothing."""
    spin()
    host = device(k).to("cpu", non_blocking=True)
    array = np.asarray(host)
    torch.cuda.synchronize()
    return array.mean()


@pair(READ, taken_by_numpy_and_read_after)
def taken_by_numpy_and_read(spin: Spin, k: float) -> Any:
    spin()
    host = device(k).to("cpu", non_blocking=True)
    return np.asarray(host).mean()


def averaged_by_numpy_after_a_wait(spin: Spin, k: float) -> Any:
    spin()
    host = device(k).to("cpu", non_blocking=True)
    torch.cuda.synchronize()
    return np.mean(host.numpy())


@pair(READ, averaged_by_numpy_after_a_wait)
def copied_by_numpy_at_once(spin: Spin, k: float) -> Any:
    spin()
    return np.array(device(k).to("cpu", non_blocking=True)).mean()


def tensor_pickled_after_a_wait(spin: Spin, k: float) -> Any:
    spin()
    host = device(k).to("cpu", non_blocking=True)
    torch.cuda.current_stream().synchronize()
    return pickle.loads(pickle.dumps(host)).mean()


@pair(READ, tensor_pickled_after_a_wait)
def tensor_pickled_at_once(spin: Spin, k: float) -> Any:
    spin()
    return pickle.loads(pickle.dumps(device(k).to("cpu", non_blocking=True))).mean()


def compared_after_a_wait(spin: Spin, k: float) -> Any:
    spin()
    host = device(k).to("cpu", non_blocking=True)
    torch.cuda.synchronize()
    return k if torch.equal(host, torch.full((64,), k)) else -1


@pair(READ, compared_after_a_wait)
def compared_at_once(spin: Spin, k: float) -> Any:
    spin()
    host = device(k).to("cpu", non_blocking=True)
    return k if torch.equal(host, torch.full((64,), k)) else -1


def view_of_views_after_a_wait(spin: Spin, k: float) -> Any:
    spin()
    host = device(k).to("cpu", non_blocking=True)
    part = host.view(8, 8).t()[2:4].unsqueeze(0).detach()
    torch.cuda.synchronize()
    return part.reshape(-1).mean()


@pair(READ, view_of_views_after_a_wait)
def view_of_views_at_once(spin: Spin, k: float) -> Any:
    spin()
    host = device(k).to("cpu", non_blocking=True)
    part = host.view(8, 8).t()[2:4].unsqueeze(0).detach()
    return part.reshape(-1).mean()


def _model(k: float) -> Any:
    model = torch.nn.Linear(1, 64, bias=False).cuda()
    with torch.no_grad():
        model.weight.fill_(k)
    return model


def module_brought_back(spin: Spin, k: float) -> Any:
    model = _model(0)
    spin()
    with torch.no_grad():
        model.weight.add_(k)
    model.to("cpu", non_blocking=True)
    torch.cuda.synchronize()
    return model(torch.ones(1, 1)).mean()


@pair(READ, module_brought_back)
def module_used_at_once(spin: Spin, k: float) -> Any:
    model = _model(0)
    spin()
    with torch.no_grad():
        model.weight.add_(k)
    model.to("cpu", non_blocking=True)
    return model(torch.ones(1, 1)).mean()


def event_recorded_again(spin: Spin, k: float) -> Any:
    """A later record of an event takes the place of the first."""
    x, copied = device(k), torch.cuda.Event()
    copied.record()
    spin()
    host = x.to("cpu", non_blocking=True)
    copied.record()
    copied.synchronize()
    return host.mean()


@pair(READ, event_recorded_again)
def event_recorded_again_after_the_wait(spin: Spin, k: float) -> Any:
    x, copied = device(k), torch.cuda.Event()
    copied.record()
    spin()
    host = x.to("cpu", non_blocking=True)
    copied.synchronize()
    copied.record()
    return host.mean()


def copied_on_after_a_wait(spin: Spin, k: float) -> Any:
    target = torch.zeros(64)
    spin()
    host = device(k).to("cpu", non_blocking=True)
    torch.cuda.synchronize()
    target.copy_(host)
    return target.mean()


@pair(READ, copied_on_after_a_wait)
def copied_on_at_once(spin: Spin, k: float) -> Any:
    target = torch.zeros(64)
    spin()
    target.copy_(device(k).to("cpu", non_blocking=True))
    return target.mean()


def event_elapsed_after_a_wait(spin: Spin, k: float) -> Any:
    """Events that time the copy are awaited before their time is asked for."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    spin()
    host = device(k).to("cpu", non_blocking=True)
    end.record()
    end.synchronize()
    assert begin.elapsed_time(end) >= 0
    return host.mean()


@pair(READ, event_elapsed_after_a_wait)
def beginning_of_the_copy_awaited(spin: Spin, k: float) -> Any:
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    spin()
    host = device(k).to("cpu", non_blocking=True)
    end.record()
    begin.synchronize()
    return host.mean()


# writes


def source_with_gaps(spin: Spin, k: float) -> Any:
    """A copy of every other element goes through memory of its own, which is filled before the call returns."""
    host = pinned(k, n=128)[::2]
    spin()
    x = host.to("cuda", non_blocking=True)
    host.fill_(-1)
    return awaited(x)


@pair(WRITE, source_with_gaps)
def source_without_gaps(spin: Spin, k: float) -> Any:
    host = pinned(k, n=128)[:64]
    spin()
    x = host.to("cuda", non_blocking=True)
    host.fill_(-1)
    return awaited(x)


def converted_before_the_copy(spin: Spin, k: float) -> Any:
    """The host converts into memory of its own."""
    host = pinned(k)
    spin()
    x = host.to(torch.float64).to("cuda", non_blocking=True)
    host.fill_(-1)
    return awaited(x)


@pair(WRITE, converted_before_the_copy)
def converted_behind_the_copy(spin: Spin, k: float) -> Any:
    host = pinned(k)
    spin()
    x = host.to("cuda", torch.float64, non_blocking=True)
    host.fill_(-1)
    return awaited(x)


def pinned_anew(spin: Spin, k: float) -> Any:
    host = torch.full((64,), k)
    spin()
    x = host.pin_memory().to("cuda", non_blocking=True)
    host.fill_(-1)
    return awaited(x)


@pair(WRITE, pinned_anew)
def pinned_already(spin: Spin, k: float) -> Any:
    """Memory that is pinned already is returned as it is."""
    host = pinned(k)
    spin()
    x = host.pin_memory().to("cuda", non_blocking=True)
    host.fill_(-1)
    return awaited(x)


def computed_into_another_buffer(spin: Spin, k: float) -> Any:
    host, other = pinned(k), pinned()
    spin()
    x = host.to("cuda", non_blocking=True)
    torch.sub(host, 1, out=other)
    return awaited(x)


@pair(WRITE, computed_into_another_buffer)
def computed_into_the_source(spin: Spin, k: float) -> Any:
    host = pinned(k)
    spin()
    x = host.to("cuda", non_blocking=True)
    torch.sub(host, 1, out=host)
    return awaited(x)


def element_set_after_a_wait(spin: Spin, k: float) -> Any:
    host, x = pinned(k, n=2), device(0, n=2)
    spin()
    x.copy_(host, non_blocking=True)
    torch.cuda.synchronize()
    host[0] = -1
    return awaited(x)


@pair(WRITE, element_set_after_a_wait)
def element_set_at_once(spin: Spin, k: float) -> Any:
    host, x = pinned(k, n=2), device(0, n=2)
    spin()
    x.copy_(host, non_blocking=True)
    host[0] = -1
    return awaited(x)


def copy_within_a_graph_awaited(spin: Spin, k: float) -> Any:
    host, x, graph = pinned(k), device(0), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.copy_(host, non_blocking=True)
    spin()
    graph.replay()
    torch.cuda.current_stream().synchronize()
    host.fill_(-1)
    return awaited(x)


@pair(WRITE, copy_within_a_graph_awaited)
def copy_within_a_graph(spin: Spin, k: float) -> Any:
    """Each replay copies from the host again."""
    host, x, graph = pinned(k), device(0), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.copy_(host, non_blocking=True)
    spin()
    graph.replay()
    host.fill_(-1)
    return awaited(x)


def source_of_a_graph_read(spin: Spin, k: float) -> Any:
    """The host may read what a replay reads."""
    host, x, graph = pinned(k), device(0), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.copy_(host, non_blocking=True)
    spin()
    graph.replay()
    return host.mean()


@pair(READ, source_of_a_graph_read)
def target_of_a_graph_read(spin: Spin, k: float) -> Any:
    host, x, graph = pinned(), device(k), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        host.copy_(x, non_blocking=True)
    spin()
    graph.replay()
    return host.mean()


# two streams


def stream_as_a_context(spin: Spin, k: float) -> Any:
    side = torch.cuda.Stream()
    spin()
    x = device(k)
    with side:
        torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
        y = x * 1
    return awaited(y)


@pair(STREAMS, stream_as_a_context)
def stream_as_a_context_that_does_not_wait(spin: Spin, k: float) -> Any:
    side = torch.cuda.Stream()
    spin()
    x = device(k)
    with side:
        y = x * 1
    return awaited(y)


def stream_that_is_set(spin: Spin, k: float) -> Any:
    before, side = torch.cuda.current_stream(), torch.cuda.Stream()
    spin()
    x = device(k)
    side.wait_stream(before)
    torch.cuda.set_stream(side)
    y = x * 1
    torch.cuda.set_stream(before)
    return awaited(y)


@pair(STREAMS, stream_that_is_set)
def stream_that_is_set_and_does_not_wait(spin: Spin, k: float) -> Any:
    before, side = torch.cuda.current_stream(), torch.cuda.Stream()
    spin()
    x = device(k)
    torch.cuda.set_stream(side)
    y = x * 1
    torch.cuda.set_stream(before)
    return awaited(y)


def event_waits_on_the_current_stream(spin: Spin, k: float) -> Any:
    side, done = torch.cuda.Stream(), torch.cuda.Event()
    with torch.cuda.stream(side):
        spin()
        x = device(k)
        done.record()
    done.wait()
    return awaited(x * 1)


@pair(STREAMS, event_waits_on_the_current_stream)
def event_waits_on_its_own_stream(spin: Spin, k: float) -> Any:
    side, done = torch.cuda.Stream(), torch.cuda.Event()
    with torch.cuda.stream(side):
        spin()
        x = device(k)
        done.record()
        done.wait()
    return awaited(x * 1)


def waited_behind_the_work(spin: Spin, k: float) -> Any:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        spin()
        x = device(k)
    torch.cuda.current_stream().wait_stream(side)
    return awaited(x * 1)


@pair(STREAMS, waited_behind_the_work)
def waited_before_the_work(spin: Spin, k: float) -> Any:
    side = torch.cuda.Stream()
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.stream(side):
        spin()
        x = device(k)
    return awaited(x * 1)


def around_the_host_on_one_stream(spin: Spin, k: float) -> Any:
    """Out and in again, one behind the other."""
    host, y = pinned(), device(0)
    spin()
    host.copy_(device(k), non_blocking=True)
    y.copy_(host, non_blocking=True)
    return awaited(y)


@pair(STREAMS, around_the_host_on_one_stream)
def around_the_host_on_two_streams(spin: Spin, k: float) -> Any:
    host, y, side = pinned(), device(0), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    spin()
    host.copy_(device(k), non_blocking=True)
    with torch.cuda.stream(side):
        y.copy_(host, non_blocking=True)
    return awaited(y)


def _loaded(batches: Any, k: float, spin: Spin) -> None:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        spin()
        batch = device(k)
    batches.put((batch, side.record_event()))


def loaded_by_a_thread(spin: Spin, k: float) -> Any:
    """A thread's current stream is its own."""
    batches: Any = queue.Queue()
    thread = threading.Thread(target=_loaded, args=(batches, k, spin))
    thread.start()
    batch, loaded = batches.get()
    thread.join()
    torch.cuda.current_stream().wait_event(loaded)
    return awaited(batch * 1)


@pair(STREAMS, loaded_by_a_thread)
def loaded_by_a_thread_and_used_at_once(spin: Spin, k: float) -> Any:
    batches: Any = queue.Queue()
    thread = threading.Thread(target=_loaded, args=(batches, k, spin))
    thread.start()
    batch, _ = batches.get()
    thread.join()
    return awaited(batch * 1)


def gradient_of_the_forward_s_stream(spin: Spin, k: float) -> Any:
    """Autograd works on the stream of the forward pass, wherever `backward()` is called."""
    weight, side = torch.zeros(64, device="cuda", requires_grad=True), torch.cuda.Stream()
    spin()
    loss = (weight * k).sum()
    with torch.cuda.stream(side):
        loss.backward()
    return awaited(weight.grad * 1)


@pair(STREAMS, gradient_of_the_forward_s_stream)
def gradient_of_another_stream(spin: Spin, k: float) -> Any:
    weight, side = torch.zeros(64, device="cuda", requires_grad=True), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        spin()
        (weight * k).sum().backward()
    return awaited(weight.grad * 1)


# a pipeline of an encoder and a decoder


def encoder_before_decoder(spin: Spin, k: float) -> Any:
    """The decoder works on a batch while the encoder works on the next."""
    current, encode, decode = torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()
    features, built = None, []
    for i in range(3):
        x = device(k + i)
        if features is not None:
            with torch.cuda.stream(decode):
                decode.wait_stream(encode)
                built.append(features * 1)
        encode.wait_stream(current)
        with torch.cuda.stream(encode):
            spin()
            features = x * 1
            features.record_stream(decode)
        x.record_stream(encode)
    return awaited(built[0])


@pair(STREAMS, encoder_before_decoder)
def decoder_that_does_not_wait_for_the_encoder(spin: Spin, k: float) -> Any:
    current, encode, decode = torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()
    features, built = None, []
    for i in range(3):
        x = device(k + i)
        if features is not None:
            with torch.cuda.stream(decode):
                built.append(features * 1)
        encode.wait_stream(current)
        with torch.cuda.stream(encode):
            spin()
            features = x * 1
            features.record_stream(decode)
        x.record_stream(encode)
    return awaited(built[0])


@pair(STREAMS, encoder_before_decoder)
def encoder_that_does_not_wait_for_its_input(spin: Spin, k: float) -> Any:
    encode, decode = torch.cuda.Stream(), torch.cuda.Stream()
    features, built = None, []
    for i in range(3):
        spin()
        x = device(k + i)
        if features is not None:
            with torch.cuda.stream(decode):
                decode.wait_stream(encode)
                built.append(features * 1)
        with torch.cuda.stream(encode):
            features = x * 1
            features.record_stream(decode)
        x.record_stream(encode)
    return awaited(built[0])


# memory that is handed back


def freed_after_the_host_waited(spin: Spin, k: float) -> Any:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x = device(k)
    torch.cuda.current_stream().wait_stream(side)
    spin()
    y = x * 1
    torch.cuda.current_stream().synchronize()
    del x
    with torch.cuda.stream(side):
        device(-1)
    return awaited(y)


@pair(FREED, freed_after_the_host_waited)
def freed_after_the_host_waited_for_another(spin: Spin, k: float) -> Any:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x = device(k)
    torch.cuda.current_stream().wait_stream(side)
    spin()
    y = x * 1
    side.synchronize()
    del x
    with torch.cuda.stream(side):
        device(-1)
    return awaited(y)
