"""Match a wait in one of the places of the table."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

_PLACES = (
    # 2.8, _to_dense_batch.py: `int(batch.max()) + 1`, `int(num_nodes.max())`; 2.7: `num_nodes.max() > max_num_nodes`
    LibraryPlace(
        file="torch_geometric/utils/_to_dense_batch.py",
        direction="DtoH",
        title="to_dense_batch reads the number of graphs and the maximum number of nodes",
        fix="to_dense_batch(x, batch, batch_size=data.num_graphs, max_num_nodes=n) for a known bound n. Before 2.8 a "
        "given max_num_nodes is still compared with the batch, one read, unless "
        "torch_geometric.experimental_mode('disable_dynamic_shapes') is on.",
    ),
    # 2.8, _to_dense_batch.py: `mask[idx] = 1`
    LibraryPlace(
        file="torch_geometric/utils/_to_dense_batch.py",
        under=("aten::index_put_", "aten::_index_put_impl_"),
        direction="HtoD",
        title="to_dense_batch copies the number one to the device, for its mask",
        fix="No option avoids this: call it once for several tensors, to_dense_batch(torch.cat([a, b], -1), batch, …).",
        cause=Cause.PAGEABLE,
        removal=Removal.PINNED_COPY,
    ),
    # 2.8, _to_dense_batch.py: `torch.as_tensor(fill_value, device=x.device, dtype=x.dtype)`
    LibraryPlace(
        file="torch_geometric/utils/_to_dense_batch.py",
        direction="HtoD",
        title="to_dense_batch copies its fill value to the device",
        fix="Pass a device tensor, made once, as fill_value: torch.zeros((), device=device).",
        cause=Cause.PAGEABLE,
        removal=Removal.PINNED_COPY,
    ),
    # 2.8, nn/aggr/base.py, Aggregation.__call__: `dim_size = int(index.max()) + 1`
    LibraryPlace(
        file="torch_geometric/nn/aggr/base.py",
        functions=("__call__",),
        title="an aggregation reads the number of graphs",
        fix="Pass it: aggr(x, batch, dim_size=data.num_graphs); of a global pool, global_mean_pool(x, batch, "
        "size=data.num_graphs).",
    ),
    # 2.8, nn/aggr/base.py, assert_sorted_index: `not torch.all(index[:-1] <= index[1:])`
    LibraryPlace(
        file="torch_geometric/nn/aggr/base.py",
        functions=("assert_sorted_index",),
        title="an aggregation checks whether its index is sorted",
        fix="No option avoids this: sum, mean and max aggregations don't check; those that need a sorted index do.",
        cause=Cause.CHECK,
    ),
    # 2.8, nn/pool/glob.py: `scatter(x, batch, dim=dim, dim_size=size, reduce=…)`, and utils/_scatter.py, scatter
    LibraryPlace(
        file="torch_geometric/utils/_scatter.py",
        within="torch_geometric/nn/pool/glob.py",
        title="a global pool reads the number of graphs",
        fix="Pass it: global_mean_pool(x, batch, size=data.num_graphs), and likewise global_add_pool, global_max_pool.",
    ),
    # 2.8, nn/pool/select/topk.py, topk: `scatter(batch.new_ones(x.size(0)), batch, reduce='sum')`
    LibraryPlace(
        file="torch_geometric/utils/_scatter.py",
        within="torch_geometric/nn/pool/select/topk.py",
        title="top-k pooling reads the number of graphs",
        fix="No option avoids this: TopKPooling and SAGPooling don't take the number of graphs. Leave it if the step "
        "is device-bound.",
    ),
    # 2.8, nn/norm: graph_norm.py, instance_norm.py, layer_norm.py, forward: `batch_size = int(batch.max()) + 1`
    LibraryPlace(
        file="torch_geometric/nn/norm",
        functions=("forward",),
        direction="DtoH",
        title="a norm reads the number of graphs",
        fix="Pass it: norm(x, batch, batch_size=data.num_graphs).",
    ),
    # 2.8, utils/_to_dense_adj.py: `int(edge_index.max()) + 1`, `int(batch.max()) + 1`, `int(num_nodes.max())`
    LibraryPlace(
        file="torch_geometric/utils/_to_dense_adj.py",
        direction="DtoH",
        title="to_dense_adj reads the number of graphs and the maximum number of nodes",
        fix="to_dense_adj(edge_index, batch, max_num_nodes=n, batch_size=data.num_graphs): a given max_num_nodes is "
        "still compared with the edges, two reads; utils.scatter into a matrix of your own needs none.",
    ),
    # 2.8, utils/num_nodes.py, maybe_num_nodes: `int(edge_index.max()) + 1`
    LibraryPlace(
        file="torch_geometric/utils/num_nodes.py",
        title="torch_geometric reads the number of nodes from an index",
        fix="Pass num_nodes=x.size(0) to the function that reads it (softmax, degree, add_self_loops, …).",
    ),
    # 2.8, utils/_scatter.py, scatter: `dim_size = int(index.max()) + 1`
    LibraryPlace(
        file="torch_geometric/utils/_scatter.py",
        functions=("scatter", "scatter_argmax"),
        title="scatter reads the size of its result from the index",
        fix="Pass dim_size=n, in torch_geometric.utils.softmax num_nodes=n.",
    ),
    # 2.8, utils/loop.py, add_remaining_self_loops: `edge_index[:, mask]`, which gcn_norm calls in each forward pass
    LibraryPlace(
        file="torch_geometric/utils/loop.py",
        within="torch_geometric/nn/conv/gcn_conv.py",
        title="GCNConv counts the edges that aren't self-loops, in each forward pass",
        fix="Add the loops once, in the dataset: transform=T.AddRemainingSelfLoops(), and GCNConv(…, "
        "add_self_loops=False); for one graph that doesn't change GCNConv(…, cached=True).",
        removal=Removal.KERNELS,
    ),
    # 2.8, nn/conv/gat_conv.py, gatv2_conv.py and others, forward: remove_self_loops, then add_self_loops
    LibraryPlace(
        file="torch_geometric/utils/loop.py",
        within="torch_geometric/nn/conv",
        title="a layer counts the edges that aren't self-loops, in each forward pass",
        fix="Add the loops once, in the dataset: transform=T.AddRemainingSelfLoops(), and make the layer with "
        "add_self_loops=False.",
        removal=Removal.KERNELS,
    ),
    # 2.8, utils/loop.py, remove_self_loops and add_remaining_self_loops: `edge_index[:, mask]`
    LibraryPlace(
        file="torch_geometric/utils/loop.py",
        functions=("remove_self_loops", "add_remaining_self_loops", "segregate_self_loops", "get_self_loop_attr"),
        title="self-loops are counted, to be removed or added",
        fix="Do it once, in the dataset: transform=T.RemoveSelfLoops() or T.AddRemainingSelfLoops().",
        removal=Removal.KERNELS,
    ),
    # 2.8, nn/pool/select/topk.py, topk: `batch_perm[mask]`, `(x > scores_min).nonzero()`
    LibraryPlace(
        file="torch_geometric/nn/pool/select/topk.py",
        title="top-k pooling counts the nodes that it keeps",
        fix="No option avoids this: the number of kept nodes depends on the graph's size. Leave it if the step is "
        "device-bound.",
        removal=Removal.KERNELS,
    ),
    # 2.8, nn/pool/connect/filter_edges.py, filter_adj: `row[mask], col[mask]`
    LibraryPlace(
        file="torch_geometric/nn/pool/connect/filter_edges.py",
        title="pooling counts the edges whose nodes it keeps",
        fix="No option avoids this: the number of kept edges depends on the kept nodes. Leave it if the step is "
        "device-bound.",
        removal=Removal.KERNELS,
    ),
    # 2.8, data/data.py, to and cuda: `self.apply(lambda x: x.to(device=device, non_blocking=non_blocking), *args)`
    LibraryPlace(
        file="torch_geometric/data/data.py",
        direction="HtoD",
        title="each tensor of a batch of graphs is copied to the device synchronously",
        fix="DataLoader(pin_memory=True) and batch.to(device, non_blocking=True); don't change the batch on the host "
        "until the copies have run.",
        cause=Cause.PAGEABLE,
        removal=Removal.PINNED_COPY,
    ),
)


def match(call: Call) -> Match | None:
    return match_at(call, _PLACES)
