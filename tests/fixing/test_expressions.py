"""Calls with one argument more."""

from __future__ import annotations

import ast

from syncscan.fixing.edits import Draft, applied
from syncscan.fixing.expressions import with_argument
from syncscan.source.text import Text
from tests.each import each

LONG = "0123456789" * 7
CALLS = {
    "f()": "f(w=2)",
    "f(a)": "f(a, w=2)",
    "f(a, )": "f(a, w=2, )",
    "f((a))": "f((a), w=2)",
    "f((a), )": "f((a), w=2, )",
    "f(a,\n  b=1,  # last\n)": "f(a,\n  b=1, w=2,  # last\n)",
    "f(\n    (a),  # only\n)": "f(\n    (a), w=2,  # only\n)",
    "f(g(x))": "f(g(x), w=2)",
    "f(x=(1),  # (\n)": "f(x=(1), w=2,  # (\n)",
    "f(\n    a,\n    b=1,\n)": "f(\n    a,\n    b=1,\n    w=2,\n)",
    "f(a,\n  b=1)": "f(a,\n  b=1,\n  w=2)",
    f"x = f('{LONG}')": f"x = f('{LONG}',\n      w=2)",
    f"x = f(\n    '{LONG}', b)": f"x = f(\n    '{LONG}', b,\n    w=2)",
    f"x = '{LONG}'.f(a)": f"x = '{LONG}'.f(a, w=2)",
    f"f(a) + '{LONG}'": f"f(a,\n  w=2) + '{LONG}'",
}


@each("source", CALLS)
def test_an_argument_is_added(source: str) -> None:
    """Behind the last one and in front of its comma or comment; on a line of its own if that has one, or is full."""
    text = Text("", source)
    call = next(node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    draft = Draft(text)
    draft.replace(call, with_argument(text, call, "w=2"))
    assert applied(source, draft.edits()) == CALLS[source]
