"""A block under `pretend_gpu`: what it finds, what it answers, and that nothing of it remains."""

from __future__ import annotations

import contextlib
import copy
import importlib
import io
import json
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import syncscan
from syncscan import report
from syncscan.errors import UsageError
from syncscan.model.finding import Finding

torch = pytest.importorskip("torch")
HERE = Path(__file__).name


def dry(block: Callable[[], Any]) -> syncscan.dryrun.pretend.Pretended:  # type: ignore[name-defined]
    """Run a block on the simulated device, and return its report."""
    with syncscan.pretend_gpu() as rec:
        block()
    return rec


def found(block: Callable[[], Any]) -> list[tuple[str, int]]:
    """Rule and line, counted from the block's own first, of each finding."""
    first = block.__code__.co_firstlineno
    return sorted((f.rule, _line(f) - first) for f in dry(block).findings)


def _line(finding: Finding) -> int:
    source = finding.source
    assert source is not None
    assert source.exact
    assert Path(source.file).name == HERE
    return source.line


def test_reads_of_the_device_wait_and_reads_of_the_host_do_not() -> None:
    """The border between the two is followed through every op: `item()` of a CPU tensor is free."""

    def block() -> None:
        x, host = torch.ones(4, device="cuda"), torch.ones(4)
        x.sum().item()
        host.sum().item()
        (x.cpu() * 2).sum().item()
        x[1:].view(-1).tolist()

    assert found(block) == [("cpu", 4), ("item", 2), ("tolist", 5)]


def test_a_constructor_whose_result_is_indexed_copies_its_data_and_no_index() -> None:
    """A list in brackets is an index, and a table that is moved to be indexed is told as one."""

    def block() -> None:
        t, steps = torch.arange(3, device="cuda"), torch.arange(9).numpy()
        table = torch.tensor(list(range(9)), device="cuda")
        table[t]
        table[[0, 2]]
        torch.from_numpy(steps).to(device="cuda")[t]

    assert found(block) == [("cpu-index", 4), ("cpu-index", 5), ("tensor-constructor", 2)]
    titles = {_line(f) - block.__code__.co_firstlineno: f.title for f in dry(block).findings}
    assert ("an index" in titles[4], "a table" in titles[5]) == (True, True)


def test_a_backward_wait_is_led_to_its_forward_line() -> None:
    """The mask is counted again on autograd's thread; line and scope are those of the indexing."""

    def block() -> None:
        x = torch.ones(4, device="cuda", requires_grad=True)
        mask = x > 0
        with torch.profiler.record_function("select"):
            chosen = x[mask]
        chosen.sum().backward()

    rec = dry(block)
    first = block.__code__.co_firstlineno
    assert sorted((f.rule, f.phase.value, _line(f) - first, f.scope) for f in rec.findings) == [
        ("boolean-index", "forward", 4, ("select",)),
        ("index-backward", "backward", 4, ("select",)),
    ]


