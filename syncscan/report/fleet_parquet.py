"""Render a Fleet as Parquet: the frame of `Fleet.to_frame()`, with each column's meaning in the file's metadata."""

from __future__ import annotations

import io

from syncscan.errors import MissingExtra, installing
from syncscan.model.fleet import Fleet
from syncscan.report.fleet_table import COLUMNS, fleet_frame


def render(fleet: Fleet) -> bytes:
    """Return the frame as a Parquet file.

    Raises:
        MissingExtra: pyarrow isn't installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtra("Parquet needs pyarrow.", f"Run: {installing('fleet')}.") from None
    table = pa.Table.from_pandas(fleet_frame(fleet), preserve_index=False)
    fields = [field.with_metadata({"holds": COLUMNS[field.name].holds}) for field in table.schema]
    out = io.BytesIO()
    pq.write_table(table.cast(pa.schema(fields, metadata=table.schema.metadata)), out)
    return out.getvalue()
