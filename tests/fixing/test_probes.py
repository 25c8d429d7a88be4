"""Observing a program's values never disturbs the program, whatever they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncscan.fixing.messages import ProgramJob
from syncscan.fixing.program_file import File
from syncscan.fixing.runs import Runs
from syncscan.source.text import Text, read

ODD = {
    "a sparse tensor": "torch.eye(3).to_sparse().cuda()",
    "a compressed sparse tensor": "torch.eye(3).to_sparse_csr()",
    "a tensor without memory": 'torch.empty(3, device="meta")',
    "a nested tensor": "torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])",
    "a quantized tensor": "torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)",
    "a lazy parameter": "torch.nn.parameter.UninitializedParameter()",
    "a tensor in a transform": "torch.func.vmap(lambda row: (row, row.sum())[1])(torch.ones(2, 3))",
    "a subclass that refuses questions": "torch.ones(3).as_subclass(Closed)",
}
HEAD = """\
import torch
class Closed(torch.Tensor):
    @property
    def requires_grad(self):
        raise RuntimeError("closed")
"""


def observed(runs: Runs, folder: Path, source: str) -> File:
    path = folder / "program.py"
    path.write_text(HEAD + source)
    run = runs.run(ProgramJob(target=str(path), arguments=[], probed=[str(path)]))
    assert (run.code, run.failure) == (0, ""), run.errors
    text: Text = read(str(path))
    return File(text, run.observed[str(path)], main=True)


@pytest.mark.parametrize("name", ODD)
def test_a_program_with_odd_tensors_is_observed(runs: Runs, tmp_path: Path, name: str) -> None:
    """Tensors without storage, shape or dtype of the usual kind are counted like others."""
    file = observed(runs, tmp_path, f"for step in range(3):\n    value = {ODD[name]}\n    again = value\n")
    uses = [node for node in file.nodes if getattr(node, "id", "") == "value" and file.seen(node).count]
    assert [file.seen(node).count for node in uses] == [3]


def test_a_value_that_cannot_be_looked_at_has_no_known_type(runs: Runs, tmp_path: Path) -> None:
    """No rewrite takes it for a tensor, or for the same value in each turn."""
    file = observed(
        runs, tmp_path, "value = torch.ones(3).as_subclass(Closed)\nfor step in range(3):\n    again = value\n"
    )
    (use,) = [node for node in file.nodes if getattr(node, "id", "") == "value" and file.seen(node).count]
    assert file.tensors(use) == ()
    assert not file.is_steady(use, file.loops_of(use)[0])
