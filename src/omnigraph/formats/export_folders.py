"""The folder of an export: the list of its files, and the names that files and folders have."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from omnigraph.clock import ULID_LENGTH

CONTENTS: Final = "_export.json"
"""The list of an export's files, in its directory: loads and readers of Parquet skip names that
begin like this one, and a later export knows what it may replace."""

UNFINISHED: Final = "_unfinished"
"""Begins the name of the record, in a bucket, of an export that is not complete."""

_ID: Final = rf"[0-9A-HJKMNP-TV-Z]{{{ULID_LENGTH}}}"
_RUN: Final = re.compile(rf"\.{_ID}(?=\.)")
_PLACE: Final = ".partial"
_REPLACED: Final = f"{_PLACE}.old"


def place_beside(target: Path, run_id: str) -> Path:
    """Where the run of an export makes what it renames to the target at the end."""
    return target.with_name(f".{target.name}.{run_id}{_PLACE}")


def replaced_beside(target: Path, run_id: str) -> Path:
    """Where a directory is while the one that replaces it gets its name."""
    return target.with_name(f".{target.name}.{run_id}{_REPLACED}")


def find_replaced(target: Path) -> Path | None:
    """The last export that a killed run moved away from the target, and did not replace."""
    is_replaced = re.compile(rf"\.{re.escape(target.name)}\.{_ID}{re.escape(_REPLACED)}").fullmatch
    try:
        beside = [path for path in target.parent.iterdir() if is_replaced(path.name)]
    except OSError:
        return None
    return None if os.path.lexists(target) else max(beside, default=None)


def format_contents(
    *, commit_id: str, format_name: str, rows: Mapping[str, int], files: tuple[str, ...]
) -> bytes:
    """The list of an export's files, as it is stored beside them."""
    contents = {"commit": commit_id, "format": format_name, "rows": dict(rows), "files": files}
    return (json.dumps(contents, indent=1) + "\n").encode()


def parse_contents(data: bytes) -> frozenset[str] | None:
    """The files of an export, this list among them; None if the data are no such list."""
    try:
        return frozenset([CONTENTS, *json.loads(data)["files"]])
    except (ValueError, KeyError, TypeError):
        return None


def is_of_a_run(path: str) -> bool:
    """Whether the name of an object has the id of the run of an export.

    >>> is_of_a_run("out/Person.01M7HSF4M9RTNMKYE2FPY7VRJZ.csv"), is_of_a_run("out/Person.csv")
    (True, False)
    """
    return run_of(path) is not None


def run_of(path: str) -> str | None:
    """The id of the run that wrote an object, by its name; None if that has none."""
    run = _RUN.search(path.rpartition("/")[2])
    return None if run is None else run[0][1:]
