"""TensorBoard: what would keep it from starting is said before, and its pages are rewritten on their way."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from syncscan.errors import MissingExtra, UsageError
from syncscan.model.interval import Interval
from syncscan.viewers import trace_view
from syncscan.viewers.annotate import Opening
from syncscan.viewers.private_server import Gate

INDEX = b'<head><script src="https://www.gstatic.com/charts/loader.js"></script></head><div id="app"></div>'


@pytest.mark.parametrize(
    ("versions", "says"),
    [
        ({}, "TensorBoard isn't installed"),
        ({"tensorboard": "2.21.0"}, "torch-tb-profiler"),
    ],
)
def test_a_missing_package_is_reported(monkeypatch: pytest.MonkeyPatch, versions: dict[str, str], says: str) -> None:
    """With what to install, and what to use instead."""
    monkeypatch.setattr(trace_view, "_version", versions.get)
    with pytest.raises(MissingExtra, match=says) as caught:
        trace_view.check()
    assert "pip install 'tensorboard>=" in caught.value.hint
    assert "--in perfetto" in caught.value.hint


@pytest.mark.parametrize(
    ("tensorboard", "setuptools", "works"),
    [
        ("2.21.0", "84.2.1", True),
        ("2.21.0", None, True),
        ("2.20.0", "81.0.0", True),
        ("2.20.0", "82.0.0", False),
        ("2.9.1", "82.0.0", False),
        ("2.20.0", None, False),
    ],
)
def test_versions_that_do_not_work_together_are_reported(
    monkeypatch: pytest.MonkeyPatch, tensorboard: str, setuptools: str | None, works: bool
) -> None:
    """TensorBoard before 2.21 needs pkg_resources, which setuptools lost in 82."""
    versions = {"tensorboard": tensorboard, "torch-tb-profiler": "0.4.3", "setuptools": setuptools}
    monkeypatch.setattr(trace_view, "_version", versions.get)
    if works:
        trace_view.check()
    else:
        with pytest.raises(UsageError, match="pkg_resources"):
            trace_view.check()


def test_a_taken_port_is_reported() -> None:
    """Before TensorBoard's plugin starts processes that would outlive the failure."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UsageError, match="can't be used"):
            trace_view._refuse_taken("127.0.0.1", taken.getsockname()[1])


