"""DataFrames of pandas, as rows that readers know."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from omnigraph.errors import InvalidInputError


def is_pandas(value: object) -> bool:
    """Whether a value is of pandas, which is not imported for it."""
    return type(value).__module__.partition(".")[0] == "pandas"


def from_pandas(
    frame: Any, name: str, *, as_table: bool = False
) -> pa.Table | list[dict[str, Any]]:
    """The rows as a table, or as dictionaries if a column has values of several kinds.

    Named levels of the index are columns; others are left out.

    Args:
        name: How errors name the rows.
        as_table: Whether such a column is refused.
    """
    levels = [level for level in frame.index.names if level is not None]
    names = [*map(str, levels), *map(str, frame.columns)]
    for column in names:
        if names.count(column) > 1:
            message = f'the rows of {name} have two columns "{column[:100]}"'
            raise InvalidInputError(message, hint="rename one of them, or a level of the index")
    if levels:
        frame = frame.reset_index(level=levels)
    frame = frame.rename(columns=str)
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as cause:
        if as_table:
            reason = str(cause.args[0])[:200] if cause.args else "no reason given"
            message = f"a column of the rows of {name} has values of several kinds: {reason}"
            raise InvalidInputError(message, hint="give its values one type") from cause
    values = frame.astype(object)
    rows: list[dict[str, Any]] = values.where(values.notna(), None).to_dict("records")
    return rows
