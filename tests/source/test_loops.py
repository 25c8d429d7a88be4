"""The loops and branches around a line, as the source has them."""

from __future__ import annotations

import linecache

from syncscan.source.loops import FileLoops, LoopLines, Loops

SOURCE = """\
for epoch in range(3):
    for batch in loader:
        step(batch)
        if batch % 100 == 0:
            evaluate()
    save()
while True:
    serve()
"""


def loops() -> FileLoops:
    linecache.cache["loops.py"] = (len(SOURCE), None, SOURCE.splitlines(keepends=True), "loops.py")
    return Loops()["loops.py"]


def test_loops_come_outermost_first() -> None:
    """With the header's line, the body's first and its last."""
    assert loops().around(3) == [LoopLines(1, 2, 6), LoopLines(2, 3, 5)]
    assert loops().around(6) == [LoopLines(1, 2, 6)]
    assert loops().around(7) == [LoopLines(7, 8, 8)]


def test_a_line_is_chosen_by_a_condition_that_leaves_the_other_be() -> None:
    """The evaluation each hundred batches, seen from the step; not the step seen from the evaluation."""
    assert loops().chosen(5, 3)
    assert not loops().chosen(3, 5)


def test_a_source_that_is_none_has_no_loops() -> None:
    """Whatever the file holds."""
    linecache.cache["broken.py"] = (3, None, ["for"], "broken.py")
    assert Loops()["broken.py"].around(1) == []
    assert Loops()["/nowhere.py"].around(1) == []


REPEATED = """\
def forward(x):
    for layer in chosen(
        x):
        x = layer(x)
        def later():
            return read(x)
    while far(x):
        x = nearer(x)
    else:
        done()
    return [
        read(part)
        for part in x
    ]
"""


def test_a_loop_repeats_its_body_and_a_while_its_test() -> None:
    """Lines of the body and the condition; not a `for` loop's header, its `else`, or a function defined within."""
    linecache.cache["repeated.py"] = (len(REPEATED), None, REPEATED.splitlines(keepends=True), "repeated.py")
    assert [line for line in range(1, 15) if Loops()["repeated.py"].repeats(line)] == [4, 7, 8, 12]
