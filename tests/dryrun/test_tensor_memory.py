"""Parts of a memory meet where they have a byte in common."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from syncscan.dryrun.tensor_memory import EVERYTHING, Region, meet, region_of, within  # noqa: E402


def test_the_part_of_a_slice_is_its_bytes() -> None:
    assert region_of(torch.zeros(8)[2:5]) == Region(8, 20)


def test_a_transposed_tensor_has_no_gaps() -> None:
    assert region_of(torch.zeros(2, 3).t()) == Region(0, 24)


def test_neighbors_don_t_meet() -> None:
    x = torch.zeros(8)
    assert not meet(region_of(x[:4]), region_of(x[4:]))


def test_slices_that_share_an_element_meet() -> None:
    x = torch.zeros(8)
    assert meet(region_of(x[:4]), region_of(x[3:]))


def test_columns_don_t_meet_each_other_and_meet_a_row() -> None:
    x = torch.zeros(4, 2)
    first, second, row = region_of(x[:, 0]), region_of(x[:, 1]), region_of(x[1])
    assert (meet(first, second), meet(first, row), meet(second, row)) == (False, True, True)


def test_an_empty_part_meets_nothing() -> None:
    assert not meet(region_of(torch.zeros(0)), EVERYTHING)


def test_a_part_with_gaps_holds_none_of_what_lies_between() -> None:
    x = torch.zeros(4, 2)
    assert within(region_of(x[1]), region_of(x))
    assert not within(region_of(x[1]), region_of(x[:, 0]))