def test_modules_are_named() -> None:
    """The path of the module around a wait is as capture records it."""

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Sequential(torch.nn.Linear(2, 2), Reader())

        def forward(self, x: Any) -> Any:
            return self.inner(x)

    class Reader(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * x.max().item()

    def block() -> None:
        net = Net().to("cuda")
        net(torch.ones(1, 2, device="cuda"))

    findings = {f.rule: f.module for f in dry(block).findings}
    assert findings["item"] == ("Net", "inner", "1")


def test_values_are_real() -> None:
    """Control flow takes the path that the data say."""

    def block() -> None:
        x = torch.arange(4, device="cuda")
        if (x > 2).any():
            x.sum().item()
        if (x > 5).any():
            x.cpu()

    assert [rule for rule, _ in found(block)] == ["item", "tensor-bool", "tensor-bool"]


def test_it_answers_as_a_device() -> None:
    """Programs query tensors and torch.cuda, and get a device's answers."""
    with syncscan.pretend_gpu():
        x = torch.ones(2).to("cuda")
        text = (x.device, x.is_cuda, x.is_cpu, x.get_device(), x.type(), (x * 2).device.type, x.cpu().device.type)
        cuda = (torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.current_device())
        with pytest.raises(TypeError, match="numpy"):
            x.numpy()
        pinned = torch.ones(2).pin_memory()
        assert (pinned.is_pinned(), torch.ones(2).is_pinned()) == (True, False)
        with torch.device("cuda"):
            assert torch.zeros(2).is_cuda
        assert copy.deepcopy(torch.nn.Linear(2, 2, device="cuda")).weight.is_cuda
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        end.record()
        assert begin.elapsed_time(end) >= 0
    assert text == (torch.device("cuda:0"), True, False, 0, "torch.cuda.FloatTensor", "cuda", "cpu")
    assert cuda == (True, 1, 0)
    assert x.device.type == "cpu"


def test_a_default_device_is_the_pretended_one() -> None:
    """`torch.set_default_device` holds for factories, as on a GPU."""

    def block() -> None:
        torch.set_default_device("cuda")
        try:
            torch.ones(2).sum().item()
        finally:
            torch.set_default_device(None)

    assert found(block) == [("item", 3)]


def test_what_is_saved_from_the_device_is_loaded_there() -> None:
    """`torch.save` waits for each tensor; `map_location` decides where it comes back."""
    places = []

    def block() -> None:
        file = io.BytesIO()
        torch.save({"w": torch.ones(2, device="cuda")}, file)
        for place in (None, "cpu", "cuda"):
            file.seek(0)
            places.append(torch.load(file, map_location=place)["w"].is_cuda)

    rules = {rule for rule, _ in found(block)}
    assert (places, "checkpoint-save" in rules) == ([True, False, True], True)


def test_a_tensor_on_the_device_is_not_pinned() -> None:
    """CUDA refuses it with this sentence, and so does a loader of such tensors that pins."""

    def block() -> None:
        with pytest.raises(RuntimeError, match=r"cannot pin 'torch\.cuda\.FloatTensor' only dense CPU tensors"):
            torch.ones(2, device="cuda").pin_memory()
        data = torch.utils.data.TensorDataset(torch.ones(4, device="cuda"))
        with pytest.raises(RuntimeError, match="cannot pin"):
            list(torch.utils.data.DataLoader(data, batch_size=2, pin_memory=True))

    assert found(block) == []


def test_a_training_step_without_reads_waits_for_nothing() -> None:
    """Pinned batches, autocast, a scaler with a fused optimizer, clipping, checkpointing: no wait, on purpose."""

    def block() -> None:
        from torch.utils.checkpoint import checkpoint

        net = torch.nn.Linear(4, 4, device="cuda")
        optimizer = torch.optim.AdamW(net.parameters(), fused=True)
        scaler = torch.amp.GradScaler("cuda")
        data = torch.utils.data.TensorDataset(torch.ones(4, 4))
        for (batch,) in torch.utils.data.DataLoader(data, batch_size=2, pin_memory=True):
            x = batch.to("cuda", non_blocking=True)
            with torch.autocast("cuda", torch.bfloat16):
                loss = checkpoint(net, x, use_reentrant=False).float().square().mean()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()

    assert [rule for rule, _ in found(block) if rule not in ("tensor-constructor", "to-device")] == []


def test_costs_are_null() -> None:
    """Nothing was timed, and no format says a time."""
    rec = dry(lambda: torch.ones(2, device="cuda").sum().item())
    document = json.loads(report.render(rec.analysis, "json"))
    costs = ("wait_us", "bubble_us", "moved_us", "recoverable_us", "recoverable_range_us")
    assert [document["findings"][0][cost] for cost in costs] == [None] * 5
    assert [document["step"][time] for time in ("observed_us", "host_us", "wait_us", "device_idle_us")] == [None] * 4
    assert " ms" not in report.render(rec.analysis, "text")


def test_an_op_of_an_extension_is_named_with_its_line() -> None:
    """It runs, and that nobody knows whether it waits is said where the verdict would stand."""
    from torch import library as libraries

    library = libraries.Library("syncscan_test", "FRAGMENT")
    library.define("radius(Tensor x) -> Tensor")
    library.impl("radius", lambda x: x.clone(), "CompositeExplicitAutograd")

    def block() -> None:
        torch.ops.syncscan_test.radius(torch.ones(2, device="cuda"))

    text = dry(block).analysis.integrity.reason()
    assert "1 op of 1 not recognized" in text
    assert f"syncscan_test::radius ({__file__}:{block.__code__.co_firstlineno + 1})" in text


def test_pretences_do_not_nest() -> None:
    """A second one is refused with a sentence, and the first goes on."""
    with syncscan.pretend_gpu():
        with pytest.raises(UsageError, match="in use"), syncscan.pretend_gpu():
            pass
        assert torch.ones(1, device="cuda").is_cuda


@pytest.mark.parametrize("raises", [False, True])
def test_nothing_of_it_remains(raises: bool) -> None:
    """Every attribute of torch's modules and classes is the very same object afterwards, also when the block raises."""
    with syncscan.pretend_gpu():
        torch.ones(1, device="cuda").sum().item()
        str(torch.ones(1, device="cuda"))  # what torch imports on first use is there now
    before = _attributes()
    try:
        with syncscan.pretend_gpu():
            torch.ones(1, device="cuda").sum().item()
            if raises:
                raise KeyError
    except KeyError:
        pass
    assert {name: value for name, value in _attributes().items() if before.get(name) != value} == {}
    assert torch.overrides._get_current_function_mode_stack() == []
    with pytest.raises((RuntimeError, AssertionError)):
        torch.ones(1, device="cuda") if not torch.cuda.is_available() else pytest.skip("there is a GPU")


def _attributes() -> dict[str, int]:
    """The identity of every attribute of torch's modules, and of the classes that a pretence touches."""
    owners = {name: module for name, module in list(sys.modules.items()) if name.split(".")[0] == "torch"}
    classes = (
        torch.Tensor,
        torch.UntypedStorage,
        torch.amp.autocast_mode.autocast,
        torch.autograd.graph.saved_tensors_hooks,
    )
    owners |= {kind.__qualname__: kind for kind in classes}
    return {f"{owner}.{name}": id(value) for owner, it in owners.items() for name, value in _vars(it)}


def _vars(owner: Any) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in vars(owner).items() if name not in ("__builtins__", "CURRENT_DEVICE")]


