"""From the name of a file in report/templates to the template, or to the text that pages hold as it is."""

from __future__ import annotations

import base64
import functools
import hashlib
import re

import jinja2
from markupsafe import Markup, escape

from syncscan.report.units import duration


def template(name: str) -> jinja2.Template:
    """A template; what it is filled with is escaped, and a name that it isn't given is an error."""
    return _environment().get_template(name)


@functools.cache
def asset(name: str) -> Markup:
    """A file of the package's own, as it is: its text is trusted."""
    loader = _environment().loader
    assert loader is not None
    return Markup(loader.get_source(_environment(), name)[0])


def prose(text: str) -> Markup:
    """Plain text as markup: what stands between backticks becomes code."""
    parts = re.split(r"`([^`]+)`", text)
    return Markup().join(Markup("<code>{}</code>").format(p) if k % 2 else escape(p) for k, p in enumerate(parts))


def _integrity(text: str) -> str:
    """What a Content-Security-Policy names a script or style by."""
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
