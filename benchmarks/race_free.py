"""Run right programs of libraries, and patterns that look wrong, dry: none of them may have a race.

    python -m benchmarks.race_free [NAME …]

Each program trains, infers or copies for a few steps on the simulated device, as the library's documentation has it.
One whose library isn't installed is passed over, and said. Prints a table; exits with 1 where one has a race or fails.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import syncscan

torch: Any = importlib.import_module("torch")
Run = Callable[[], Any]
PROGRAMS: dict[str, tuple[str, Run]] = {}
"""Name → the libraries that it needs, and the program."""


def program(library: str) -> Callable[[Run], Run]:
    """Note a program of a library."""

    def noted(run: Run) -> Run:
        PROGRAMS[run.__name__] = (library, run)
        return run

    return noted


def _network() -> Any:
    nn = torch.nn
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.GELU(), nn.Dropout(0.1), nn.Linear(16, 4)).cuda()


def _loader(count: int = 12, **options: Any) -> Any:
    data = torch.utils.data.TensorDataset(torch.rand(count, 8), torch.randint(0, 4, (count,)))
    return torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True, **options)


def _step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


# torch's own


class Prefetcher:
    """Copies the next batch on a stream of its own, as apex's and DeepLearningExamples' `data_prefetcher` do.

    Args:
        loader: of pairs of pinned tensors.
    """

    def __init__(self, loader: Any) -> None:
        self.loader, self.stream = iter(loader), torch.cuda.Stream()
        self.preload()

    def preload(self) -> None:
        """Start to copy the next batch."""
        try:
            self.x, self.y = next(self.loader)
        except StopIteration:
            self.x = self.y = None
            return
        with torch.cuda.stream(self.stream):
            self.x, self.y = (t.cuda(non_blocking=True) for t in (self.x, self.y))
            self.x = self.x.float().sub_(0.5).div_(0.25)

    def next(self) -> tuple[Any, Any]:
        """Return the batch that was copied, and start with the one after it."""
        torch.cuda.current_stream().wait_stream(self.stream)
        x, y = self.x, self.y
        if x is not None:
            x.record_stream(torch.cuda.current_stream())
            y.record_stream(torch.cuda.current_stream())
        self.preload()
        return x, y


@program("torch")
def prefetcher() -> None:
    model = _network()
    optimizer, batches = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9), Prefetcher(_loader())
    x, y = batches.next()
    while x is not None:
        _step(model, optimizer, x, y)
        x, y = batches.next()


@program("torch")
def gradient_accumulation() -> None:
    model, scaler = _network(), torch.amp.GradScaler("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for k, (x, y) in enumerate(_loader()):
        x, y = x.to("cuda", non_blocking=True), y.to("cuda", non_blocking=True)
        with torch.autocast("cuda"):
            loss = torch.nn.functional.cross_entropy(model(x), y) / 2
        scaler.scale(loss).backward()
        if k % 2:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    loss.item()


@program("torch")
def activations_saved_in_pinned_memory() -> None:
    model = _network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        with torch.autograd.graph.save_on_cpu(pin_memory=True):
            _step(model, optimizer, torch.rand(4, 8, device="cuda"), torch.randint(0, 4, (4,), device="cuda"))


@program("torch")
def activations_offloaded_on_a_stream() -> None:
    """Copies out behind the forward pass, and in again before the backward pass, on a stream of their own."""
    model, side = _network(), torch.cuda.Stream()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def out(x: Any) -> Any:
        if not x.is_cuda:
            return x
        host = torch.empty(x.shape, dtype=x.dtype, pin_memory=True)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            host.copy_(x, non_blocking=True)
        x.record_stream(side)
        return host

    def back(host: Any) -> Any:
        if not host.is_pinned():
            return host
        with torch.cuda.stream(side):
            x = host.to("cuda", non_blocking=True)
        torch.cuda.current_stream().wait_stream(side)
        x.record_stream(torch.cuda.current_stream())
        return x

    for _ in range(3):
        with torch.autograd.graph.saved_tensors_hooks(out, back):
            _step(model, optimizer, torch.rand(4, 8, device="cuda"), torch.randint(0, 4, (4,), device="cuda"))


@program("torch")
def training_captured_in_a_graph() -> None:
    """As torch's notes on CUDA graphs have it: warmed up on a side stream, captured, fed by copies."""
    model = _network()
    optimizer = torch.optim.Adam(model.parameters(), capturable=True)
    x, y = torch.zeros(4, 8, device="cuda"), torch.zeros(4, dtype=torch.long, device="cuda")
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            _step(model, optimizer, x, y)
    torch.cuda.current_stream().wait_stream(side)
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    for batch, labels in _loader():
        x.copy_(batch, non_blocking=True)
        y.copy_(labels, non_blocking=True)
        graph.replay()
    loss.item()


