"""A proof says the same in each format."""

from __future__ import annotations

import json
import re

import pytest
from msgspec.structs import replace

from syncscan.model.projection import Projection
from syncscan.model.step import Bound
from syncscan.proof import outcome as proof_json
from syncscan.proof import report
from syncscan.proof import report as proof_report
from syncscan.proof.outcome import Difference, Pair, Proof, ProofGain, ProofVerdict, Result, Same
from syncscan.report import markup, page, step_picture, terminal
from tests.report.test_step_picture import logged
from tests.schemas import wrong

EQUAL = Difference(0.0, 0.0)
PROOF = Proof(
    before="before.py",
    after="after.py",
    device="NVIDIA H200",
    verdict=ProofVerdict.PROVEN,
    gain=ProofGain(0.3, (0.28, 0.32)),
    matters=0.005,
    pairs=(Pair(10_000.0, 7_000.0),) * 3,
    result=Result(Same.YES, 5, EQUAL, None, None, "losses"),
    steps=100,
    clock="device",
    together=True,
    seconds=31.2,
    stopped="the uncertainty is a tenth of the difference",
    projected=Projection(("a",), 10_000.0, 10_000.0, 7_200.0, (6_900.0, 7_500.0), Bound.HOST, 1.0, 1.0),
)
NOISY = replace(
    PROOF,
    verdict=ProofVerdict.DIFFERENT,
    result=Result(Same.NO, 5, Difference(0.2, None), Difference(1e-7, None), Difference(2e-7, None), "outputs", "why"),
)


def render_text(proof: Proof, width: int = 100) -> str:
    return terminal.drawn(proof_report.blocks(proof), width)


def render_page(proof: Proof) -> str:
    return page.drawn(proof_report.blocks(proof), "syncscan prove")


def test_a_proof_on_a_terminal() -> None:
    """The verdict first, the gain beside what was projected, whether the result is the same."""
    text = render_text(PROOF, 120)
    assert text.splitlines()[:4] == [
        "Proven: a step takes 7.00 ms instead of 10.0 ms, 30.0% less (28.0% to 32.0%).",
        "before.py → after.py · NVIDIA H200",
        "  projected  28.0% (25.0% to 31.0%): as measured",
        "  result     the same. After 5 seeded steps losses equal, updates of parameters equal",
    ]
    assert all(len(line) <= 80 for line in render_text(PROOF, 80).splitlines())


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"verdict": ProofVerdict.NO_GAIN, "gain": ProofGain(0.001, (-0.003, 0.004))},
         "Not proven: no difference that matters. "
         "A step takes 9.99 ms instead of 10.0 ms, 0.10% less (-0.30% to 0.40%)."),
        ({"verdict": ProofVerdict.NO_GAIN, "gain": ProofGain(-0.014, (-0.037, 0.004))},
         "Not proven: no gain that matters. "
         "A step takes 10.1 ms instead of 10.0 ms, 1.4% more (-0.40% to 3.7%)."),
        ({"verdict": ProofVerdict.SLOWER, "gain": ProofGain(-0.1, (-0.12, -0.08))},
         "Not proven: it is slower. A step takes 11.0 ms instead of 10.0 ms, 10.0% more (8.0% to 12.0%)."),
        ({"verdict": ProofVerdict.UNKNOWN},
         "Not proven: whether the results match is unknown. "
         "A step takes 7.00 ms instead of 10.0 ms, 30.0% less (28.0% to 32.0%)."),
        ({"verdict": ProofVerdict.UNKNOWN, "gain": ProofGain(0.3, (-0.1, 0.5))},
         "Not proven: the uncertainty is too large. "
         "A step takes 7.00 ms instead of 10.0 ms, 30.0% less (-10.0% to 50.0%)."),
        ({"verdict": ProofVerdict.UNKNOWN, "gain": None, "pairs": PROOF.pairs[:1]},
         "Not proven. Too few pairs of processes to measure a gain: 1 of 3."),
    ],
)  # fmt: skip
def test_what_is_not_proven_is_reported(change: dict[str, object], line: str) -> None:
    """With what was measured."""
    assert render_text(replace(PROOF, **change), 140).splitlines()[0] == line  # type: ignore[arg-type]


