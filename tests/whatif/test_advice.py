"""What advice follows from a replay."""

from __future__ import annotations

from tests.whatif.story import Item, analysed, profiled


def advice(plan: list[Item]) -> str:
    """All of it as one text."""
    return " ".join(profiled(analysed(plan)).step.advice)


def test_a_busy_device_leaves_nothing_to_gain() -> None:
    """A device without pauses leaves none to be gained."""
    assert "Nothing to gain from removing syncs: the device works 100%" in advice(
        [("launch", 3000.0), ("read", 0.0), ("work", 30.0)]
    )


def test_a_host_bound_step_is_told_to_launch_less() -> None:
    """Where the host never waits, syncs aren't the problem."""
    said = advice([("work", 3000.0), ("launch", 50.0), ("work", 100.0), ("read", 0.0)])
    assert "The host is the limit" in said
    assert "syncs are not your problem, launches are" in said


def test_a_read_back_is_to_be_moved_behind_the_next_launches() -> None:
    """A value that is only logged can be read later."""
    said = advice([("launch", 500.0), ("read", 0.0), ("work", 400.0)])
    assert "after the launches of the next step" in said
    assert "the device is the limit" in said


def test_waits_that_pass_on_are_to_be_removed_together() -> None:
    """Two waits behind one another are one piece of advice, which says that one alone is not enough."""
    said = advice([("launch", 500.0), ("read", 0.0), ("wait", 0.0), ("work", 400.0)])
    assert "together" in said
    assert "any one of them alone saves nothing" in said