@program("torch")
def checkpoint_copied_behind_training() -> None:
    """The state is copied out without waiting; a thread awaits the event, and writes it."""
    import threading

    model = _network()
    optimizer, copies = torch.optim.SGD(model.parameters(), 0.1), torch.cuda.Stream()
    for x, y in _loader():
        _step(model, optimizer, x.cuda(non_blocking=True), y.cuda(non_blocking=True))
        copies.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(copies):
            state = {name: t.detach().to("cpu", non_blocking=True) for name, t in model.state_dict().items()}
        copied = copies.record_event()
        torch.cuda.current_stream().wait_event(copied)  # the next step writes to the weights

        def write(state: Any = state, copied: Any = copied) -> None:
            copied.synchronize()
            with tempfile.TemporaryFile() as file:
                torch.save(state, file)

        thread = threading.Thread(target=write)
        thread.start()
        thread.join()


@program("torch")
def weights_streamed_layer_by_layer() -> None:
    """Layers' weights lie in pinned memory and are copied ahead on a stream, as CPU offload does it."""
    layers = [torch.nn.Linear(8, 8) for _ in range(4)]
    hosts = [layer.weight.detach().pin_memory() for layer in layers]
    side, x = torch.cuda.Stream(), torch.rand(4, 8, device="cuda")

    def fetched(k: int) -> Any:
        with torch.cuda.stream(side):
            return hosts[k].to("cuda", non_blocking=True)

    for _ in range(3):
        following = fetched(0)
        for k in range(len(hosts)):
            torch.cuda.current_stream().wait_stream(side)
            weight = following
            weight.record_stream(torch.cuda.current_stream())
            following = fetched((k + 1) % len(hosts))
            x = torch.nn.functional.linear(x, weight).relu()
    x.sum().item()


@program("torch")
def averages_and_schedules() -> None:
    model = _network()
    averaged = torch.optim.swa_utils.AveragedModel(model)
    optimizer = torch.optim.RMSprop(model.parameters(), 0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=8)
    best: list[Any] = []
    for x, y in _loader():
        loss = _step(model, optimizer, x.cuda(non_blocking=True), y.cuda(non_blocking=True))
        averaged.update_parameters(model)
        schedule.step()
        best.append(loss.detach().to("cpu", non_blocking=True))
    torch.cuda.synchronize()
    torch.stack(best).mean().item()


@program("torch")
def recurrent_with_packed_sequences() -> None:
    lstm, embed = torch.nn.LSTM(8, 8, batch_first=True).cuda(), torch.nn.Embedding(16, 8).cuda()
    for _ in range(3):
        tokens, lengths = torch.randint(0, 16, (4, 6)).pin_memory(), torch.tensor([6, 5, 3, 1])
        x = embed(tokens.to("cuda", non_blocking=True))
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        out, _ = torch.nn.utils.rnn.pad_packed_sequence(lstm(packed)[0], batch_first=True)
        out.sum().backward()


@program("torch")
def optimizer_in_the_backward_pass() -> None:
    """A hook steps each parameter on a stream of its own, which the next forward pass waits for."""
    model, side = _network(), torch.cuda.Stream()
    optimizers = {p: torch.optim.SGD([p], 0.1) for p in model.parameters()}

    def stepped(parameter: Any) -> None:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            optimizers[parameter].step()
            parameter.grad.record_stream(side)
            optimizers[parameter].zero_grad()

    for parameter in optimizers:
        parameter.register_post_accumulate_grad_hook(stepped)
    for x, y in _loader():
        torch.cuda.current_stream().wait_stream(side)
        predicted = model(x.cuda(non_blocking=True))
        torch.nn.functional.cross_entropy(predicted, y.cuda(non_blocking=True)).backward()
    torch.cuda.synchronize()


