"""Render the catalogs of rules as the JSON that other programs rely on (schema `syncscan.rules/1`)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import asdict

from syncscan.model.finding import Cause
from syncscan.model.habit import Area
from syncscan.model.rule_doc import RuleDoc

SCHEMA = "syncscan.rules/1"


class RuleEntry(msgspec.Struct, frozen=True):
    """Documentation of a rule."""

    id: str
    name: str
    summary: str
    sections: dict[str, str]


class SyncRuleEntry(RuleEntry, frozen=True):
    """A rule that identifies syncs."""

    cause: Cause


class HabitRuleEntry(RuleEntry, frozen=True):
    """A rule that finds habits."""

    area: Area


class RulesDocument(msgspec.Struct, frozen=True):
    """The catalog of rules."""

    schema: str
    rules: tuple[SyncRuleEntry, ...]
    habits: tuple[HabitRuleEntry, ...]


def render(rules: Sequence[RuleDoc], habits: Sequence[RuleDoc]) -> str:
    """Return both catalogs as indented JSON.

    Args:
        rules: rules that identify syncs, in matching order.
        habits: rules that find habits, in matching order.
    """
    document = RulesDocument(
        schema=SCHEMA,
        rules=tuple(SyncRuleEntry(**asdict(_entry(rule)), cause=Cause(rule.cause)) for rule in rules),
        habits=tuple(HabitRuleEntry(**asdict(_entry(rule)), area=Area(rule.cause)) for rule in habits),
    )
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode()


def _entry(rule: RuleDoc) -> RuleEntry:
    return RuleEntry(rule.id, rule.name, rule.summary, dict(rule.sections))
