"""A fix gains more than its wait: the op goes with what leads up to it alone, or another op comes in its place."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from syncscan import api
from syncscan.detect import catalogue
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Replacement
from tests.builder import TraceBuilder
from tests.each import each
from tests.networks import OP, ops

STEP, EVERY = 1000, 10


@cache
def indexed_by_the_host(*, inside: bool = False) -> Analysis:
    """Five times a host-bound step copies an index to the device, for 28 µs, in the op that indexes or before it."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=STEP):
        at = ops(t, ["aten::addmm"] * 20, start + 10, EVERY)
        for _ in range(5):
            with t.op("aten::index", at + 10, at + 60 if inside else at + 11):
                if inside:
                    _copy(t, at)
            if not inside:
                _copy(t, at)
                with t.op("aten::index", at + 42, at + 60):
                    pass
            at += 80
    return api.analyze_trace(t.trace(), step_ms=STEP / 1e3)


def _copy(t: TraceBuilder, at: float) -> None:
    with t.op("aten::to", at + 12, at + 40):
        t.copy("Memcpy HtoD (Pageable -> Device)", at=at + 14)
        t.call("cudaStreamSynchronize", at + 20, at + 30)


@cache
def read() -> Analysis:
    """A host-bound step reads one number."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=STEP):
        at = ops(t, [*["aten::addmm"] * 30, "aten::gelu"], start + 10, EVERY)
        with t.op("aten::item", at, at + 30), t.op("aten::_local_scalar_dense", at + 1, at + 29):
            t.copy("Memcpy DtoH (Device -> Pinned)", at=at + 3)
            t.call("cudaStreamSynchronize", at + 14, at + 20)
    return api.analyze_trace(t.trace(), step_ms=STEP / 1e3)


def savings(analysis: Analysis) -> tuple[float, float]:
    """Return what the step saves by its fixes, and without the waits alone, µs."""
    p = analysis.whatif("all", fix=True)
    assert p.waits_us == analysis.whatif("all").predicted_us
    return p.saving_us, p.baseline_us - p.waits_us


@each("inside", (False, True))
def test_what_is_made_once_takes_its_op_along(inside: bool) -> None:
    """The whole `aten::to` of 28 µs rather than its call; an op that indexes stays, with the copy in it or before."""
    fix, waits = savings(indexed_by_the_host(inside=inside))
    assert waits < 5 * 20 < 5 * 27 < fix < 5 * 40


def test_what_is_kept_on_the_device_needs_an_op_in_its_place() -> None:
    """A read goes, and an op comes that adds its number up: one as long as the others that launch."""
    fix, waits = savings(read())
    assert waits - fix == pytest.approx(OP, rel=0.1)


def test_a_fix_gains_what_the_wait_does_where_the_rule_cannot_say_more() -> None:
    """An explicit synchronize has no op."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=STEP):
        t.call("cudaDeviceSynchronize", (at := ops(t, ["aten::addmm"] * 30, start + 10, EVERY)), at + 20)
    fix, waits = savings(api.analyze_trace(t.trace(), step_ms=STEP / 1e3))
    assert fix == waits


@each("analyzed", (indexed_by_the_host, read))
def test_a_gain_is_that_of_the_fix(analyzed: Callable[[], Analysis]) -> None:
    """The finding's, the step's and the first change's; its range holds the wait's, too."""
    analysis = analyzed()
    fix, waits = savings(analysis)
    (finding,) = analysis.findings
    assert finding.replacement is not Replacement.UNKNOWN
    assert finding.recoverable_us == analysis.step.recoverable_us == pytest.approx(fix)
    assert finding.recoverable_range_us is not None
    low, high = finding.recoverable_range_us
    assert low <= min(fix, waits) <= max(fix, waits) <= high


def test_a_page_says_what_each_of_its_fixes_puts_in_the_op_s_place() -> None:
    """By variants that it has fixes for."""
    for page in catalogue():
        assert {*page.replacements} <= {*page.fixes}, page.id
        assert all(Replacement(text) for text in page.replacements.values()), page.id
