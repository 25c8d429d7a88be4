"""A dry run finds uses of memory that nothing orders, and is silent where something does: pairs, wrong and right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import syncscan
from syncscan.model.race import RaceKind

torch = pytest.importorskip("torch")

from benchmarks.races import PAIRS, Program  # noqa: E402


def races_in(program: Callable[[], Any]) -> list[tuple[RaceKind, str]]:
    """Return kind and function of each race of a program."""
    with syncscan.pretend_gpu() as rec:
        program()
    return [(race.kind, race.second.function) for race in rec.analysis.races]


def races_of_pair(program: Program) -> list[tuple[RaceKind, str]]:
    """Return those of a program of the pairs, whose spinning takes no time."""
    return races_in(lambda: program(lambda: None, 3.0))


@pytest.mark.parametrize(("kind", "wrong", "right"), PAIRS, ids=[wrong.__name__ for _, wrong, _ in PAIRS])
def test_a_race_is_found_and_its_right_form_is_none(kind: RaceKind, wrong: Program, right: Program) -> None:
    """The wrong program has races of one kind, at its own lines; the right one none."""
    assert {found for found, _ in races_of_pair(wrong)} == {kind}
    assert {function for _, function in races_of_pair(wrong)} == {wrong.__name__}
    assert races_of_pair(right) == []


def test_there_are_twenty_pairs_and_more() -> None:
    assert len(PAIRS) >= 20


def test_a_training_step_has_no_races() -> None:
    """Forward on the default stream, backward, fused optimizer, prefetch on a side stream that is ordered."""

    def train() -> None:
        model, side = torch.nn.Linear(8, 8).cuda(), torch.cuda.Stream()
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(3):
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                batch = torch.zeros(4, 8).pin_memory().to("cuda", non_blocking=True)
            torch.cuda.current_stream().wait_stream(side)
            batch.record_stream(torch.cuda.current_stream())
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()

    assert races_in(train) == []


def test_a_backward_pass_on_a_side_stream_has_no_races() -> None:
    """Autograd orders the streams of its nodes itself."""

    def train() -> None:
        model, side = torch.nn.Linear(8, 8).cuda(), torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            loss = model(torch.ones(4, 8, device="cuda")).sum()
        torch.cuda.current_stream().wait_stream(side)
        loss.backward()

    assert races_in(train) == []


def test_a_race_is_placed_at_both_lines() -> None:
    with syncscan.pretend_gpu() as rec:
        host = torch.ones(4, device="cuda").to("cpu", non_blocking=True)
        host.sum()
        host.sum()
    first, second = sorted(rec.analysis.races, key=lambda race: race.second.line)
    assert first.first == second.first
    assert (first.second.line - first.first.line, second.second.line - first.first.line) == (1, 2)  # type: ignore[union-attr]
    assert first.id != second.id
