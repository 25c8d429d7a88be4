"""A job that was saved is the same when it is read, and what isn't one is refused."""

from __future__ import annotations

import json

import pytest

from syncscan.fleet import document as fleet_json
from syncscan.fleet.saved import fleet_of, named_as_fleet
from tests.fleet.example import damaged, even, job


@pytest.mark.parametrize("fleet", [job(), damaged(), even()], ids=["job", "damaged", "even"])
def test_it_comes_back_as_it_was(fleet: object) -> None:
    """All but what a replay alone needs, which these don't have."""
    assert fleet_of(fleet_json.render(fleet).encode()) == fleet  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        b"", b"[]", b"{}", b'{"schema": "syncscan.fleet/2", "job": {}}', b'{"schema": "syncscan.fleet/3", "job": 1}',
        b'{"schema": "syncscan.fleet/3", "job": {"ranks": [1]}}',
    ],
)  # fmt: skip
def test_what_is_none_is_refused(text: bytes) -> None:
    """With ValueError, whatever it is."""
    with pytest.raises(ValueError, match=r"."):
        fleet_of(text)


def test_a_field_of_the_wrong_kind_is_refused() -> None:
    """Wherever it stands."""
    document = json.loads(fleet_json.render(job()))
    document["job"]["ranks"][0]["of"]["findings"][0]["wait_us"] = "long"
    with pytest.raises(ValueError, match="wait_us"):
        fleet_of(json.dumps(document).encode())


@pytest.mark.parametrize("number", ["1e300", "-1e300", "1e999", str(10**400)])
def test_a_number_without_end_is_refused(number: str) -> None:
    """A sum of such would be infinite."""
    text = fleet_json.render(job()).replace('"observed_us": 10000.0', f'"observed_us": {number}')
    with pytest.raises(ValueError, match=r"."):
        fleet_of(text.encode())


def test_its_name_says_what_it_is() -> None:
    """And no other name does."""
    assert [named_as_fleet(n) for n in ("a.fleet.json", "d/a.FLEET.JSON", "fleet.json", "a.json")] == [
        True,
        True,
        False,
        False,
    ]