def test_threads_that_begin_meanwhile_are_seen() -> None:
    """Torch's modes are a thread's own: each new thread, and each task of a pool that was there, gets them."""

    def read() -> None:
        with torch.profiler.record_function("worker"):
            torch.ones(2, device="cuda").sum().item()

    before = ThreadPoolExecutor(1)
    before.submit(int).result()

    def block() -> None:
        before.submit(read).result()
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
        torch.ones(2, device="cuda").sum().item()

    findings = dry(block).findings
    assert sorted((f.scope, f.count) for f in findings) == [((), 1), (("worker",), 2)]
    assert {f.thread for f in findings} == {"thread 1 (main)", "thread 3 (worker 0)"}
    assert before.submit(lambda: torch.overrides._get_current_function_mode_stack()).result() == []


def test_a_triton_kernel_is_launched_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch waits for nothing, and its result is said to be missing; a module of Triton's shape stands for it."""
    packages = tmp_path / "site-packages"
    (packages / "triton" / "runtime").mkdir(parents=True)
    for name in ("__init__.py", "runtime/__init__.py"):
        (packages / "triton" / name).touch()
    (packages / "triton" / "runtime" / "jit.py").write_text(
        "class JITFunction:\n"
        "    def __init__(self, fn): self.fn = fn\n"
        "    def __getitem__(self, grid): return lambda *args, **kwargs: self.run(*args, grid=grid, **kwargs)\n"
        "    def run(self, *args, **kwargs): raise RuntimeError('no driver')\n"
    )
    monkeypatch.syspath_prepend(str(packages))
    for name in ("triton", "triton.runtime", "triton.runtime.jit"):
        monkeypatch.delitem(sys.modules, name, raising=False)

    def block() -> None:
        jit: Any = importlib.import_module("triton.runtime.jit")

        def add(x: Any) -> None: ...

        for _ in range(2):
            jit.JITFunction(add)[(1,)](torch.ones(2, device="cuda"))

    pretended = dry(block)
    capture = pretended.analysis.trace.info.capture
    assert capture.coverage is not None
    assert (capture.coverage.ops, capture.coverage.gaps) == (2, ())
    assert [note for note in pretended.coverage if "Triton" in note] == [
        "Triton kernels were launched and not run: what they would compute is missing, so values such as a loss may be"
        " NaN, and where the program branches on them, waits may differ from a GPU's."
    ]
    for name in ("triton", "triton.runtime", "triton.runtime.jit"):
        sys.modules.pop(name, None)


