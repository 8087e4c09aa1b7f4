"""The contents of an export: the list of its files, and whether a path holds an earlier export."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa

from omnigraph.formats.compression import compression_of

CONTENTS: Final = "_export.json"
"""The list of an export's files, in its directory: loads and readers of Parquet skip names that
begin like this one, and a later export knows what it may replace."""

_FIRST_ROW: Final = re.compile(rb'\{"(type|edge)":"[A-Za-z][A-Za-z0-9_]*",("id"|"from"|"data"):')
_FIRST_ROW_BYTES: Final = 1 << 10
"""How an exported row begins, and how much of a file shows it: names of types are short."""


def write_contents(
    directory: Path,
    *,
    commit_id: str,
    format_name: str,
    rows: Mapping[str, int],
    files: tuple[str, ...],
) -> None:
    """Write the list of an export's files into its directory."""
    contents = {"commit": commit_id, "format": format_name, "rows": dict(rows), "files": files}
    (directory / CONTENTS).write_text(json.dumps(contents, indent=1) + "\n", encoding="utf-8")


def parse_contents(data: bytes) -> frozenset[str] | None:
    """The files of an export, this list among them; None if the data are no such list."""
    try:
        return frozenset([CONTENTS, *json.loads(data)["files"]])
    except (ValueError, KeyError, TypeError):
        return None


def is_export(path: Path) -> bool:
    """Whether exports made all of a directory, or the beginning of a file."""
    return _is_export_directory(path) if path.is_dir() else _is_export_file(path)


def _is_export_file(path: Path) -> bool:
    compression = compression_of(path.name)
    try:
        with pa.input_stream(str(path), compression=compression and compression.value) as stream:
            beginning = stream.read(_FIRST_ROW_BYTES)
    except (OSError, pa.ArrowInvalid):
        return path.is_file() and not path.stat().st_size
    # An export without rows is empty.
    return not beginning or _FIRST_ROW.match(beginning) is not None


def _is_export_directory(directory: Path) -> bool:
    try:
        files = parse_contents((directory / CONTENTS).read_bytes())
    except OSError:
        return False
    stored = {
        path.relative_to(directory).as_posix()
        for path in directory.rglob("*")
        if not path.is_dir() or path.is_symlink()
    }
    return files is not None and stored <= files
