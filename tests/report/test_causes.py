"""Many places with one cause are named together."""

from __future__ import annotations

from msgspec.structs import replace

from syncscan.model.finding import Source
from syncscan.report.causes import MANY, title_of
from tests.report.example import finding


def test_few_places_keep_their_own_titles() -> None:
    """Up to three."""
    assert title_of([finding()] * (MANY - 1)) == ""


def test_many_places_are_named_by_library_and_rules() -> None:
    """The most frequent rule first; the library where most of them lie in one."""
    own_findings = [finding(f"nonzero-{k:08x}") for k in range(3)]
    inside = Source("/env/site-packages/torchvision/ops/boxes.py", 41, "nms", True)
    of_library = [
        replace(f, called_from=inside, owner="framework") for f in [*own_findings, finding("nonzero-aaaaaaaa")]
    ]
    assert title_of(of_library) == "4 places in torchvision: nonzero"
    assert title_of([*own_findings, finding("nonzero-aaaaaaaa")]) == "4 places: nonzero"