def _doubled(x: torch.Tensor) -> torch.Tensor:
    return x + x


class _Scripted:
    def doubled(self, x: torch.Tensor) -> torch.Tensor:
        return _doubled(x)


def test_a_scripted_class_finds_the_names_of_its_module() -> None:
    """The compiler looks them up in the frame that calls `torch.jit.script`."""
    results = []
    dry(lambda: results.append(torch.jit.script(_Scripted)().doubled(torch.ones(2)).tolist()))
    assert results == [[2.0, 2.0]]


def test_an_op_without_a_cpu_kernel_gives_zeros() -> None:
    """Only a GPU has it: the shapes are right, the values aren't, and both the call and that are said."""
    shapes = []

    def block() -> None:
        x = torch.ones(1, 2, 4, 8, device="cuda")
        shapes.append(torch.ops.aten._scaled_dot_product_efficient_attention(x, x, x, None, False)[0].shape)

    text = " ".join(dry(block).coverage)
    assert shapes == [(1, 2, 4, 8)]
    assert "aten::_scaled_dot_product_efficient_attention, which can't run on a CPU: its results are zeros" in text


def test_a_block_that_fails_says_so() -> None:
    """The report covers what ran, and says that the rest wasn't seen."""
    rec = syncscan.pretend_gpu()
    with pytest.raises(ZeroDivisionError), rec:
        1 / torch.zeros((), dtype=torch.int64, device="cuda").item()
    assert [f.rule for f in rec.findings] == ["item"]
    assert "The program failed (ZeroDivisionError: division by zero), so the rest of it wasn't seen." in rec.coverage


@pytest.mark.parametrize("place", ["cuda", "cpu"])
def test_data_parallel_runs_on_the_one_device(place: str) -> None:
    """`nn.DataParallel` hands the whole batch to its only replica; a batch on the host is copied without a wait."""
    results = []

    def block() -> None:
        model = torch.nn.DataParallel(torch.nn.Linear(4, 4)).cuda()
        batch = torch.ones(2, 4).pin_memory() if place == "cpu" else torch.ones(2, 4, device="cuda")
        out = model(batch)
        out.sum().backward()
        results.extend([out.device.type, tuple(out.shape)])

    matches = [finding.rule for finding in dry(block).findings]
    assert (results, matches) == (["cuda", (2, 4)], ["to-device"])  # the model's own way to the device


def test_gathering_of_data_parallel_stays_on_the_device() -> None:
    """The replicas' results are joined on the device, and nothing waits for it."""
    rec = dry(lambda: torch.nn.parallel.comm.gather([torch.ones(2, device="cuda")] * 2).mul_(2))
    assert rec.findings == ()


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad, contextlib.nullcontext])
def test_inference_tensors_wait_by_the_same_rules(mode: Any) -> None:
    """Without autograd a composed op comes as one: what it is made of is what waits on a device."""

    def block() -> None:
        with mode():
            x = torch.ones(3, device="cuda")
            x.sum().item()
            if x.any():
                x[x > 0].tolist()

    assert sorted(finding.rule for finding in dry(block).findings) == sorted(
        ["item", "tensor-bool", "boolean-index", "tolist"]
    )


def test_an_inference_tensor_waits_outside_of_the_mode_too() -> None:
    """It was made under `inference_mode`, and is read after it."""

    def block() -> None:
        with torch.inference_mode():
            x = torch.ones(3, device="cuda").sum()
        x.item()

    assert [finding.rule for finding in dry(block).findings] == ["item"]


def test_a_block_s_phases_are_those_of_its_own_loops() -> None:
    """A loop around the block isn't part of what is watched; what lies between its steps is in `findings` too."""
    for _ in range(1):
        with syncscan.pretend_gpu() as rec:
            x = torch.ones(4, device="cuda")
            x.sum().item()
            for _ in range(2):
                for _ in range(3):
                    x.cpu()
                for _ in range(2):
                    rec.step()
                    x.tolist()
            rec.end_step()
    run = rec.analysis.run
    assert run is not None
    assert [(phase.name, phase.rounds, phase.every) for phase in run.phases] == [("other work", 3, None)]
    assert [(f.rule, f.per_step) for f in rec.findings if not f.intended] == [("tolist", 1.0), ("cpu", 1.0)]


