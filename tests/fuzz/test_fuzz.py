"""The promises for any input hold for those that once failed, for the first of `make fuzz`, and for any JSON."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz import mutate
from tests.fuzz.__main__ import bases
from tests.fuzz.judge import judged, judged_wholly
from tests.fuzz.regressions import FOLDER, INPUTS
from tests.load.test_oracle import events, metadata, written

pytestmark = pytest.mark.filterwarnings("ignore")


def check(stored: bytes, suffix: str, r: Random, valid: Any = None) -> list[str]:
    """Return the broken promises for these bytes."""
    with _input(stored, suffix) as (path, out):
        return judged(path, out, r, valid)


@contextmanager
def _input(stored: bytes, suffix: str) -> Iterator[tuple[Path, Path]]:
    """A file of these bytes, and an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, f"input{suffix}"), Path(folder, "out")
        path.write_bytes(stored)
        out.mkdir()
        yield path, out


INPUT_FILES = [
    pytest.param(path, id=path.name, marks=[pytest.mark.slow] * (number % 6 != 1))
    for number, path in enumerate(sorted(FOLDER.iterdir(), key=lambda path: path.stat().st_size))
]
"""All of them by their size, of which every sixth is tried in each run of the tests, but not the largest."""


@pytest.mark.parametrize("path", INPUT_FILES)
def test_inputs_that_once_went_wrong(path: Path) -> None:
    """Every one, in every format and with every option."""
    with _input(path.read_bytes(), "".join(path.suffixes)) as (copy, out):
        assert judged_wholly(copy, out) == []


def test_the_files_are_what_the_code_makes() -> None:
    """None is there that isn't made anew, and none is missing; packed ones differ by the packer's version alone."""
    assert {path.name for path in FOLDER.iterdir()} == set(INPUTS)
    for name, make in INPUTS.items():
        if not name.endswith(".gz"):
            assert (FOLDER / name).read_bytes() == make()


@pytest.mark.parametrize("number", [pytest.param(n, marks=[pytest.mark.slow] * (n >= 4)) for n in range(12)])
def test_mutated_recordings(number: int, documents: list[dict[str, Any]]) -> None:
    """The first of those that `make fuzz` goes on with."""
    r = Random(f"tests {number}")
    assert check(*_judgeable(mutate.made(r.choice(documents), r), r)) == []


def _judgeable(built: tuple[bytes, str, Any], r: Random) -> tuple[bytes, str, Random, Any]:
    stored, suffix, valid = built
    return stored, suffix, r, valid


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    return bases()


def test_the_same_seed_makes_the_same_input(documents: list[dict[str, Any]]) -> None:
    """An input is told by its seed and number alone."""
    first, again = (mutate.made(documents[0], Random("7 7"))[:2] for _ in range(2))
    assert first == again


@settings(max_examples=settings().max_examples // 2, suppress_health_check=list(HealthCheck))
@given(st.lists(events, max_size=12), metadata, st.randoms(use_true_random=False))
def test_any_events(some: list[Any], members: dict[str, Any], r: Random) -> None:
    """Events of any fields, and members of any kind: valid in, valid out, and nothing raises."""
    text = written(some, members, {}, None, True)
    assert check(text, ".json", r, mutate.valid(text)) == []


@settings(max_examples=settings().max_examples // 2, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=300), st.randoms(use_true_random=False))
def test_any_bytes(noise: bytes, r: Random) -> None:
    """Noise, alone and inside a trace."""
    assert check(noise, r.choice((".json", ".json.gz", ".json.zst")), r) == []
    text = json.dumps({"traceEvents": [{"ph": "X", "ts": 1, "name": "x", "cat": "cpu_op"}] * 9}).encode()
    at = r.randrange(len(text))
    assert check(text[:at] + noise + text[at:], ".json", r) == []
