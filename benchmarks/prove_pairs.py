"""Ten true fixes and ten false ones go to `syncscan prove`; its verdict is printed beside the truth.

    python -m benchmarks.prove_pairs                        # all, on one GPU, one after another
    python -m benchmarks.prove_pairs --jobs 2               # on two GPUs of a host, a proof on each
    python -m benchmarks.prove_pairs --part 1/3             # a third of them
    python -m benchmarks.prove_pairs --device cpu --only read-back-30 same

A step trains a small network and keeps the device busy for about `DEVICE_MS` (`torch.cuda._sleep`); in some a sync
holds the host, which then works for some ms, so that without the sync they hide behind the device. The number in a
case's name is the gain that was aimed at; how much it really is depends on the host's launches and the device's clock,
so it is measured here: both steps in one process, in turn, before they go to `syncscan prove`. A fix is a true one
where that gain is above `MATTERS` and both compute the same, which is known of each pair from how it was made.

Exit code 1 where a verdict is wrong, or the truth is too uncertain to say so.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import queue
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

DEVICE = os.environ.get("PROVE_PAIRS_DEVICE", "cuda")
DEVICE_MS = 5.0
CYCLES_PER_MS = 1.98e6
"""Clock cycles of an H200 at its highest clock, per ms."""
MATTERS = 0.005
"""As `syncscan prove` has it."""
TURNS, TURN_S, MOST_TURNS = 40, 0.2, 200
"""Turns of each of the two steps when the truth is measured, the s of a turn, and the most turns where it remains
uncertain whether the gain matters."""


@dataclass(frozen=True)
class Case:
    """A change: what the steps before and after it do, and whether both compute the same."""

    before: dict[str, Any]
    after: dict[str, Any]
    same: bool = True


def _held(ms: float, how: str = "item") -> dict[str, Any]:
    """A step whose host is held by a sync, and then works for so many ms."""
    return {"sync": how, "host_ms": ms}


def _free(ms: float, **other: Any) -> dict[str, Any]:
    return {"host_ms": ms, **other}


def _host_ms(gain: float) -> float:
    """How long the host works behind a sync that costs this part of a step."""
    return DEVICE_MS * gain / (1 - gain)


def _work(gain: float) -> dict[str, Any]:
    return {"device_ms": DEVICE_MS / (1 - gain)}


CASES = {
    "read-back-2": Case(_held(_host_ms(0.02)), _free(_host_ms(0.02))),
    "read-back-5": Case(_held(_host_ms(0.05)), _free(_host_ms(0.05))),
    "read-back-30": Case(_held(_host_ms(0.3)), _free(_host_ms(0.3))),
    "work-2": Case(_work(0.02), {}),
    "work-5": Case(_work(0.05), {}),
    "work-30": Case(_work(0.3), {}),
    "synchronize-5": Case(_held(_host_ms(0.05), "synchronize"), _free(_host_ms(0.05))),
    "nonzero-30": Case({**_held(_host_ms(0.3), "none"), "loss": "selected"}, _free(_host_ms(0.3), loss="where")),
    "pageable-5": Case(_held(_host_ms(0.05), "copy"), _free(_host_ms(0.05))),
    "other-order-30": Case(_work(0.3), {"loss": "in parts"}),
    "same": Case({}, {}),
    "same-held": Case(_held(1.0), _held(1.0)),
    "same-random": Case({"dropout": True}, {"dropout": True}),
    "same-atomics": Case({"loss": "atomics"}, {"loss": "atomics"}),
    "moved": Case(_held(1.0), _held(1.0, "copy")),
    "slower-2": Case({}, _work(0.02)),
    "slower-5": Case({}, _work(0.05)),
    "too-little": Case(_work(0.002), {}),
    "mask-lost-30": Case({**_work(0.3), "loss": "where"}, {}, same=False),
    "clip-lost-5": Case({**_work(0.05), "clip": True}, {}, same=False),
}  # fmt: skip


def _step(
    *,
    device_ms: float = DEVICE_MS,
    host_ms: float = 0.0,
    sync: str = "none",
    loss: str = "mean",
    dropout: bool = False,
    clip: bool = False,
) -> Callable[[], Any]:
    """The step of a program."""
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.1 * dropout), nn.Linear(256, 16)).to(DEVICE)
    adam = torch.optim.Adam(net.parameters(), lr=1e-3)
    inputs, wanted = torch.randn(512, 64, device=DEVICE), torch.randn(512, 16, device=DEVICE)
    on_host = torch.zeros(8)

    def step() -> Any:
        value = _loss(loss, (net(inputs) - wanted).square())
        adam.zero_grad()
        value.backward()
        if clip:
            nn.utils.clip_grad_norm_(net.parameters(), 0.05)
        adam.step()
        _busy(device_ms)
        if sync == "item":
            value.item()
        elif sync == "synchronize" and DEVICE == "cuda":
            torch.cuda.synchronize()
        elif sync == "copy":
            on_host.copy_(value.detach().expand(8))
        if DEVICE == "cuda" or sync != "none" or loss == "selected":
            _spin(host_ms)
        return value

    return step


def _loss(kind: str, errors: Any) -> Any:
    import torch

    mask = errors.detach() < 4
    if kind == "selected":
        return errors[mask].sum() / errors.numel()
    if kind == "where":
        return torch.where(mask, errors, 0.0).sum() / errors.numel()
    if kind == "in parts":
        return sum(part.sum() for part in errors.split(100)) / errors.numel()
    if kind == "atomics":
        index = torch.arange(errors.numel(), device=errors.device) % 7
        return torch.zeros(7, device=errors.device).index_add(0, index, errors.flatten()).sum() / errors.numel()
    return errors.mean()


def _busy(ms: float) -> None:
    """Work of the device's."""
    import torch

    if DEVICE == "cuda":
        torch.cuda._sleep(int(ms * CYCLES_PER_MS))
    else:
        _spin(ms)


