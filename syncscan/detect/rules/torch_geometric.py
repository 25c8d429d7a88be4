"""torch_geometric reads the number of nodes or graphs back.

## What it finds

`global_mean_pool` and other aggregations, `scatter`, `softmax`, `degree`, `add_self_loops`, `to_dense_batch` without
the size that they would take.

## How it shows in the trace

Frames of `torch_geometric/` around `aten::item` after `aten::max`.

## Example

```python
batch = torch.arange(64, device=device) // 16
size = int(batch.max()) + 1  # global_add_pool(x, batch)
result = x.new_zeros(size, 64).index_add_(0, batch, x)
```

## Use instead

Not run: it takes torch_geometric.

```python
batch = torch.arange(64, device=device) // 16
size = 4  # data.num_graphs: global_add_pool(x, batch, size=data.num_graphs)
result = x.new_zeros(size, 64).index_add_(0, batch, x)
```

## Versions

Read in torch_geometric 2.6.

## References

- https://pytorch-geometric.readthedocs.io/en/latest/modules/nn.html#pooling-layers
- torch_geometric/utils/num_nodes.py, _scatter.py, _to_dense_batch.py, torch_geometric/nn/aggr/base.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "torch-geometric"
NAME = "torch_geometric reads a size back"
CAUSE = Cause.SHAPE
WHY = """\
How many nodes or graphs there are is taken from the largest index, which lies on the device, unless it is passed.
"""
WHEN_FINE = """\
Once, while a dataset is prepared.

A batch knows both: `data.num_nodes` and `data.num_graphs` are Python numbers.
"""

_PLACES = (
    # _to_dense_batch.py: `int(batch.max()) + 1`, `int(num_nodes.max())`, and `num_nodes.max() > max_num_nodes`
    LibraryPlace(
        file="torch_geometric/utils/_to_dense_batch.py",
        direction="DtoH",
        title="to_dense_batch reads the number of graphs and the most nodes of one",
        fix="to_dense_batch(x, batch, batch_size=data.num_graphs, max_num_nodes=n) for a known bound n; a given "
        "max_num_nodes is still compared with the batch, one read, unless "
        "torch_geometric.experimental_mode('disable_dynamic_shapes') is on.",
    ),
    LibraryPlace(
        file="torch_geometric/utils/_to_dense_batch.py",
        direction="HtoD",
        title="to_dense_batch copies its fill value to the device",
        fix="Pass a device tensor, made once, as fill_value: torch.zeros((), device=device).",
        cause=Cause.PAGEABLE,
        removal=Removal.PINNED_COPY,
    ),
    # nn/aggr/base.py, Aggregation.__call__: `dim_size = int(index.max()) + 1`; nn/pool/glob.py passes `size` on as it
    LibraryPlace(
        file="torch_geometric/nn/aggr/base.py",
        functions=("__call__",),
        title="an aggregation or a global pool reads the number of graphs",
        fix="Pass it: global_mean_pool(x, batch, size=data.num_graphs), or aggr(x, batch, dim_size=data.num_graphs).",
    ),
    # nn/aggr/base.py, assert_sorted_index: `not torch.all(index[:-1] <= index[1:])`
    LibraryPlace(
        file="torch_geometric/nn/aggr/base.py",
        functions=("assert_sorted_index",),
        title="an aggregation asks whether its index is sorted",
        fix="No argument spares it: sum, mean and max aggregations don't ask; those that need a sorted index do.",
        cause=Cause.CHECK,
    ),
    # utils/num_nodes.py, maybe_num_nodes: `int(edge_index.max()) + 1`
    LibraryPlace(
        file="torch_geometric/utils/num_nodes.py",
        title="torch_geometric reads the number of nodes from the edges",
        fix="Pass num_nodes=x.size(0) to the function that asks (softmax, degree, add_self_loops, to_dense_adj, …).",
    ),
    # utils/_scatter.py, scatter: `dim_size = int(index.max()) + 1`
    LibraryPlace(
        file="torch_geometric/utils/_scatter.py",
        functions=("scatter", "scatter_argmax"),
        title="scatter reads the size of its result from the index",
        fix="Pass dim_size=n, in torch_geometric.utils.softmax num_nodes=n.",
    ),
)


def match(call: Call) -> Match | None:
    """A wait in one of the places of the table."""
    return match_at(call, _PLACES)
