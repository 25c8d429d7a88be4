"""Values of files are compared by type, fractions up to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np

from syncscan.fixing.written_files import SteadyValues, same_value
from tests.each import each


@each(
    ("a", "b", "same"),
    [
        (1, 1.0, False),
        (0.123456789, 0.12345679, True),
        (1e-07, 1.0000001e-07, True),
        (0.5, 0.51, False),
        (float("nan"), float("nan"), True),
        ("loss 0.12345678", "loss 0.12345679", True),
        ("loss 0.5", "gain 0.5", False),
        (True, 1, False),
        (b"\0", b"\1", False),
        (np.ones(3), np.ones(3) + 1e-7, True),
        (np.ones(3), np.ones(3, "f4"), False),
        (np.ones(3), np.ones(4), False),
        (np.array([1.0, 1e-9]), np.array([1.0, 2e-9]), True),
        (np.array([1.0, 0.0]), np.array([1.0, 0.1]), False),
        (np.array([np.nan, 1.0]), np.array([np.nan, 1.0]), True),
        (np.array([np.inf, 1.0]), np.array([1.0, 1.0]), False),
        (np.arange(3), np.array([0, 1, 3]), False),
    ],
)
def test_which_values_are_the_same(a: Any, b: Any, same: bool) -> None:
    """An element may differ by a rounding error of the array's largest ones; an integer may not differ."""
    assert same_value(a, b) is same


def test_what_differs_between_two_runs_is_not_compared() -> None:
    """It is named; the other values are compared."""
    values = SteadyValues({"['loss']": 0.5, "['time']": 1.5}, {"['loss']": 0.5, "['time']": 2.5})
    assert values.noise == ["['time']"]
    assert values.differs({"['loss']": 0.5, "['time']": 9.0}, "it writes") == ""
    assert (
        values.differs({"['loss']": 0.0, "['time']": 1.5}, "it writes")
        == "it writes '0.0' instead of '0.5' as ['loss']"
    )
    assert values.differs({"['time']": 1.5}, "it writes") == "it writes no value ['loss']"


def test_a_number_of_another_type_is_a_difference() -> None:
    """A tensor in the place of a number, say."""
    values = SteadyValues({"[0]": 0.5}, {"[0]": 0.5})
    assert (
        values.differs({"[0]": np.float32(0.5)}, "it writes") == "it writes 'float32 0.5' instead of 'float 0.5' as [0]"
    )


def test_text_alone_is_no_result() -> None:
    assert not SteadyValues({"[0]": "done", "[1]": True}, {"[0]": "done", "[1]": True}).has_results()
    assert SteadyValues({"[0]": 3}, {"[0]": 3}).has_results()