def test_memory_that_is_freed_has_its_line() -> None:
    """No callback tells of it, as in a capture: the line is known from the call around it."""

    def block() -> None:
        torch.ones(4, device="cuda")
        torch.cuda.empty_cache()

    (finding,) = dry(block).findings
    assert (finding.rule, _line(finding)) == ("empty-cache", block.__code__.co_firstlineno + 2)


def test_a_table_on_the_host_is_read_as_an_index_is() -> None:
    """An element as an index is one too; nothing else that is read is taken for an index."""

    def block() -> None:
        table, steps = torch.linspace(0, 1, 10), torch.arange(10, device="cuda")
        for step in steps[:4]:
            table[step]
        table[steps[3]]
        steps.cuda()[steps[3]]
        table[: steps[4]]
        steps[3].item()
        table[3]

    assert found(block) == [
        ("item", 7),
        ("tensor-index", 3),
        ("tensor-index", 4),
        ("tensor-index", 5),
        ("tensor-index", 6),
    ]
    advice = {f.fix for f in dry(block).findings if f.rule == "tensor-index"}
    assert all(text.startswith("If x is a table on the host, put it on the device") for text in advice)


@pytest.mark.parametrize("index", [[1, 2], [True, False, True]])
def test_a_table_on_the_host_is_not_indexed_by_a_vector_on_the_device(index: list[int]) -> None:
    """It raises as on a GPU, whether it is read or written; a device's table takes a vector of the host."""
    with syncscan.pretend_gpu():
        table, on_device = torch.arange(3.0), torch.tensor(index).cuda()
        for use in (lambda: table[on_device], lambda: table.__setitem__(on_device, 0.0)):
            with pytest.raises(RuntimeError, match="on the same device as the indexed tensor"):
                use()
        assert table.cuda()[torch.tensor(index)].is_cuda
        assert table.tolist() == [0, 1, 2]


def test_a_tensor_of_device_numbers_is_to_be_stacked() -> None:
    """Its memory is made once, and each number is read; wherever the result lies."""

    def block() -> None:
        a = torch.ones(2, device="cuda")
        torch.tensor([a.sum(), a.max()])
        torch.as_tensor([[a.sum(), a.max()]])
        torch.tensor([a.sum(), 2.0], device="cuda")
        torch.tensor([float(a.sum()), 2.0])

    assert found(block) == [
        ("item", 5),
        ("tensor-of-tensors", 2),
        ("tensor-of-tensors", 3),
        ("tensor-of-tensors", 4),
        ("tensor-of-tensors", 4),
    ]


def test_a_scheduler_that_is_given_the_loss_is_named() -> None:
    """It isn't the optimizer that reads it."""

    def block() -> None:
        x = torch.ones(2, device="cuda", requires_grad=True)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(torch.optim.SGD([x]))
        scheduler.step(x.sum())

    (finding,) = dry(block).findings
    assert finding.title == "the learning-rate scheduler waits for the value that it is given"
    assert "once per epoch" in finding.fix


def test_one_print_is_one_place() -> None:
    """Many lines of torch wait in it."""

    def block() -> None:
        x = torch.ones(4, device="cuda") / 3
        str(x)
        str(x.mean())

    findings = dry(block).findings
    first = block.__code__.co_firstlineno
    assert sorted((f.rule, _line(f) - first) for f in findings) == [("print-tensor", 2), ("print-tensor", 3)]
    assert all(f.count > 3 and f.in_library is None for f in findings)


@pytest.fixture
def extension() -> Iterator[Any]:
    """A library of ops with a CPU kernel of which torch sees nothing inside."""
    library = torch.library.Library("syncscan_ext", "FRAGMENT")
    for op in ("rows", "scaled"):
        library.define(f"{op}(Tensor x) -> Tensor")
        library.impl(op, lambda x: torch.from_numpy(x.numpy()[:2].copy()), "CPU")
    yield library
    library._destroy()