def ask(path: str, body: bytes, offline: bool, status: str = "200 OK") -> tuple[str, dict[str, str], bytes]:
    """Return the browser's answer for a path when TensorBoard answers with this body."""
    seen: dict[str, Any] = {}

    def tensorboard(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        seen.update(environ)
        start(status, [("Content-Type", "text/html"), ("Content-Length", str(len(body)))])
        return [body]

    got: list[Any] = []
    gate = Gate("127.0.0.1")
    pages = trace_view.Pages(tensorboard, offline, gate)
    environ = {"PATH_INFO": gate.prefix + path, "HTTP_ACCEPT_ENCODING": "gzip", "HTTP_HOST": "127.0.0.1:6006"}
    text = b"".join(pages(environ, lambda status, headers, *_: got.extend((status, dict(headers)))))
    return got[0], got[1], text


def test_offline_the_page_gets_a_stub_in_place_of_the_chart_loader() -> None:
    """Nothing of another host is left in it, and its length is right."""
    _, headers, page = ask(f"{trace_view.PLUGIN}/index.html", INDEX, offline=True)
    assert b"https://" not in page
    assert b"google" in page
    assert headers["Content-Length"] == str(len(page))


def test_online_the_page_keeps_the_chart_loader() -> None:
    """Then the plugin's other views have their charts; behind the page stands what says that it waits."""
    page = ask(f"{trace_view.PLUGIN}/index.html", INDEX, offline=False)[2]
    assert page.startswith(INDEX)
    assert b"TensorBoard reads the trace" in page


def test_what_comes_from_a_trace_ends_no_script() -> None:
    """A finding's id stands in a script of the page."""
    opening = Opening("</script><b>", 0, Interval(1_500_000, 2_000_000), Interval(1_000_000, 3_500_000), ())
    script = trace_view._script("opening.js", opening=trace_view._relative(opening))
    assert script.count(b"</script>") == 1
    assert b'"before_ms": 0.5, "after_ms": 2.0' in script


@pytest.mark.parametrize("path", ["/index.html", "/data/plugin/scalars/index.html", "/"])
def test_pages_of_others_stay_as_they_are(path: str) -> None:
    """Only the profiler plugin's are rewritten."""
    assert ask(path, INDEX, offline=True)[2] == INDEX


def test_trace_view_comes_first() -> None:
    """The plugin's page opens the first of its views."""
    body = json.dumps(["Overview", "Operator", "Trace", "Memory"]).encode()
    got = ask(f"{trace_view.PLUGIN}/views", body, offline=False)[2]
    assert json.loads(got) == ["Trace", "Overview", "Operator", "Memory"]


def meanwhile(folder: Path, ready: list[str]) -> Callable[[str, str], tuple[dict[str, str], bytes]]:
    """Asks a TensorBoard of whose runs only some are read, and which has an error for all others."""
    for run in ("annotated", "recorded"):
        (folder / run).mkdir()
        (folder / run / "t.pt.trace.json.gz").write_bytes(b"packed")

    def tensorboard(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        runs = environ["PATH_INFO"].endswith("/runs")
        start("200 OK" if runs else "500 ERROR", [("Content-Type", "application/json")])
        return [json.dumps({"runs": ready, "loading": True}).encode() if runs else b"the plugin's"]

    gate = Gate("127.0.0.1")
    pages = trace_view.Pages(tensorboard, True, gate, runs=trace_view.Meanwhile(folder))

    def asked(name: str, query: str = "") -> tuple[dict[str, str], bytes]:
        got: list[Any] = []
        path = f"{gate.prefix}{trace_view.PLUGIN}/{name}"
        environ = {"PATH_INFO": path, "QUERY_STRING": query, "HTTP_HOST": "127.0.0.1"}
        body = b"".join(pages(environ, lambda status, headers, *_: got.append(dict(headers))))
        return got[0], body

    return asked


def test_a_run_that_the_plugin_still_reads_has_trace_view(tmp_path: Path) -> None:
    """Its file is given as it is; the page asks for a span, which a list must hold."""
    requested = meanwhile(tmp_path, [])
    assert json.loads(requested("runs")[1]) == {"runs": ["annotated", "recorded"], "loading": True}
    known = {name: json.loads(requested(name, "run=annotated&view=Trace")[1]) for name in ("views", "workers", "spans")}
    assert known == {"views": ["Trace"], "workers": ["t"], "spans": ["default"]}
    headers, body = requested("trace", "run=annotated&worker=t&span=default")
    assert (headers["Content-Encoding"], body) == ("gzip", b"packed")


def test_what_the_plugin_has_read_or_alone_knows_is_its_own(tmp_path: Path) -> None:
    """As soon as it lists a run, and for views that aren't Trace View; a run that isn't there is nobody's."""
    requested = meanwhile(tmp_path, ["annotated"])
    requested("runs")
    assert requested("trace", "run=annotated")[1] == b"the plugin's"
    assert requested("kernel", "run=recorded")[1] == b"the plugin's"
    assert requested("trace", "run=../recorded")[1] == b"the plugin's"


def test_an_error_is_passed_on() -> None:
    """Only pages are rewritten."""
    assert ask(f"{trace_view.PLUGIN}/views", b"not found", offline=False, status="404 NOT FOUND")[2] == b"not found"


def test_the_installed_plugin_has_what_is_replaced() -> None:
    """If the plugin's pages ever change, this says so before a user sees an empty page."""
    plugin = pytest.importorskip("torch_tb_profiler")
    static = Path(plugin.__file__).with_name("static")
    page = trace_view.plugins_page((static / "index.html").read_bytes(), offline=True)
    assert b"gstatic.com" not in page
    assert b"visualization: (() =>" in page
    view = trace_view.with_viewer_inside((static / "trace_embedding.html").read_bytes())
    assert b"cdnjs" not in view
    assert b'<link rel="import" href="trace_viewer_full.html"' not in view
    assert b"document.registerElement = " in view
    assert b"tr-ui-timeline-view" in view