@program("torch")
def gradients_offloaded_in_hooks() -> None:
    """Each gradient is copied to pinned memory on a stream; the host steps after its event."""
    model, side, copied = torch.nn.Linear(8, 4).cuda(), torch.cuda.Stream(), {}
    hosts = {p: torch.empty(p.shape, pin_memory=True) for p in model.parameters()}
    weights = {p: p.detach().cpu() for p in model.parameters()}

    def offloaded(parameter: Any) -> None:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            hosts[parameter].copy_(parameter.grad, non_blocking=True)
            copied[parameter] = side.record_event()
        parameter.grad.record_stream(side)
        parameter.grad = None

    for parameter in hosts:
        parameter.register_post_accumulate_grad_hook(offloaded)
    for x, y in _loader():
        torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
        for parameter, weight in weights.items():
            copied[parameter].synchronize()
            parameter.data.copy_(weight.sub_(hosts[parameter], alpha=0.1))


@program("torch")
def graphed_callables() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).cuda()
    graphed = torch.cuda.make_graphed_callables(model, (torch.rand(4, 8, device="cuda"),))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for x, y in _loader():
        _step(graphed, optimizer, x.cuda(non_blocking=True), y.cuda(non_blocking=True))


@program("torch")
def checkpointed_on_a_side_stream() -> None:
    """Forward, recomputation, backward and step on a stream that waits, and that the caller waits for."""
    model, side = _network(), torch.cuda.Stream()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for x, y in _loader():
        x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            predicted = torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False)
            torch.nn.functional.cross_entropy(predicted, y).backward()
            optimizer.step()
            optimizer.zero_grad()
        torch.cuda.current_stream().wait_stream(side)
        x.record_stream(side)
        y.record_stream(side)


# of other libraries


def _llama() -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes: dict[str, Any] = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2}
    return LlamaForCausalLM(LlamaConfig(**sizes, num_attention_heads=2, pad_token_id=0, eos_token_id=None)).cuda()


@program("transformers")
def transformers_training() -> None:
    model = _llama()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        tokens = torch.randint(1, 64, (2, 8)).pin_memory().to("cuda", non_blocking=True)
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@program("transformers")
def transformers_generation() -> None:
    _llama().eval().generate(torch.randint(1, 64, (1, 4), device="cuda"), max_new_tokens=4, do_sample=False)


@program("transformers")
def transformers_bert() -> None:
    from transformers import BertConfig, BertForSequenceClassification

    sizes: dict[str, Any] = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 1, "intermediate_size": 32}
    model = BertForSequenceClassification(BertConfig(**sizes, num_attention_heads=2)).cuda()
    tokens = torch.randint(1, 64, (2, 8), device="cuda")
    model(
        tokens, attention_mask=torch.ones_like(tokens), labels=torch.zeros(2, dtype=torch.long).cuda()
    ).loss.backward()


@program("peft")
def peft_adapters() -> None:
    from peft import LoraConfig, get_peft_model

    model = get_peft_model(_llama(), LoraConfig(r=2, target_modules=["q_proj"]))
    tokens = torch.randint(1, 64, (2, 8), device="cuda")
    model(input_ids=tokens, labels=tokens).loss.backward()


@program("accelerate")
def accelerate_loop() -> None:
    from accelerate import Accelerator

    accelerator = Accelerator(gradient_accumulation_steps=2, device_placement=True)
    model = _network()
    model, optimizer, loader = accelerator.prepare(model, torch.optim.AdamW(model.parameters()), _loader())
    for x, y in loader:
        with accelerator.accumulate(model):
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()


@program("accelerate")
def accelerate_offload() -> None:
    from accelerate import cpu_offload

    model = cpu_offload(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4)), "cuda")
    for x, _ in _loader():
        model(x.to("cuda", non_blocking=True)).sum().item()


@program("timm torchvision")
def timm_training() -> None:
    import timm

    model = timm.create_model("vit_tiny_patch16_224", img_size=32, num_classes=4, depth=1).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        x = torch.rand(2, 3, 32, 32).pin_memory().to("cuda", non_blocking=True)
        _step(model, optimizer, x, torch.zeros(2, dtype=torch.long, device="cuda"))