def test_a_fake_implementation_tells_whether_an_op_waits_for_a_size(extension: Any) -> None:
    """A result whose size isn't known from the arguments' sizes waits; one that is known is a launch."""
    torch.library.register_fake(
        "syncscan_ext::rows", lambda x: x.new_empty(torch.library.get_ctx().new_dynamic_size()), lib=extension
    )
    torch.library.register_fake("syncscan_ext::scaled", lambda x: torch.empty_like(x[:2]), lib=extension)

    def block() -> None:
        x = torch.ones(4, device="cuda")
        torch.ops.syncscan_ext.rows(x)
        torch.ops.syncscan_ext.scaled(x)

    rec = dry(block)
    assert [_line(f) - block.__code__.co_firstlineno for f in rec.findings] == [2]
    coverage = rec.analysis.trace.info.capture.coverage
    assert coverage is not None
    assert coverage.gaps == ()


def test_a_custom_op_in_python_is_seen_through() -> None:
    """It runs as the program's own code does: what waits in it has its line."""

    @torch.library.custom_op("syncscan_own::clipped", mutates_args=())
    def clipped(x: torch.Tensor) -> torch.Tensor:
        return x.clamp(max=x.sum().item())

    def block() -> None:
        assert clipped(torch.ones(4, device="cuda")).is_cuda

    (finding,) = dry(block).findings
    assert (finding.rule, _line(finding)) == ("item", clipped._init_fn.__code__.co_firstlineno + 2)


def test_an_op_that_calls_functions_is_seen_through() -> None:
    """A condition is read; attention that isn't compiled copies a number to the device: 22 of 22 calls on an H200."""
    attention: Any = importlib.import_module("torch.nn.attention.flex_attention")

    def block() -> None:
        x = torch.ones(1, 1, 4, 4, device="cuda")
        torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - x.sum().item(), (x,))
        torch.cond(x.sum() < 0, lambda x: x + 1, lambda x: x * x.sum().item(), (x,))
        assert attention.flex_attention(x, x, x).is_cuda

    assert found(block) == [("item", 3), ("tensor-bool", 2), ("tensor-bool", 3), ("tensor-constructor", 4)]


def test_counters_of_an_optimizer_under_a_default_device_are_read_back() -> None:
    """They are made without a device, and then lie on the default one."""

    def block() -> None:
        torch.set_default_device("cuda")
        try:
            net = torch.nn.Linear(2, 2)
            optimizer = torch.optim.Adamax(net.parameters())
            net(torch.ones(1, 2)).sum().backward()
            optimizer.step()
        finally:
            torch.set_default_device(None)

    reads = [f for f in dry(block).findings if f.rule == "optimizer-readback"]
    assert sum(f.count for f in reads) == 2


@pytest.mark.parametrize("name", ["tensor", None])
def test_a_module_moves_beside_a_tensor(name: str | None) -> None:
    """`module.to(tensor)` takes its device and type."""

    def block() -> None:
        anchor = torch.ones(1, device="cuda")
        net = torch.nn.Linear(2, 2)
        assert (net.to(**{name: anchor}) if name else net.to(anchor)).weight.is_cuda
        assert (net.bias.to(**{name: anchor}) if name else net.bias.to(anchor)).is_cuda

    assert [finding.rule for finding in dry(block).findings] == ["to-device"]


@pytest.mark.parametrize("device", ["cuda", torch.device("cuda"), torch.device("cuda", 0)])
def test_a_module_moves_to_a_device_that_is_named_by_keyword(device: Any) -> None:
    """`module.to(device=device)` copies each parameter and buffer, as `module.to(device)` does."""
    net = torch.nn.BatchNorm1d(2)

    def block() -> None:
        assert all(tensor.is_cuda for tensor in net.to(device=device, dtype=None).state_dict().values())

    assert sum(finding.count for finding in dry(block).findings) == 5


def test_what_vmap_adds_to_an_assignment_is_on_the_device() -> None:
    """Its own index of the mapped axis, and what the program makes beside a tensor, as in `create_block_mask`."""

    def filled(indices: Any) -> Any:
        mask = indices.new_zeros(3, 4)
        mask[torch.arange(3, device="cuda")[:, None], indices] = mask.new_ones(())
        return mask

    def block() -> None:
        torch.vmap(filled)(torch.zeros(2, 3, 4, device="cuda", dtype=torch.int64))

    assert dry(block).findings == ()
