"""Does a projected step match the step measured without its syncs? Records the truth on a GPU, then compares.

    python benchmarks/whatif.py record DIR [--seconds S] [--rounds N] [--bytes B] [--cases CASE…]
                                                        on a GPU: times every step with and without syncs, records it
    python benchmarks/whatif.py table DIR [--raw]       anywhere: projects from the recordings, prints a Markdown table

A workload is a step whose syncs can be left out one by one. Each variant is timed without the profiler, the variants in
turn and then in turn backwards (A B B A), so that a drift of the clocks meets all alike, the device drained at the end
of each; the first quartile of the rounds counts. Beside it stands the standard error of the variant's time as a part of
the full step's, from the ratios of the rounds. Only the step with all its syncs is recorded. CASE is a glob of names of
workloads; with `--bytes` a recording that would be larger, packed, holds fewer steps. `--raw` keeps the unprofiled
step's time from the projection.

The recordings in sample_traces/whatif, which tests/whatif/test_measured.py holds projections to, are those of

    python benchmarks/whatif.py record sample_traces/whatif --seconds 0.2 --rounds 8 --bytes 200000 \
        --cases "random step [0-4]" experts detector "small language model" "guarded gradients" denoiser agent \
        evaluation
"""

from __future__ import annotations

import argparse
import fnmatch
import gzip
import itertools
import json
import math
import random
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Step = Callable[[], None]
Keeps = Callable[[int], bool]
"""Whether the step keeps its sync of this number."""
ROUNDS = 6
STEPS = 3
"""Steps in a recording."""


# ------------------------------------------------------------------ workloads


def random_step(seed: int) -> tuple[int, Callable[[Keeps], Step]]:
    """Stretches of device work and of small launches in random order and length, with syncs of all kinds in between."""
    rng = random.Random(seed)
    plan: list[tuple[str, Any]] = []
    for _ in range(rng.randint(3, 7)):
        plan.append((rng.choice(["device", "host", "both"]), rng.uniform(0.5, 6.0)))
        if rng.random() < 0.7:
            plan.append(("sync", rng.choice(["item", "nonzero", "mask", "cpu", "stream", "event", "device"])))
    plan.append(("sync", "item"))
    count = sum(kind == "sync" for kind, _ in plan)
    return count, lambda keeps: _planned(plan, keeps)


def _planned(plan: list[tuple[str, Any]], keeps: Keeps) -> Step:
    import torch

    big = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    small = torch.randn(64, 64, device="cuda")
    flags = torch.rand(4096, device="cuda") > 0.5

    def event() -> None:
        mark = torch.cuda.Event()
        mark.record()
        mark.synchronize()

    syncs: dict[str, Callable[[], Any]] = {
        "item": lambda: small.sum().item(),
        "nonzero": lambda: torch.nonzero(flags),
        "mask": lambda: flags[flags],
        "cpu": small.cpu,
        "stream": lambda: torch.cuda.current_stream().synchronize(),
        "event": event,
        "device": torch.cuda.synchronize,
    }

    def device(ms: float) -> None:
        for _ in range(max(1, int(ms / 0.18))):
            torch.mm(big, big)

    def host(ms: float) -> None:
        for _ in range(int(ms * 200)):
            small.add(1.0)

    def step() -> None:
        number = 0
        for kind, length in plan:
            if kind == "sync":
                _kept(keeps, number, length, syncs[length])
                number += 1
            else:
                host(length if kind == "host" else length / 2 if kind == "both" else 0.0)
                device(length if kind == "device" else length / 2 if kind == "both" else 0.0)

    return step


def _kept(keeps: Keeps, number: int, name: str, sync: Callable[[], Any], otherwise: Any = None) -> Any:
    """A scope of its own around each sync, there without the sync too: entering one takes a host 10 µs."""
    from torch.profiler import record_function

    with record_function(f"sync{number} {name}"):
        return sync() if keeps(number) else otherwise


