"""Simulated devices of other types than CUDA's."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import syncscan
from syncscan.cli import group
from syncscan.dryrun.device_kinds import KINDS, STAGED_BYTES
from syncscan.errors import UsageError

torch = pytest.importorskip("torch")
OTHERS = sorted(set(KINDS) - {"cuda"})


@pytest.mark.parametrize("name", KINDS)
def test_a_program_sees_the_device_that_is_simulated_and_no_other(name: str) -> None:
    """Its type, its module's answers and its tensors' properties are as where torch has that device."""
    with syncscan.pretend_gpu(device=name):
        there = {"cuda": torch.cuda, "xpu": torch.xpu, "mps": torch.backends.mps}
        assert {kind for kind, module in there.items() if module.is_available()} == {name}
        assert torch.accelerator.current_accelerator().type == name
        x = torch.ones(2, device=name)
        assert (x.device.type, x.is_cuda, x.is_xpu, x.is_mps) == (name, *(name == kind for kind in KINDS))
        assert torch.nn.Linear(2, 2).to(name)(x).device == x.device
        with torch.autocast(name):
            (x @ x).sum()
    assert not any(module.is_available() for module in there.values())


@pytest.mark.parametrize("name", KINDS)
def test_reads_copies_and_synchronizes_wait_on_any_device(name: str) -> None:
    """The host waits for the value; `torch.xpu` and `torch.mps` have a `synchronize` as `torch.cuda` has."""
    with syncscan.pretend_gpu(device=name) as rec:
        x = torch.ones(2, device=name)
        KINDS[name].module.synchronize()
        x.sum().item()
        x.cpu()
    assert sorted(finding.rule for finding in rec.findings) == ["cpu", "explicit-sync", "item"]


@pytest.mark.parametrize(("name", "rules"), [("cuda", ["to-device"]), *((name, []) for name in OTHERS)])
def test_a_large_pageable_copy_waits_on_cuda_alone(name: str, rules: list[str]) -> None:
    """XPU copies it aside, Metal maps the host's pages: `non_blocking` is what it says there."""
    with syncscan.pretend_gpu(device=name) as rec:
        torch.ones(STAGED_BYTES).to(name, non_blocking=True)
    assert [finding.rule for finding in rec.findings] == rules


@pytest.mark.parametrize(("name", "races"), [("cuda", 0), *((name, 1) for name in OTHERS)])
def test_pageable_memory_must_be_left_alone_where_its_copies_are_asynchronous(name: str, races: int) -> None:
    """It is benign on CUDA, where such a copy has read its memory when it returns."""
    with syncscan.pretend_gpu(device=name) as rec:
        batch = torch.ones(8)
        on_device = torch.empty(8, device=name)
        on_device.copy_(batch, non_blocking=True)
        batch.zero_()
    assert len(rec.analysis.races) == races


@pytest.mark.parametrize("name", OTHERS)
def test_pageable_memory_is_read_too_early_without_a_wait(name: str) -> None:
    """After a synchronize its values are there."""
    with syncscan.pretend_gpu(device=name) as rec:
        result, on_host = torch.ones(8, device=name), torch.empty(8)
        on_host.copy_(result, non_blocking=True)
        on_host.sum()
    with syncscan.pretend_gpu(device=name) as ordered:
        result, on_host = torch.ones(8, device=name), torch.empty(8)
        on_host.copy_(result, non_blocking=True)
        torch.accelerator.synchronize()
        on_host.sum()
    assert [race.kind.value for race in rec.analysis.races] == ["read-before-copy"]
    assert ordered.analysis.races == ()


@pytest.mark.parametrize("make", [lambda: torch.ones(2, dtype=torch.float64, device="mps"), lambda: _on_mps().double()])
def test_metal_has_no_float64(make: object) -> None:
    """A program that needs it fails as it would there, and nowhere else."""
    with syncscan.pretend_gpu(device="mps"), pytest.raises(TypeError, match="doesn't support float64"):
        make()  # type: ignore[operator]


def _on_mps() -> object:
    return torch.ones(2, device="mps")


@pytest.mark.parametrize("name", OTHERS)
def test_a_report_says_what_of_another_device_is_known(name: str) -> None:
    """Each rule with its source, and that the others are those of CUDA."""
    with syncscan.pretend_gpu(device=name) as rec:
        torch.ones(2, device=name)
    coverage = " ".join(rec.coverage)
    assert all(sentence in coverage for sentence in KINDS[name].differs)
    assert "Everything else by the rules of CUDA." in coverage


def test_a_device_that_nothing_is_known_of_is_refused() -> None:
    """Its rules would be invented."""
    with pytest.raises(UsageError, match="No device 'npu' can be simulated"):
        syncscan.pretend_gpu(device="npu")


def test_the_command_takes_the_device(tmp_path: Path) -> None:
    """`syncscan dryrun --device mps` runs a program that asks for Metal."""
    program = tmp_path / "step.py"
    program.write_text("import torch\n\ndef step():\n    torch.ones(2, device='mps').sum().item()\n")
    result = CliRunner().invoke(group, ["dryrun", "--device", "mps", "--fail-on", "sync", f"{program}:step"])
    assert result.exit_code == 1
    assert "step.py:4" in result.stdout
