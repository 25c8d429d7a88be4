"""The Grafana dashboard of the docs queries what a watch exports, by labels that it has."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from syncscan.watching.metrics import Prometheus
from tests.watching.example import ALARM, begin, window

BOARD: dict[str, Any] = json.loads((Path(__file__).parents[2] / "docs/static/grafana.json").read_text())
QUERIES = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
VARIABLES = [row["query"]["query"] for row in BOARD["templating"]["list"] if row["type"] == "query"]


def exported() -> dict[str, set[str]]:
    """Return the labels of each metric that the Prometheus text has."""
    metrics = Prometheus()
    for record in (begin(), ALARM, window(1)):
        metrics(record)
    rows = re.findall(r"^(\w+)\{(.*)\} \S+$", metrics.text(), re.MULTILINE)
    return {name: set(re.findall(r'(\w+)="', labels)) for name, labels in rows}


def test_every_metric_of_the_dashboard_is_exported_and_the_other_way_round() -> None:
    queried = {name for query in (*QUERIES, *VARIABLES) for name in re.findall(r"syncscan_watch_\w+", query)}
    assert queried == set(exported())


def test_every_label_of_the_dashboard_is_one_of_its_metric() -> None:
    """In selectors, in legends and in the variables."""
    labels = exported()
    for panel in BOARD["panels"]:
        for target in panel["targets"]:
            (name, *_) = re.findall(r"syncscan_watch_\w+", target["expr"])
            used = set(re.findall(r"(\w+)=~", target["expr"])) | set(
                re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
            )
            assert used <= labels[name], panel["title"]
    for query in VARIABLES:
        match = re.fullmatch(r"label_values\((\w+), (\w+)\)", query)
        assert match is not None
        assert match[2] in labels[match[1]]


def test_the_dashboard_has_what_grafana_needs() -> None:
    """Panels of different numbers that don't overlap, each with its data source, and a query per letter."""
    assert BOARD["schemaVersion"] >= 36
    numbers = [panel["id"] for panel in BOARD["panels"]]
    assert len(set(numbers)) == len(numbers)
    cells = [
        (x, y)
        for panel in BOARD["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
    for panel in BOARD["panels"]:
        assert panel["datasource"]["uid"] == "${datasource}"
        assert [target["refId"] for target in panel["targets"]] == list("ABCDEF")[: len(panel["targets"])]