def experts(keeps: Keeps) -> Step:
    """A mixture of experts: one nonzero per expert routes its tokens; without it those of the first step are used."""
    import torch
    from torch import nn

    width, count = 1024, 8
    gate = nn.Linear(width, count).cuda()
    nets = nn.ModuleList(
        nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(count)
    )
    nets.cuda()
    optimizer = torch.optim.SGD([*gate.parameters(), *nets.parameters()], lr=0.0)
    x = torch.randn(4096, width, device="cuda")
    routes = [torch.nonzero(gate(x).argmax(-1) == e).flatten() for e in range(count)]

    def step() -> None:
        choice, out = gate(x).argmax(-1), torch.zeros_like(x)
        for e, net in enumerate(nets):
            own = choice == e
            at = _kept(keeps, 0, "route", lambda m=own: torch.nonzero(m).flatten(), routes[e])
            out = out.index_add(0, at, net(x[at]))
        loss = out.square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        _kept(keeps, 1, "log", loss.item)

    return step


def detector(keeps: Keeps) -> Step:
    """A backbone, a data-dependent selection per image, small heads on what was selected."""
    import torch
    from torch import nn

    widths = [3, 64, 128, 256, 256]
    layers = [m for a, b in itertools.pairwise(widths) for m in (nn.Conv2d(a, b, 3, padding=1), nn.ReLU())]
    back = nn.Sequential(*layers).cuda()
    head = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 4)).cuda()
    optimizer = torch.optim.SGD([*back.parameters(), *head.parameters()], lr=0.0, momentum=0.9)
    x = torch.randn(8, 3, 192, 192, device="cuda")

    def features() -> Any:
        return torch.nn.functional.avg_pool2d(back(x), 4)

    def score(image: Any) -> Any:
        return image.mean(0).flatten()

    known = [torch.nonzero(score(f) > score(f).mean()).flatten() for f in features()]

    def step() -> None:
        loss: Any = 0.0
        for image, proposals in zip(features(), known, strict=True):
            good = score(image) > score(image).mean()
            at = _kept(keeps, 0, "propose", lambda g=good: torch.nonzero(g).flatten(), proposals)
            loss = loss + head(image.flatten(1).t()[at]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        _kept(keeps, 1, "log", loss.item)

    return step


def language_model(keeps: Keeps, layers: int = 6, batch: int = 48) -> Step:
    """A transformer in bf16 whose loop counts tokens, checks for NaN, clips and logs, a read-back each."""
    import torch
    from torch import nn

    width, words = 1024, 8192
    embed, last = nn.Embedding(words, width).cuda(), nn.Linear(width, words).cuda()
    layer = nn.TransformerEncoderLayer(width, 16, 4 * width, batch_first=True, dropout=0.0, norm_first=True)
    body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).cuda()
    parameters = [*embed.parameters(), *body.parameters(), *last.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-5, fused=True)
    ids = torch.randint(0, words, (batch, 256), device="cuda")
    mask = torch.rand(batch, 256, device="cuda") > 0.3

    def step() -> None:
        with torch.autocast("cuda", torch.bfloat16):
            logits = last(body(embed(ids)))
        losses = nn.functional.cross_entropy(logits.flatten(0, 1).float(), ids.flatten(), reduction="none")
        loss = (losses * mask.flatten()).sum() / _kept(keeps, 0, "count", lambda: mask.sum().item(), 8000.0)
        _kept(keeps, 1, "nan check", lambda: bool(torch.isnan(loss)))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(parameters, 1.0)
        _kept(keeps, 2, "norm", norm.item)
        optimizer.step()
        _kept(keeps, 3, "log", loss.item)

    return step


def guarded_gradients(keeps: Keeps) -> Step:
    """A small transformer, bound by its host, that asks of each parameter's gradient whether it holds NaN."""
    import torch
    from torch import nn

    layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, dropout=0.0)
    net = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).cuda()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-5)
    x = torch.randn(16, 64, 256, device="cuda")

    def step() -> None:
        optimizer.zero_grad()
        net(x).square().mean().backward()
        for parameter in net.parameters():
            bad = torch.isnan(parameter.grad).any()
            _kept(keeps, 0, "guard", lambda flag=bad: bool(flag))
        optimizer.step()

    return step


