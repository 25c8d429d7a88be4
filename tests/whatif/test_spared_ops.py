"""Some work goes along with removed syncs."""

from __future__ import annotations

from syncscan.model.analysis import Analysis
from syncscan.model.trace import Trace
from syncscan.whatif.spared_work import MOST_OPS, spared_ops
from tests.builder import TraceBuilder
from tests.networks import intervals, op, ops, reached, read


def dropped(analysis: Analysis) -> list[str]:
    """The ops whose kernels go with all syncs of a trace, those right before a read last to first."""
    change = spared_ops(analysis.trace, intervals(analysis.trace), analysis.findings)
    assert {part for _, part in change.work} <= {0.0}
    return [_op_of(analysis.trace, row) for row, _ in change.work]


def _op_of(trace: Trace, row: int) -> str:
    """The innermost op around the call that launched this row."""
    call = trace.device_calls[trace.device_rows.tolist().index(row)]
    return trace.name(int(trace.slices.parent[call])).removeprefix("aten::")


def test_a_check_takes_along_the_ops_that_only_made_what_it_reads() -> None:
    """`if not x.isfinite().all()`: both ops go with the read, the product before them stays."""
    t = TraceBuilder()
    with t.step(0, 200):
        read(t, ops(t, ["aten::addmm", "aten::isfinite", "aten::all"], 10))
    assert dropped(reached(t)[0]) == ["all", "isfinite"]


def test_no_more_ops_than_a_check_has_go_with_it() -> None:
    """A long chain before a read computes more than what is read."""
    t = TraceBuilder()
    with t.step(0, 300):
        read(t, ops(t, ["aten::sum"] * (MOST_OPS + 4), 10))
    assert len(dropped(reached(t)[0])) == MOST_OPS


def nonzero(t: TraceBuilder, at: float) -> float:
    t.exact(at + 4.5, ("net.py", 7, "forward"), module="Net")
    return t.sync("aten::nonzero", at=at)


def experts(count: int) -> TraceBuilder:
    """A step that chooses rows for each of some experts by `nonzero`, gathers them, multiplies, and puts them back."""
    t = TraceBuilder()
    with t.step(0, 1000):
        at = 10.0
        for _ in range(count):
            at = ops(t, ["aten::index", "aten::addmm", "aten::_index_put_impl_"], nonzero(t, at) + 1)
    return t


def test_a_data_dependent_shape_takes_along_the_gathering_and_scattering_of_its_rows() -> None:
    """A replacement of a fixed shape computes all rows where they lie."""
    assert dropped(reached(experts(1))[0]) == ["index", "_index_put_impl_"]


def test_where_only_a_value_is_read_rows_are_still_gathered() -> None:
    """Its removal changes no shape."""
    t = TraceBuilder()
    with t.step(0, 200):
        op(t, "aten::index", read(t, 10) + 1)
    assert dropped(reached(t)[0]) == []
