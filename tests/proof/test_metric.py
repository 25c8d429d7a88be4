"""A number is found in what commands print, by an expression or a path."""

from __future__ import annotations

import pytest

from syncscan.errors import UsageError
from syncscan.proof.command_trial import Metric


@pytest.mark.parametrize(
    ("metric", "line", "number"),
    [
        (r"time ([\d.]+)ms", "iter 10: loss 4.1, time 153.2ms, mfu 3 %", ("", 153.2)),
        (r"throughput: (?P<value>[\d.,]+)", "\x1b[32mthroughput: 12,345.5\x1b[0m tokens/s", ("", 12345.5)),
        (r"time ([\d.]+)", "[rank1]: time 2.5", ("1", 2.5)),
        (r"(?P<rank>\d)/8 took (?P<value>\S+)", "3/8 took 1e-3", ("3", 0.001)),
        (r"time (\S+)", "time unknown", None),
        (r"time ([\d.]+)", "loss 3", None),
        ("$.perf.tokens[1]", '{"perf": {"tokens": [1, 2.5]}}', ("", 2.5)),
        ("$.perf.tokens[1]", '{"perf": {"tokens": [1]}}', None),
        ("$.perf", '{"perf": true}', None),
        ("$.perf", "no JSON: perf", None),
    ],
)
def test_a_line_s_number(metric: str, line: str, number: tuple[str, float] | None) -> None:
    """With the rank that printed it, where that is to be seen; colors and thousands' commas don't matter."""
    assert Metric(metric).in_line(line) == number


def test_a_whole_output_may_be_one_document() -> None:
    """As benchmarks write it, over several lines; an expression finds nothing there that no line has."""
    assert Metric("$.mean").in_document('{\n  "mean": 3\n}') == 3.0
    assert Metric("$.mean").in_document("mean 3") is None
    assert Metric(r"mean (\d)").in_document("mean 3") is None


def test_outputs_are_compared_without_the_number() -> None:
    """The rest of its line counts; a line of JSON with the number counts not at all."""
    assert list(Metric(r"in ([\d.]+) s").without(["loss 2 in 3.1 s", "done"])) == ["loss 2 …", "done"]
    assert list(Metric("$.s").without(['{"s": 2, "loss": 1}', '{"loss": 1}'])) == ['{"loss": 1}']


@pytest.mark.parametrize("text", ["time", "(", "$", "$.a[", "$a"])
def test_what_finds_no_number_is_a_usage_error(text: str) -> None:
    """Without a group, or where it is neither an expression nor a path."""
    with pytest.raises(UsageError):
        Metric(text)