def denoiser(keeps: Keeps) -> Step:
    """Sixteen steps of a denoising loop whose schedule lies on the device."""
    import torch
    from torch import nn

    blocks = [m for _ in range(8) for m in (nn.Conv2d(64, 64, 3, padding=1), nn.SiLU())]
    net = nn.Sequential(*blocks).cuda().half()
    schedule = torch.linspace(999, 0, 16, device="cuda").long()
    known = schedule.tolist()

    @torch.no_grad()
    def step() -> None:
        x = torch.randn(4, 64, 32, 32, device="cuda", dtype=torch.half)
        for k in range(16):
            at = _kept(keeps, 0, "timestep", lambda k=k: schedule[k].item(), known[k])
            x = x - net(x) * (0.1 + at / 1e6)

    return step


def agent(keeps: Keeps) -> Step:
    """A policy that chooses thirty actions in a row, the host reading each, and learns from them."""
    import torch
    from torch import nn

    policy = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 8)).cuda()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-5)
    states = torch.randn(30, 64, device="cuda")

    def step() -> None:
        total = 0
        with torch.no_grad():
            for state in states:
                action = policy(state).argmax()
                total += _kept(keeps, 0, "action", action.item, 3)
        loss = policy(states).logsumexp(-1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        _kept(keeps, 1, "log", lambda: loss.detach().cpu().numpy())

    return step


def evaluation(keeps: Keeps) -> Step:
    """A small convolution net whose loop reads five metrics of every batch."""
    import torch
    from torch import nn

    widths = [3, 32, 64, 64, 128]
    layers = [
        m for a, b in itertools.pairwise(widths) for m in (nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.ReLU())
    ]
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.0, momentum=0.9)
    x, y = torch.randn(64, 3, 64, 64, device="cuda"), torch.randint(0, 10, (64,), device="cuda")

    def step() -> None:
        logits = net(x)
        loss = nn.functional.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hits = logits.argmax(-1) == y
        metrics = (loss, hits.float().mean(), hits.sum(), logits.max(), logits.norm())
        for metric in metrics:
            _kept(keeps, 0, "metric", lambda m=metric: float(m))

    return step


def workloads() -> Iterator[tuple[str, int, Callable[[Keeps], Step]]]:
    """(name, number of syncs, builder) of each step."""
    for seed in range(10):
        yield f"random step {seed}", *random_step(seed)
    yield "experts", 2, experts
    yield "detector", 2, detector
    yield "language model", 4, language_model
    yield "guarded gradients", 1, guarded_gradients
    yield "denoiser", 1, denoiser
    yield "agent", 2, agent
    yield "evaluation", 1, evaluation
    yield "small language model", 4, lambda keeps: language_model(keeps, layers=8, batch=2)


# ------------------------------------------------------------------ the truth, on a GPU


