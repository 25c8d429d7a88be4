"""Where the device is the limit: what is left to gain, and its longest kernels."""

from __future__ import annotations

import json

from msgspec.structs import replace

from syncscan import api
from syncscan.model.analysis import Analysis
from syncscan.model.step import Bound
from syncscan.report import kernels, render
from syncscan.report.blocks import Fold, plain
from tests.builder import TraceBuilder
from tests.report.example import typical


def options_of(form: str) -> dict[str, bool]:
    """With its tables, where a report has them only on demand."""
    return {"verbose": True} if form in ("text", "markdown") else {}


def device_bound() -> Analysis:
    t = TraceBuilder()
    for start in t.steps(3, lasts=1000):
        with t.scope("encoder", start, start + 60), t.op("aten::mm", start, start + 50):
            t.launch("void at::native::gemm_kernel<float>(float*)", at=start + 1, lasts=700)
        t.launch("add", at=start + 100, lasts=290)
    analysis = api.analyze_trace(t.trace())
    return replace(analysis, step=replace(analysis.step, bound=Bound.DEVICE, device_share=0.97))


def test_the_sentence_says_what_is_left_and_hands_over() -> None:
    """The step less what the device is busy; two kernels are all of its work."""
    text = kernels.sentence(device_bound())
    assert text.startswith("At most about 3% of the step without the profiler (estimated) is left to gain on the host")
    assert "2 kernels take 100% of device time" in text


def test_a_first_screen_without_a_change_leads_to_the_kernels() -> None:
    """Where the device is the limit there is something left to read, in one line."""
    assert "Then   2 kernels take 100% of device time; -v names them." in render(device_bound(), "text").splitlines()


def test_another_limit_has_no_such_sentence_and_a_table_on_demand() -> None:
    """Below `-v`, as the kernels aren't what to look at."""
    result = replace(device_bound(), step=replace(device_bound().step, bound=Bound.HOST))
    assert kernels.sentence(result) == ""
    assert kernels.TITLE not in render(result, "text")
    assert kernels.TITLE in render(result, "text", verbose=1)


def test_a_row_has_the_short_name_the_module_the_share_and_the_time() -> None:
    """The longest first."""
    *_, fold = kernels.blocks(device_bound())
    assert [tuple(plain(cell) for cell in row[:3]) for row in fold.blocks[0].rows] == [
        ("gemm_kernel<float>(float*)", "encoder › aten::mm", "70.7%"),
        ("add", "–", "29.3%"),
    ]


def test_every_format_has_them() -> None:
    """JSON with the whole name."""
    result = device_bound()
    for form in ("text", "markdown", "html"):
        assert "gemm_kernel" in render(result, form, **options_of(form))
        assert "left to gain on the host" in render(result, form, **options_of(form)).replace("\n", " ")
    names = [kernel["name"] for kernel in json.loads(render(result, "json"))["kernels"]]
    assert names == ["void at::native::gemm_kernel<float>(float*)", "add"]


def test_a_trace_without_kernels_has_no_table() -> None:
    """Nor does a report of it mention them."""
    assert not any(
        isinstance(block, Fold) for block in kernels.blocks(replace(typical(), trace=TraceBuilder().trace()))
    )


def test_a_long_name_loses_its_template_but_for_cutlass() -> None:
    """Whose template is always called the same."""
    functor = "void at::native::vectorized_elementwise_kernel<4, at::native::MulFunctor<float>>(int)"
    assert kernels._short(functor) == "vectorized_elementwise_kernel"
    cutlass = "void cutlass::Kernel<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16>(Params)"
    assert kernels._short(cutlass) == "cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16"
