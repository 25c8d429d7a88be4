"""The screen of a watch says the step's time, what of it is waiting, the lines and what was alarmed."""

from __future__ import annotations

import msgspec

from syncscan.report import terminal
from syncscan.watching.screen import blocks, trend
from syncscan.watching.watch_file import Record, WatchedLine, WatchedThread
from tests.watching.example import END, begin, watched, window


def text(*records: Record) -> str:
    return terminal.drawn(blocks(watched(*records)), 120)


def test_it_says_time_waits_lines_and_alarms() -> None:
    shown = text()
    assert "train, process 4321 on node7" in shown
    assert "step 100 ms (99th percentile 200 ms); 800 steps so far" in shown
    assert "waiting: 31% for the device  ▁▁▃▃" in shown
    assert "train.py:41  step      item  ▁▁▃▃" in shown
    assert "alarm at" in shown
    assert "waits for the device for 31% of the time, up from 2%." in shown
    assert "captured /job/out/train.json.gz" in shown
    assert "after 1000 steps" in shown


def test_a_window_that_the_end_cut_short_is_not_the_last_one() -> None:
    """Its few samples say little."""
    short = msgspec.structs.replace(window(3), seconds=0.1, waiting=1.0)
    shown = text(begin(), window(1), window(2), short, END)
    assert shown.splitlines()[:-1] == text(begin(), window(1), window(2)).splitlines()


def test_a_watch_without_a_window_says_so() -> None:
    assert "No window is complete yet." in text(begin())


def test_other_waits_and_threads_are_reported() -> None:
    row = window(1, peers=0.2)
    thread = WatchedThread("prefetch", 0.5, 0.4, "/job/data.py", 7)
    shown = text(begin(1, 2), msgspec.structs.replace(row, threads=(thread,), step=None))
    assert "rank 1 of 2" in shown
    assert "20% for other ranks" in shown
    assert "no step ended in the last 20 s" in shown
    assert "thread prefetch: in the program's code for 50% of the time, 40% waiting for the device" in shown


def test_names_cannot_steer_the_terminal() -> None:
    line = WatchedLine("/job/\x1b[31mtrain.py", 3, "[bold]f[/]", "", 0.5, 0.0, "host", None)
    shown = text(msgspec.structs.replace(begin(), program="\x1b[2J"), msgspec.structs.replace(window(1), lines=(line,)))
    assert "\x1b" not in shown
    assert "[bold]f[/]" in shown


def test_a_trend_has_the_last_windows() -> None:
    assert trend([0.0, 0.13, 0.5, 1.0]) == "▁▂▅█"
