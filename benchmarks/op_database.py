"""Which samples of torch's own op database hold the host? Recorded on a GPU, and then asked of traces and dry runs.

    python -m benchmarks.op_database record DIR     on a GPU: the truth by torch's sync debug mode, and traces of it all
    python -m benchmarks.op_database table DIR      anywhere: what is found in the traces, and by a dry run, beside it

The database (`torch.testing._internal`, which needs the package `expecttest`) has some 700 ops with inputs for each. Of
each op up to four samples are run, forward and backward. The debug mode hears of what goes through torch; solvers that
wait by themselves (cuSOLVER, MAGMA) it doesn't hear.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

SHARDS = 8
"""Processes that share the ops: a capture of all at once would be too long a step."""
SAMPLES, STRIDE = 4, 4
"""Every fourth of an op's first sixteen samples is used: neighbors are alike."""
CASE = "case "
OTHERS = frozenset({"histc", "masked.std", "masked.var"})
"""Ops whose samples depend on random numbers or on the version of torch: not comparable between two machines."""

Waits = Counter[str]
"""Sample → how often the host waits in it, forward and backward."""


def ops(shard: int | None = None) -> Iterator[tuple[str, Any]]:
    """The ops of the database by name, of one shard or of all."""
    from torch.testing._internal.common_methods_invocations import op_db

    for number, op in enumerate(op_db):
        if shard is None or number % SHARDS == shard:
            yield f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name, op


def samples(op: Any) -> list[Any]:
    """Some samples of an op, on the GPU; with gradients where it has them."""
    import torch

    dtype = torch.float32 if torch.float32 in op.dtypes else sorted(op.dtypes, key=str)[0]
    torch.manual_seed(0)
    built = op.sample_inputs("cuda", dtype, requires_grad=dtype.is_floating_point and op.supports_autograd)
    return list(itertools.islice(built, 0, SAMPLES * STRIDE, STRIDE))


def run(op: Any, sample: Any) -> Callable[[], None] | None:
    """Run an op forward; what runs it backward, None where nothing does."""
    import torch

    result = op.op(sample.input, *sample.args, **sample.kwargs)
    roots = [t for t in _tensors(result) if t.requires_grad and t.is_floating_point()]
    if not roots:
        return None
    return lambda: torch.autograd.backward(roots, [torch.ones_like(root) for root in roots])


def _tensors(value: Any) -> list[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for part in value for tensor in _tensors(part)] if isinstance(value, tuple | list) else []


def each(chosen: Iterable[tuple[str, Any]], wanted: Callable[[str], bool]) -> Iterator[tuple[str, Any, Any]]:
    """Every wanted sample with its name and its op; ops without any are left out."""
    for name, op in chosen:
        try:
            result = samples(op)
        except (IndexError, RuntimeError, NotImplementedError):  # made for one device alone
            continue
        yield from ((key, op, sample) for n, sample in enumerate(result) if wanted(key := f"{name}#{n}"))


def truth(shard: int) -> Waits:
    """Return the debug mode's warnings in each sample that runs, at its second run: the first sets libraries up."""
    import torch

    def heard(do: Callable[[], Any]) -> tuple[Any, int]:
        with warnings.catch_warnings(record=True) as text:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            try:
                result = do()
            finally:
                torch.cuda.set_sync_debug_mode(0)
        return result, sum("synchronizing CUDA" in str(warning.message) for warning in text)

    outcome: Waits = Counter()
    for key, op, sample in each(ops(shard), lambda key: True):
        try:
            for _ in range(2):
                backward, waits = heard(lambda op=op, sample=sample: run(op, sample))
                waits += heard(backward)[1] if backward else 0
        except (RuntimeError, NotImplementedError):  # no such kernel
            continue
        outcome[key] = waits
    return outcome


def capture(shard: int, folder: Path) -> Path:
    """A trace of one step that runs all samples of a shard, each in a range of its own."""
    import syncscan

    every = list(each(ops(shard), lambda key: True))
    with syncscan.profile(folder, name=f"ops{shard}", wait=0, warmup=1, active=1, calibrate=0, settle=0) as session:
        while not session.done:
            _run_all(every)
            session.step()
    return session.paths[0]


