"""Whether a path holds an earlier export: its list of files, or how its rows begin, tells."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pyarrow as pa

from omnigraph.formats.compression import compression_of
from omnigraph.formats.export_folders import CONTENTS, parse_contents

_FIRST_ROW: Final = re.compile(rb'\{"(type|edge)":"[A-Za-z][A-Za-z0-9_]*",("id"|"from"|"data"):')
_FIRST_ROW_BYTES: Final = 1 << 10
"""How an exported row begins, and how much of a file shows it: names of types are short."""


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
