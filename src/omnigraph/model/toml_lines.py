"""Lines of TOML files: where a key is, so that a wrong one can be named with its line."""

from __future__ import annotations

import re


def find_line(text: str, keys: list[str]) -> int | None:
    r"""The line of a TOML text that has a key, or the table that lacks it.

    >>> find_line("port = 1\n[limits]\nreads = 0\n", ["limits", "reads"])
    3
    >>> find_line("[graphs.a]\n", ["graphs", "a", "uri"])
    1
    """
    table: list[str] = []
    nearest: tuple[int, int] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        found: list[str] | None = None
        if (header := re.match(r"\s*\[([^\[\]]+)\]", line)) is not None:
            table = _parts(header[1])
            found = table
        elif (entry := re.match(r"\s*([A-Za-z0-9_.\"'-]+)\s*=", line)) is not None:
            found = [*table, *_parts(entry[1])]
        if found is None:
            continue
        shared = min(len(found), len(keys))
        if found[:shared] == keys[:shared] and (nearest is None or shared > nearest[0]):
            nearest = (shared, number)
    return None if nearest is None else nearest[1]


def _parts(name: str) -> list[str]:
    return [part.strip().strip("\"'") for part in name.split(".")]
