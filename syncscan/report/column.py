"""Build pandas frames with documented dtypes from flat rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from syncscan.errors import MissingExtra, installing

if TYPE_CHECKING:
    import pandas as pd


class Column(NamedTuple):
    dtype: str
    holds: str


def frame_of(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, Column]) -> pd.DataFrame:
    """Return the rows as a pandas frame with these columns and dtypes, also where there are none."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtra("A frame needs pandas.", f"Run: {installing('pandas')}.") from None
    frame = pd.DataFrame(list(rows), columns=list(columns))
    typed: pd.DataFrame = frame.astype({name: column.dtype for name, column in columns.items()})
    return typed