@program("timm torchvision")
def timm_prefetch_loader() -> None:
    from timm.data.loader import PrefetchLoader

    images = torch.utils.data.TensorDataset(
        torch.randint(0, 256, (8, 3, 8, 8), dtype=torch.uint8), torch.zeros(8, dtype=torch.long)
    )
    loader = torch.utils.data.DataLoader(images, batch_size=2, pin_memory=True)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(144, 4)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for x, y in PrefetchLoader(loader, device=torch.device("cuda")):
        _step(model, optimizer, x, y)


@program("diffusers")
def diffusers_training() -> None:
    from diffusers import DDPMScheduler, UNet2DModel

    blocks: dict[str, Any] = {"down_block_types": ("DownBlock2D",), "up_block_types": ("UpBlock2D",)}
    model = UNet2DModel(sample_size=8, block_out_channels=(8,), norm_num_groups=4, layers_per_block=1, **blocks).cuda()
    noise = DDPMScheduler()
    x = torch.rand(2, 3, 8, 8).pin_memory().to("cuda", non_blocking=True)
    steps = torch.randint(0, 1000, (2,), device="cuda")
    model(noise.add_noise(x, torch.randn_like(x), steps), steps).sample.square().mean().backward()


@program("diffusers")
def diffusers_group_offloading() -> None:
    """Groups of layers are copied in ahead on a stream, and their memory is freed behind it."""
    from diffusers import UNet2DModel
    from diffusers.hooks import apply_group_offloading

    blocks: dict[str, Any] = {"down_block_types": ("DownBlock2D",) * 2, "up_block_types": ("UpBlock2D",) * 2}
    model = UNet2DModel(sample_size=8, block_out_channels=(8, 8), norm_num_groups=4, layers_per_block=1, **blocks)
    devices = {"onload_device": torch.device("cuda"), "offload_device": torch.device("cpu")}
    apply_group_offloading(model, **devices, offload_type="leaf_level", use_stream=True, record_stream=True)
    with torch.no_grad():
        for _ in range(2):
            model(torch.rand(1, 3, 8, 8, device="cuda"), torch.zeros(1, device="cuda")).sample.sum().item()


@program("lightning")
def lightning_trainer() -> None:
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.network = torch.nn.Linear(8, 4)

        def training_step(self, batch: Any, index: int) -> Any:
            loss = torch.nn.functional.cross_entropy(self.network(batch[0]), batch[1])
            self.log("loss", loss)
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters())

    quiet: dict[str, Any] = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    lightning.Trainer(accelerator="gpu", devices=1, max_steps=3, enable_model_summary=False, **quiet).fit(
        Module(), _loader()
    )


@program("torchmetrics")
def torchmetrics_in_a_loop() -> None:
    import torchmetrics

    metrics = torchmetrics.MetricCollection(
        [torchmetrics.Accuracy("multiclass", num_classes=4), torchmetrics.F1Score("multiclass", num_classes=4)]
    ).cuda()
    for x, y in _loader():
        metrics.update(x[:, :4].cuda(non_blocking=True), y.cuda(non_blocking=True))
    metrics.compute()


@program("gpytorch")
def gpytorch_regression() -> None:
    import gpytorch

    class Model(gpytorch.models.ExactGP):
        def __init__(self, x: Any, y: Any, likelihood: Any) -> None:
            super().__init__(x, y, likelihood)
            self.mean, self.kernel = gpytorch.means.ConstantMean(), gpytorch.kernels.RBFKernel()

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    x, y = torch.linspace(0, 1, 8, device="cuda"), torch.rand(8, device="cuda")
    likelihood = gpytorch.likelihoods.GaussianLikelihood().cuda()
    model = Model(x, y, likelihood).cuda()
    (-gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)(model(x), y)).backward()


@program("torchdiffeq")
def torchdiffeq_solver() -> None:
    from torchdiffeq import odeint

    field = torch.nn.Linear(4, 4).cuda()
    odeint(
        lambda t, y: field(y), torch.rand(2, 4, device="cuda"), torch.linspace(0, 1, 3, device="cuda")
    ).sum().backward()


@program("torch_geometric xxhash")
def torch_geometric_step() -> None:
    from torch_geometric.nn import GCNConv

    layer, edges = GCNConv(4, 2).cuda(), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]).pin_memory()
    layer(torch.rand(4, 4, device="cuda"), edges.to("cuda", non_blocking=True)).sum().backward()


