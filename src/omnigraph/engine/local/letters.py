"""Letters: the other case of each character, as DuckDB has it, for engines that have another."""

from __future__ import annotations

from contextlib import closing
from functools import cache
from typing import Final, Literal

from omnigraph.engine.local.databases import new_cursor

_LETTERS_END: Final = 0x20000
"""Characters from here on are ideographs, which have no case."""


@cache
def other_cases(function: Literal["lower", "upper"]) -> tuple[str, str]:
    """The characters that a function changes, and what each of them becomes, which is one."""
    # Between the two ranges are surrogates, which are no characters.
    pairs = f"""
        SELECT string_agg(c, '' ORDER BY c), string_agg({function}(c), '' ORDER BY c)
        FROM (SELECT chr(i::INT) AS c FROM range(1, 55296) t(i)
              UNION ALL SELECT chr(i::INT) FROM range(57344, {_LETTERS_END}) t(i))
        WHERE {function}(c) != c
    """
    with closing(new_cursor()) as cursor:
        [(letters, others)] = cursor.sql(pairs).fetchall()
    assert len(letters) == len(others), "each becomes one character"
    return letters, others
