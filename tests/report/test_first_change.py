"""The list of changes begins with what gains most, and says whole sentences of how to make it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from syncscan.model.finding import Confidence
from syncscan.model.habit import Basis
from syncscan.report import render
from syncscan.report.fixes import fitting
from tests.each import each
from tests.recordings import FOLDER, analyzed

STALLS = sorted(FOLDER.glob("stalls/*.json.gz"))
CASES = [*STALLS, *sorted(FOLDER.glob("whatif/*.gz")), *sorted(FOLDER.glob("programs/recorded/*.gz"))]
LAUNCH_LESS = "CUDA graphs, torch.compile, a fused optimizer"


@each("path", CASES, ids=lambda path: path.name.partition(".")[0])
def test_the_largest_gain_heads_the_list(path: Path) -> None:
    """The largest is taken of syncs and habits, whatever their gain is based on; nothing else is advised in its
    place.
    """
    analysis = analyzed(path)
    habits = [h for h in analysis.habits if h.gain and h.gain.basis is not Basis.UPPER_BOUND]
    if not analysis.remedies or not habits:
        return
    most = max(habits, key=lambda habit: habit.gain.recoverable_us if habit.gain else 0.0)
    first = analysis.remedies[0]
    assert most.recoverable_us is not None
    assert first.alone_us >= most.recoverable_us - 1e-6
    gains = [r.alone_us for r in analysis.remedies if r.basis is not Basis.UPPER_BOUND]
    assert gains == sorted(gains, reverse=True)
    advice = json.loads(render(analysis, "json"))["step"]["advice"]
    assert advice[0].startswith("1. ") or LAUNCH_LESS not in advice[0]
    assert not any(LAUNCH_LESS in sentence for sentence in advice if not re.match(r"\d+\. ", sentence))


@each("path", STALLS, ids=lambda path: path.name.partition(".")[0])
def test_every_stall_is_in_the_list_of_changes(path: Path) -> None:
    """Each habit with a gain has its entry, in text on the first screen where it gains most."""
    analysis = analyzed(path)
    listed = {r.habit for r in analysis.remedies}
    assert {h.id for h in analysis.habits if h.gain} <= listed
    first = analysis.remedies[0]
    screen = render(analysis, "text", width=120).split("\n\n")[0]
    assert first.what in screen
    assert ("likely" in screen) == any(r.confidence is Confidence.MEDIUM for r in analysis.remedies[:3])


def test_a_fix_is_cut_between_sentences_and_says_so() -> None:
    """As many sentences as fit; at least the first one, whole."""
    fix = "Pin it: keep it on the device, ever. New data: pinned memory. Then wait."
    assert fitting(fix, 3, 80, "-v") == fix
    assert fitting(fix, 2, 26, "-v") == "Pin it: keep it on the device, ever. … (-v)"
    assert fitting(fix, 0, 10, "-v") == "Pin it: keep it on the device, ever. … (-v)"
    assert fitting(fix, 0, 10, "-v", least=0) == ""


@pytest.mark.parametrize("width", [80, 100, 120, 140])
@each("name", ["copies.pageable", "tips.item", "copies.inline_pin"])
def test_a_cut_fix_ends_in_the_way_to_the_rest(name: str, width: int) -> None:
    """The first change's fix is whole, or ends after a sentence with `… (-v)`."""
    analysis = analyzed(FOLDER / f"programs/recorded/{name}.pt.trace.json.gz")
    screen = " ".join(render(analysis, "text", width=width).split("\n\n")[0].split())
    (first, *_) = json.loads(render(analysis, "json"))["remedies"]
    sentences = re.split(r"(?<=[.:;])\s+(?=[A-Z])", first["fix"])
    assert sentences[0] in screen
    whole = first["fix"] in screen
    assert whole or "… (-v)" in screen
