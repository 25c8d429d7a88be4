"""torch_geometric: sizes that can be passed, and loops that can be added once."""

from __future__ import annotations

import pytest

from tests.frameworks.conftest import Spares

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")
pytestmark = [pytest.mark.slow, pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]

PROGRAM = """
import torch
import torch_geometric.transforms as T
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATConv, GCNConv, GraphNorm, MeanAggregation, global_mean_pool
from torch_geometric.utils import scatter, softmax, to_dense_adj, to_dense_batch

torch.manual_seed(0)
transform = T.Compose([])
graphs = [transform(Data(x=torch.randn(16, 64), edge_index=torch.randint(0, 16, (2, 64)))) for _ in range(4)]
data = Batch.from_data_list(graphs).to("cuda")
x, batch, edge_index = data.x, data.batch, data.edge_index
mean, norm = MeanAggregation(), GraphNorm(64).to("cuda")
layer = GCNConv(64, 64).to("cuda")
zero = torch.zeros((), device="cuda")
def step():
    CALL  # here
"""


@pytest.mark.parametrize(
    ("call", "instead", "title", "fix"),
    [
        (
            "global_mean_pool(x, batch)",
            "global_mean_pool(x, batch, size=data.num_graphs)",
            "a global pool reads",
            "global_mean_pool(x, batch, size=data.num_graphs)",
        ),
        (
            "mean(x, batch)",
            "mean(x, batch, dim_size=data.num_graphs)",
            "an aggregation reads",
            "aggr(x, batch, dim_size=data.num_graphs)",
        ),
        (
            "norm(x, batch)",
            "norm(x, batch, batch_size=data.num_graphs)",
            "a norm reads",
            "norm(x, batch, batch_size=data.num_graphs)",
        ),
        (
            "scatter(x, batch)",
            "scatter(x, batch, dim_size=data.num_graphs)",
            "scatter reads",
            "dim_size=n",
        ),
        (
            "softmax(x, batch)",
            "softmax(x, batch, num_nodes=data.num_graphs)",
            "number of nodes from an index",
            "num_nodes=x.size(0)",
        ),
        (
            "to_dense_batch(x, batch)",
            "to_dense_batch(x, batch, batch_size=data.num_graphs, max_num_nodes=16)",
            "the most nodes of one",
            "to_dense_batch(x, batch, batch_size=data.num_graphs, max_num_nodes=n)",
        ),
        (
            "to_dense_batch(x, batch)",
            "to_dense_batch(x, batch, fill_value=zero)",
            "copies its fill value",
            "as fill_value: torch.zeros((), device=device)",
        ),
    ],
)
def test_what_a_function_would_read_can_be_passed(
    spares: Spares, call: str, instead: str, title: str, fix: str
) -> None:
    """A batch knows the number of its graphs, and of its nodes."""
    spares(PROGRAM.replace("CALL", call), (call, instead), rule="torch-geometric", title=title, fix=fix)


@pytest.mark.parametrize(("layer", "title"), [("GCNConv", "GCNConv counts"), ("GATConv", "a layer counts")])
def test_loops_can_be_added_in_the_dataset(spares: Spares, layer: str, title: str) -> None:
    """The layer then adds none, and counts nothing."""
    spares(
        PROGRAM.replace("layer = GCNConv(64, 64)", f"layer = {layer}(64, 64)").replace("CALL", "layer(x, edge_index)"),
        ("T.Compose([])", "T.AddRemainingSelfLoops()"),
        (f"layer = {layer}(64, 64)", f"layer = {layer}(64, 64, add_self_loops=False)"),
        rule="torch-geometric",
        title=title,
        fix="transform=T.AddRemainingSelfLoops()",
    )


def test_the_loops_of_one_graph_can_be_kept(spares: Spares) -> None:
    """By `cached=True`, from the first pass on."""
    program = PROGRAM.replace("CALL", "layer(x, edge_index)")
    switch = ("GCNConv(64, 64)", "GCNConv(64, 64, cached=True)")
    spares(program, switch, rule="torch-geometric", title="GCNConv counts", fix="cached=True")
