"""Export counts as Prometheus text (text format 0.0.4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping


def family(name: str, kind: str, words: str, samples: Iterable[tuple[Mapping[str, str], float]]) -> Iterator[str]:
    """Yield the lines of one metric, with the labels and the value of each sample."""
    yield f"# HELP {name} {words}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        inside = ",".join(f'{key}="{_escape(text)}"' for key, text in labels.items())
        yield f"{name}{{{inside}}} {value}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
