"""Facts about how a timing is shown."""

from __future__ import annotations

import json

from syncscan.model.timing import BatchTime, Clock, Naive, OneOff, Throughput, Timing
from syncscan.report import timing as report


def timing(**other):
    tried = (BatchTime(1, 100.0), BatchTime(2, 110.0), BatchTime(4, None))
    values = {
        "name": "infer",
        "clock": Clock.DEVICE,
        "device": "NVIDIA H200",
        "samples_us": (100.0, 101.0, 102.0, 103.0, 109.0),
        "block": 1,
        "alone_us": 150.0,
        "one_offs": (OneOff("first call", 5e5, "kernels are loaded"),),
        "stable": True,
        "naive": (Naive("time.time() without a synchronize", 51.0, "the host only launches"),),
        "throughput": Throughput(tried, tried[1], tried[1], 2, False, "a batch of 4 runs out of memory"),
    }
    return Timing(**{**values, **other})


def test_the_text_says_each_number_once():
    """Median, spread, percentiles, the lone call, one-time costs, the mistake and its factor, the best batch."""
    text = report.render_text(timing(), width=120)
    for words in ("102 µs", "median of 5 samples", "2.0% interquartile range", "150 µs", "500 ms", "× 0.50"):
        assert text.count(words) == 1, words
    assert "Best: batch 2, 18,182 samples/s. The search ended: a batch of 4 runs out of memory." in text


def test_the_json_holds_the_same_numbers_in_microseconds():
    """The schema that scripts rely on."""
    document = json.loads(report.render_json(timing()))
    assert document["schema"] == "syncscan.timing/1"
    assert document["median_us"] == 102.0
    assert document["percentiles_us"]["25"] == 101.0
    assert document["naive"][0]["ratio"] == 0.5
    assert document["throughput"]["best_batch"] == 2
    assert document["throughput"]["tried"][2] == {"batch": 4, "us": None, "samples_per_second": None}


def test_a_name_can_not_reach_the_terminal():
    """The escape sequence of a hostile function name is replaced."""
    assert "\x1b" not in report.render_text(timing(name="\x1b]0;owned\x07"))