def _run_all(every: Iterable[tuple[str, Any, Any]]) -> list[str]:
    """Run all of these in ranges; the names of those that could run."""
    import torch

    ran = []
    for key, op, sample in every:
        try:
            with torch.profiler.record_function(CASE + key):
                backward = run(op, sample)
                if backward:
                    backward()
            ran.append(key)
        except (RuntimeError, NotImplementedError, AssertionError, AttributeError):  # no such kernel in this build
            continue
    return ran


def of_findings(findings: Iterable[Any]) -> Waits:
    """Return the findings of an analysis in each sample."""
    result: Waits = Counter()
    for finding in findings:
        case = next((scope for scope in finding.scope if scope.startswith(CASE)), None)
        if case is not None:
            result[case.removeprefix(CASE)] += finding.count
    return result


def dry(wanted: Callable[[str], bool] = lambda key: True) -> Waits:
    """Return a dry run's waits in each sample that it can run."""
    import syncscan

    every = list(ops())  # not below: importing the database looks through the stack at each op
    with syncscan.pretend_gpu() as rec:
        ran = _run_all(each(every, wanted))
    text = of_findings(rec.findings)
    return Counter({key: text[key] for key in ran})


def apart(text: Waits, true: Waits) -> tuple[list[str], list[str]]:
    """Samples in which the host waits and nothing is said, and those in which something is said and it doesn't."""
    both = sorted(key for key in text.keys() & true.keys() if key.partition("#")[0] not in OTHERS)
    return [key for key in both if true[key] and not text[key]], [key for key in both if text[key] and not true[key]]


def record(folder: Path) -> None:
    """One process after the other; what they found goes into `truth.json` and traces."""
    folder.mkdir(parents=True, exist_ok=True)
    result: dict[str, int] = {}
    for shard in range(SHARDS):
        command = [sys.executable, "-m", "benchmarks.op_database", "shard", str(folder), str(shard)]
        result |= json.loads(
            subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
        )
        print(f"shard {shard}: {len(result)} samples, {sum(waits > 0 for waits in result.values())} wait", flush=True)
    (folder / "truth.json").write_text(json.dumps(result, indent=0) + "\n")


def _shard(folder: Path, shard: int) -> None:
    result = truth(shard)
    with tempfile.TemporaryDirectory() as out:
        capture(shard, Path(out)).rename(folder / f"ops{shard}.pt.trace.json.gz")
    print(json.dumps(result))


def of_traces(folder: Path) -> Waits:
    """Return the findings in recorded samples."""
    import syncscan

    result: Waits = Counter()
    for path in sorted(folder.glob("ops*.pt.trace.json.gz")):
        result.update(of_findings(syncscan.analyze(path).findings))
    return result


def tell(title: str, text: Waits, true: Waits) -> None:
    """A line on samples beside the truth."""
    missed, more = apart(text, true)
    both = text.keys() & true.keys()
    waits = sum(true[key] > 0 for key in both)
    print(f"{title}: {len(both)} samples, {waits} wait; missed {missed}; said besides {more}")


def table(folder: Path, few: bool) -> None:
    """Traces and a dry run beside the truth; of few a dry run alone."""
    true = Counter(json.loads((folder / "truth.json").read_text()))
    that_wait = {key.partition("#")[0] for key, waits in true.items() if waits}
    if not few:
        result = of_traces(folder)
        tell("traces", Counter({key: result[key] for key in true}), true)
    tell("dry run", dry(lambda key: not few or key.endswith("#0") or key.partition("#")[0] in that_wait), true)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "table", "shard"))
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("shard", type=int, nargs="?", default=0, help="of `shard`, which `record` calls")
    parser.add_argument(
        "--few", action="store_true", help="no traces, and of ops that don't wait the first sample alone"
    )
    options = parser.parse_args()
    if options.what == "table":
        return table(options.folder, options.few)
    import torch

    if not torch.cuda.is_available():
        parser.error("this measures on a GPU, and there is none.")
    return record(options.folder) if options.what == "record" else _shard(options.folder, options.shard)


if __name__ == "__main__":
    main()