def record(out: Path, cases: list[str], seconds: float, rounds: int, largest: int | None) -> None:
    """Time each workload's variants in turn, then record the one with all its syncs."""
    import torch

    ms: dict[str, dict[str, float]] = {}
    errors: dict[str, dict[str, float]] = {}
    out.mkdir(parents=True, exist_ok=True)
    for name, count, build in workloads():
        if cases and not any(fnmatch.fnmatch(name, case) for case in cases):
            continue
        torch.manual_seed(0)
        removed = {"all": set(range(count)), **({str(k): {k} for k in range(count)} if count > 1 else {})}
        steps = {"": build(lambda _: True), **{v: build(lambda k, g=g: k not in g) for v, g in removed.items()}}
        for step in steps.values():
            _timed(step, 0.1)
        times = [_round(steps, seconds, backwards=bool(number % 2)) for number in range(rounds)]
        ms[name] = {v: sorted(r[v] for r in times)[rounds // 4] for v in steps}
        errors[name] = {v: _standard_error([r[v] / r[""] for r in times]) for v in steps if v}
        _trace(steps[""], out / f"{name.replace(' ', '_')}.json.gz", largest)
        print(name, ms[name], flush=True)
        truth = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "ms": ms, "standard_error": errors}
        (out / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")


def _round(steps: dict[str, Step], seconds: float, backwards: bool) -> dict[str, float]:
    """Each variant's time, in turn; every other round in turn backwards."""
    order = list(steps)[:: -1 if backwards else 1]
    return {v: _timed(steps[v], seconds) for v in order}


def _standard_error(ratios: list[float]) -> float:
    return statistics.stdev(ratios) / math.sqrt(len(ratios)) if len(ratios) > 1 else 0.0


def _timed(step: Step, seconds: float) -> float:
    """Mean ms of a step over so many seconds, the device drained at both ends."""
    import torch

    torch.cuda.synchronize()
    begin = time.perf_counter()
    step()
    torch.cuda.synchronize()
    count = max(4, int(seconds / (time.perf_counter() - begin)))
    begin = time.perf_counter()
    for _ in range(count):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / count * 1e3


def _trace(step: Step, path: Path, largest: int | None) -> None:
    """Record some steps; fewer where the file would be larger than `largest` bytes."""
    for active in range(STEPS, 0, -1):
        path.write_bytes(_recorded(step, active, path.with_suffix("")))
        if largest is None or path.stat().st_size <= largest:
            return


def _recorded(step: Step, active: int, plain: Path) -> bytes:
    from torch.profiler import ProfilerActivity, profile, schedule

    both = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=both, schedule=schedule(wait=1, warmup=3, active=active, repeat=1)) as prof:
        for _ in range(4 + active):
            step()
            prof.step()
    prof.export_chrome_trace(str(plain))
    packed = gzip.compress(plain.read_bytes(), mtime=0)
    plain.unlink()
    return packed


# ------------------------------------------------------------------ the comparison, anywhere


def table(folder: Path, raw: bool) -> None:
    """Print each projection beside its measurement, the misses included, and the errors' summary."""
    import syncscan

    truth = json.loads((folder / "truth.json").read_text())
    print("| step | without | measured | projected | range | error |\n|---|---|---|---|---|---|")
    errors: dict[str, list[float]] = {"all syncs": [], "one sync": []}
    inside, widths = [], []
    for name, ms in truth["ms"].items():
        analysis = syncscan.analyze(folder / f"{name.replace(' ', '_')}.json.gz", step_ms=None if raw else ms[""])
        for variant, after in ms.items():
            if variant:
                p = analysis.whatif("all" if variant == "all" else f"scope:sync{variant} *")
                was, is_ = after / ms[""], p.predicted_us / p.baseline_us
                low, high = (edge / p.baseline_us for edge in p.range_us)
                inside.append(low - 0.02 <= was <= high + 0.02)
                widths.append(high - low)
                errors["all syncs" if variant == "all" else "one sync"].append(abs(is_ / was - 1))
                removed = "all syncs" if variant == "all" else f"sync {variant}"
                outside = "" if inside[-1] else " (outside)"
                cells = [
                    name,
                    removed,
                    f"{was:.3f}",
                    f"{is_:.3f}",
                    f"{low:.2f} to {high:.2f}{outside}",
                    f"{is_ / was - 1:+.1%}",
                ]
                print(f"| {' | '.join(cells)} |")
    for label, match in {**errors, "every case": [*errors["all syncs"], *errors["one sync"]]}.items():
        worst = sorted(match)[int(0.9 * (len(match) - 1))]
        print(f"{label}: {len(match)} cases, median error {statistics.median(match):.1%}, 90th percentile {worst:.1%}")
    print(f"inside its range: {statistics.mean(inside):.0%}, mean width {statistics.mean(widths):.0%} of the step")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording, comparing = commands.add_parser("record"), commands.add_parser("table")
    for command in (recording, comparing):
        command.add_argument("folder", type=Path)
    recording.add_argument("--cases", nargs="+", default=[])
    recording.add_argument("--seconds", type=float, default=0.25)
    recording.add_argument("--rounds", type=int, default=ROUNDS)
    recording.add_argument("--bytes", type=int)
    comparing.add_argument("--raw", action="store_true")
    given = parser.parse_args()
    if given.command == "record":
        import torch

        if not torch.cuda.is_available():
            parser.error("this measures on a GPU, and there is none.")
        record(given.folder, given.cases, given.seconds, given.rounds, given.bytes)
    else:
        table(given.folder, given.raw)


if __name__ == "__main__":
    main()