def _spin(ms: float) -> None:
    until = time.perf_counter() + ms / 1e3
    while time.perf_counter() < until:
        pass


def _pause() -> None:
    """Wait until the device has done all."""
    if DEVICE == "cuda":
        import torch

        torch.cuda.synchronize()


def _timed(step: Callable[[], Any], count: int) -> float:
    """Seconds of a step, over so many."""
    step()
    _pause()
    began = time.perf_counter()
    for _ in range(count):
        step()
    _pause()
    return (time.perf_counter() - began) / count


def _truth(case: Case) -> tuple[float, float]:
    """How much of a step's time a change saves: both in this process, in turn; and the standard error."""
    steps = [_step(**options) for options in (case.before, case.after)]
    for step in steps:
        _timed(step, 10)
    count = max(4, round(TURN_S / max(_timed(step, 4) for step in steps)))
    logs: list[float] = []
    for turn in range(MOST_TURNS):
        if turn >= TURNS and turn % TURNS == 0 and not _uncertain(*_middle(logs)):
            break
        order = (0, 1) if turn % 2 == 0 else (1, 0)
        taken = {side: _timed(steps[side], count) for side in order}
        logs.append(math.log(taken[1] / taken[0]))
    return _middle(logs)


def _middle(logs: list[float]) -> tuple[float, float]:
    """The gain by the median of the logarithms of ratios, and its standard error."""
    middle = statistics.median(logs)
    spread = statistics.median(abs(x - middle) for x in logs) * 1.4826
    return 1 - math.exp(middle), 1.2533 * spread / math.sqrt(len(logs))


def _uncertain(gain: float, error: float) -> bool:
    """Whether it can't be told from what matters."""
    return abs(gain - MATTERS) < 2 * error


def __getattr__(name: str) -> Callable[[], Any]:
    """The two programs of each case as functions of this file: `read_back_2__before`."""
    case, _, side = name.rpartition("__")
    if side not in ("before", "after") or case.replace("_", "-") not in CASES:
        raise AttributeError(name)
    options = getattr(CASES[case.replace("_", "-")], side)
    return lambda: _step(**options)


def _asked(command: list[str], gpu: str, options: argparse.Namespace) -> Any:
    """Return what a command of this Python prints as JSON, on one device."""
    env = {**os.environ, "PROVE_PAIRS_DEVICE": options.device}
    if options.device == "cuda" and options.jobs > 1:
        env["CUDA_VISIBLE_DEVICES"] = gpu
    done = subprocess.run([sys.executable, "-m", *command], env=env, capture_output=True, text=True)
    if not done.stdout:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return json.loads(done.stdout)


def _proof(name: str, gpu: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return the result of `syncscan prove` for a case beside the real gain."""
    programs = [f"{__file__}:{name.replace('-', '_')}__{side}" for side in ("before", "after")]
    truth = _asked(["benchmarks.prove_pairs", "--truth", name], gpu, options)
    command = ["syncscan", "prove", "--format", "json", "--limit", f"{options.limit:g}s", *programs]
    return {**_asked(command, gpu, options), "truth": truth}


def _judged(name: str, result: dict[str, Any]) -> str:
    """Whether the verdict is right; one on a gain that can't be told from what matters is neither right nor wrong."""
    gain, error = result["truth"]
    if CASES[name].same and _uncertain(gain, error):
        return "unsure"
    return "ok" if result["proven"] == (CASES[name].same and gain > MATTERS) else "WRONG"


def _line(name: str, result: dict[str, Any]) -> str:
    (truth, error), gain = result["truth"], result["gain"]
    low, high = gain["range"] if gain else (float("nan"), float("nan"))
    share = f"{gain['share']:7.2%}" if gain else "      –"
    return (
        f"{name:16} {truth:7.2%} ±{2 * error:6.2%} {'same ' if CASES[name].same else 'other'} {result['verdict']:17}"
        f" {share} ({low:7.2%} to {high:7.2%})  {len(result['pairs']):3} pairs {result['seconds']:5.1f} s"
        f"  {_judged(name, result):6} {result['result']['same']} {result['result']['difference']}"
    )


def _chosen(options: argparse.Namespace) -> list[str]:
    names = options.only or list(CASES)
    part, _, of = options.part.partition("/")
    return names[int(part) - 1 :: int(of)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--jobs", type=int, default=1, help="proofs at a time, each on a GPU of its own")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of each proof")
    parser.add_argument("--part", default="1/1", help="K/N: the Kth of N parts")
    parser.add_argument("--only", nargs="+", choices=list(CASES), metavar="NAME", help="these alone")
    parser.add_argument("--truth", choices=list(CASES), metavar="NAME", help="measure the gain of one, and no more")
    options = parser.parse_args()
    if options.truth:
        print(json.dumps(_truth(CASES[options.truth])))
        return 0
    gpus: queue.SimpleQueue[str] = queue.SimpleQueue()
    for k in range(options.jobs):
        gpus.put(str(k))

    def prove(name: str) -> bool:
        gpu = gpus.get()
        try:
            result = _proof(name, gpu, options)
        finally:
            gpus.put(gpu)
        print(_line(name, result), flush=True)
        return _judged(name, result) == "ok"

    began = time.monotonic()
    with ThreadPoolExecutor(options.jobs) as pool:
        right = list(pool.map(prove, _chosen(options)))
    print(f"{sum(right)} of {len(right)} right, {time.monotonic() - began:.0f} s")
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
