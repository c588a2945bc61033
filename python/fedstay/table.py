"""Columns as a table of whichever library is installed."""

from __future__ import annotations

import importlib.util
from typing import Any

__all__ = ["frame"]


def frame(columns: dict[str, list[Any]]) -> Any:
    """A pandas or a polars frame, whichever is installed, else the columns as they are."""
    if importlib.util.find_spec("pandas"):
        import pandas

        return pandas.DataFrame(columns)
    if importlib.util.find_spec("polars"):
        import polars

        return polars.DataFrame(columns, strict=False)
    return columns
