"""Which engine merges or compares, and why: by how much differs."""

from __future__ import annotations

from omnigraph.engine.choose import Choice, asked_engine, by_size
from omnigraph.limits import CHANGES_LOCAL_BYTES_MAX, CHANGES_LOCAL_ROWS_MAX
from omnigraph.storage.pairs import Size


def choose_by_difference(size: Size, wanted: str | None) -> Choice:
    """The engine that was asked for, by argument or environment, or the one that fits.

    Raises:
        InvalidParameterError: there is no engine of that name.
    """
    if (asked := asked_engine(wanted)) is not None:
        return asked
    rows, size_in_bytes = size.row_count, size.byte_count
    if rows > CHANGES_LOCAL_ROWS_MAX:
        why = f"about {rows:,} rows differ, more than {CHANGES_LOCAL_ROWS_MAX:,}"
        return by_size(why, fits=False)
    if size_in_bytes > CHANGES_LOCAL_BYTES_MAX:
        why = f"about {size_in_bytes:,} bytes differ, more than {CHANGES_LOCAL_BYTES_MAX:,}"
        return by_size(why, fits=False)
    why = f"about {rows:,} rows differ, at most {CHANGES_LOCAL_ROWS_MAX:,}"
    return by_size(why, fits=True)