def test_another_result_is_reported_with_how_it_is_known() -> None:
    """The report says that it isn't deterministic, or how much rounding errors alone change."""
    assert (
        "different: why. After 5 seeded steps outputs 0.2 apart; not deterministic: two runs of the first version "
        "differ, outputs 1e-07 apart; rounding errors only: outputs 2e-07 apart"
    ) in render_text(NOISY, 400)

    fewer = replace(NOISY.result, not_compared="their parameters have other shapes")
    assert "2e-07 apart; their parameters have other shapes" in render_text(replace(NOISY, result=fewer), 400)


@pytest.mark.parametrize(("low", "high", "text"), [(0.1, 0.2, "more"), (0.4, 0.5, "less")])
def test_a_projection_that_was_wrong_is_reported(low: float, high: float, text: str) -> None:
    """Only where the two ranges don't meet."""
    proof = replace(PROOF, gain=ProofGain((low + high) / 2, (low, high)))
    assert f"{text} than measured" in render_text(proof)


def test_json_has_everything() -> None:
    """Under its schema, with numbers that any reader takes."""
    document = json.loads(proof_json.render(PROOF))
    assert (document["schema"], document["verdict"], document["proven"]) == ("syncscan.prove/2", "proven", True)
    assert document["gain"] == {"share": 0.3, "range": [0.28, 0.32]}
    assert document["result"]["difference"] == {"losses": 0.0, "parameters": 0.0}
    assert len(document["pairs"]) == 3
    endless = replace(NOISY, result=replace(NOISY.result, difference=Difference(float("inf"), None)))
    assert json.loads(proof_json.render(endless))["result"]["difference"]["losses"] is None


def test_markdown_shows_names_as_text() -> None:
    """A script's name may hold anything."""
    text = markup.drawn(proof_report.blocks(replace(PROOF, before="<b>@you|.py")))
    assert "Proven: a step takes 7.00 ms" in text
    assert "<b>" not in text
    assert "| result | the same" in text


def test_the_page_draws_each_pair_and_both_intervals_on_one_axis() -> None:
    """A dot for each pair; the projected interval, wider, begins left of the measured one."""
    html = render_page(PROOF)
    assert html.count('class="dot"') == 3
    begins = {name: float(x) for name, x in re.findall(r'class="bar (\w+)" x="([\d.]+)"', html)}
    assert begins["projected"] < begins["measured"]
    assert "Proven: a step takes 7.00 ms instead of 10.0 ms, 30.0% less (28.0% to 32.0%)." in html


def test_the_page_without_pairs_has_the_verdict_alone() -> None:
    html = render_page(replace(PROOF, verdict=ProofVerdict.UNKNOWN, gain=None, pairs=()))
    assert "Too few pairs of processes to measure a gain: 0 of 3." in html
    assert "<svg" not in html


def test_the_page_shows_names_as_text_and_runs_nothing() -> None:
    html = render_page(replace(PROOF, before="<script>alert(1)</script>.py"))
    assert "<script" not in html
    assert "default-src 'none'" in html


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (-0.01, 0.33, [0.0, 0.1, 0.2, 0.3]),
        (9.89, 10.11, [9.9, 9.95, 10.0, 10.05, 10.1]),
        (0.0, 1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
    ],
)
def test_an_axis_has_round_values_inside_it(low: float, high: float, ticks: list[float]) -> None:
    assert report.Scale(low, high, 100).ticks() == pytest.approx(ticks)


def test_a_proof_shows_the_step_that_its_projection_is_of() -> None:
    """Without a trace there is none."""
    picture = step_picture.projected(logged(), logged().whatif("all"))
    assert "The step that was projected" in page.drawn(report.blocks(PROOF, picture), "syncscan prove")
    assert "The step that was projected" not in page.drawn(report.blocks(PROOF), "syncscan prove")


@pytest.mark.parametrize("value", [PROOF, NOISY])
def test_a_proof_follows_its_schema(value: Proof) -> None:
    """With a result that is the same, and one that isn't."""
    assert wrong("proof", proof_json.render(value)) == []
