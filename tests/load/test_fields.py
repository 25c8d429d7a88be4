"""The fields of `args` that become columns."""

from __future__ import annotations

import msgspec

from syncscan.load.event import Args
from syncscan.load.fields import FIELDS, fields_of
from syncscan.model.trace import Category, Slices


def test_each_field_is_a_column_of_slices() -> None:
    """So a new one is a line in `FIELDS`, and its meaning in `Slices`."""
    assert {field.column for field in FIELDS} <= set(Slices.__struct_fields__)


def test_each_field_is_decoded_by_its_key() -> None:
    """A key of `args` is read by its attribute."""
    keys = {field.name: field.encode_name for field in msgspec.structs.fields(Args)}
    assert [keys[field.column] for field in FIELDS] == [field.key for field in FIELDS]


def test_a_category_has_its_fields_only() -> None:
    """A wait of the profiler's names an event's record, an overhead nothing."""
    columns = {category: {field.column for field in fields_of(category)} for category in Category}
    assert "awaits" in columns[Category.SYNC]
    assert not any("awaits" in own for category, own in columns.items() if category is not Category.SYNC)
    assert columns[Category.OVERHEAD] == set()
