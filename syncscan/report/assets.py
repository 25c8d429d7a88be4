"""Load templates and static files from report/templates."""

from __future__ import annotations

import base64
import functools
import hashlib
import re

import jinja2
from markupsafe import Markup, escape

from syncscan.report.units import duration


def template(name: str) -> jinja2.Template:
    """Return a template that escapes its values and fails on undefined names."""
    return _environment().get_template(name)


@functools.cache
def asset(name: str) -> Markup:
    """Return a file of the package unescaped: its text is trusted."""
    loader = _environment().loader
    assert loader is not None
    return Markup(loader.get_source(_environment(), name)[0])


def prose(text: str) -> Markup:
    """Return plain text as markup, with text between backticks as code, and options of a command on one line."""
    parts = re.split(r"`([^`]+)`", text)
    return Markup().join(Markup("<code>{}</code>").format(p) if k % 2 else _unbroken(p) for k, p in enumerate(parts))


def _unbroken(text: str) -> Markup:
    parts = re.split(r"(--[a-z]+(?:-[a-z]+)*)", text)
    whole = Markup('<span class="whole">{}</span>')
    return Markup().join(whole.format(p) if k % 2 else escape(p) for k, p in enumerate(parts))


def _integrity(text: str) -> str:
    """Return the hash by which a Content-Security-Policy names a script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


@functools.cache
def _environment() -> jinja2.Environment:
    env = jinja2.Environment(
        loader=jinja2.PackageLoader("syncscan.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters |= {"duration": duration, "prose": prose, "integrity": _integrity}
    return env