@program("torchvision")
def torchvision_training() -> None:
    import torchvision

    model = torchvision.models.resnet18(num_classes=4).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for _ in range(2):
        x = torch.rand(2, 3, 32, 32).pin_memory().to("cuda", non_blocking=True)
        _step(model, optimizer, x, torch.zeros(2, dtype=torch.long, device="cuda"))


@program("torchvision")
def torchvision_detection() -> None:
    import torchvision

    model = torchvision.models.detection.ssdlite320_mobilenet_v3_large(weights_backbone=None, num_classes=4).cuda()
    boxes = torch.tensor([[1.0, 1.0, 50.0, 50.0]], device="cuda")
    labels = torch.ones(1, dtype=torch.long, device="cuda")
    losses = model([torch.rand(3, 64, 64, device="cuda")] * 2, [{"boxes": boxes, "labels": labels}] * 2)
    sum(losses.values()).backward()


@program("transformers")
def transformers_offloaded_cache() -> None:
    """Keys and values of each layer go to the host and are fetched ahead, on a stream."""
    options: dict[str, Any] = {"max_new_tokens": 4, "do_sample": False, "cache_implementation": "offloaded"}
    _llama().eval().generate(torch.randint(1, 64, (1, 4), device="cuda"), **options)


@program("torch_geometric xxhash")
def torch_geometric_prefetch_loader() -> None:
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader, PrefetchLoader
    from torch_geometric.nn import GCNConv, global_mean_pool

    edges, layer, head = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]), GCNConv(4, 8).cuda(), torch.nn.Linear(8, 2).cuda()
    graphs = [Data(x=torch.rand(4, 4), edge_index=edges, y=torch.randint(0, 2, (1,))) for _ in range(8)]
    for batch in PrefetchLoader(DataLoader(graphs, batch_size=2), device=torch.device("cuda")):
        pooled = global_mean_pool(layer(batch.x, batch.edge_index), batch.batch, size=2)
        torch.nn.functional.cross_entropy(head(pooled), batch.y).backward()


@program("kornia kornia_rs")
def kornia_augmentation() -> None:
    from kornia.augmentation import ColorJiggle, RandomAffine, RandomHorizontalFlip

    augment = torch.nn.Sequential(RandomHorizontalFlip(), ColorJiggle(0.1, 0.1, 0.1, 0.1), RandomAffine(10.0)).cuda()
    for _ in range(2):
        augment(torch.rand(2, 3, 16, 16).pin_memory().to("cuda", non_blocking=True)).sum().item()


@program("monai")
def monai_sliding_window() -> None:
    from monai.inferers import sliding_window_inference
    from monai.networks.nets import UNet

    model = UNet(2, 1, 2, (4, 8), (2,)).cuda().eval()
    with torch.no_grad():
        mask = sliding_window_inference(torch.rand(1, 1, 32, 32, device="cuda"), (16, 16), 2, model)
        host = mask.argmax(1).to("cpu", non_blocking=True)
    torch.cuda.current_stream().synchronize()
    host.sum()


def races_of(run: Run) -> tuple[int, list[str], float]:
    """Return the ops of a program, its races in words, and the seconds that it took, dry."""
    begin = time.perf_counter()
    with syncscan.pretend_gpu() as rec:
        run()
    took = time.perf_counter() - begin
    races = [f"{race.kind.value} {race.second} after {race.first}" for race in rec.analysis.races]
    session = rec._pretence.session
    return session.seen if session is not None else 0, races, took


def main() -> int:
    """Run the programs and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs to run; all by default")
    names = parser.parse_args().names or [*PROGRAMS]
    print("| library | program | ops | races |\n|---|---|--:|--:|")
    failed, passed_over = False, set[str]()
    for name in names:
        library, run = PROGRAMS[name]
        missing = [needed for needed in library.split() if importlib.util.find_spec(needed) is None]
        if missing:
            passed_over |= {*missing}
            continue
        try:
            ops, races, _ = races_of(run)
        except Exception as error:
            failed = True
            print(f"| {library} | {name} | failed: {type(error).__name__}: {str(error)[:120]} | |", flush=True)
            continue
        failed |= bool(races)
        print(f"| {library} | {name} | {ops:,} | {len(races)} |", flush=True)
        print(*races, sep="\n", end="\n" * bool(races), file=sys.stderr)
    if passed_over:
        print(f"Not installed: {', '.join(sorted(passed_over))}.", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
