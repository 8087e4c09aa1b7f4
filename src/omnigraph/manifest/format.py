"""The format stamp: which manifest formats this release reads, and the one guard that checks it."""

from __future__ import annotations

from typing import Final

from omnigraph.errors import ErrorCode, FormatError
from omnigraph.manifest.layout import STAMP
from omnigraph.storage.tables import Table

CURRENT: Final = 4
"""The stamp this release writes: lineage rows live in the manifest."""

MIN_SUPPORTED: Final = 1
"""The oldest stamp this release migrates; raising it deletes the migrations below it."""

UNSTAMPED: Final = 1
"""The format of a manifest without a stamp: the first format had none."""


def stamp_of(manifest: Table) -> int:
    """The stamp of one manifest version, rejected if this release cannot read it.

    Raises:
        FormatError: the stamp is too new, too old or not a number, or the table is not a manifest.
            Nothing was written.
    """
    if "object_id" not in manifest.schema.names:
        # A file of zeros reads as a table without columns, and would look like the first format.
        message = f"{manifest.address} is no manifest: it has no object_id"
        raise _corruption_error(message)
    metadata = manifest.schema.metadata or {}
    text = metadata.get(STAMP.encode(), str(UNSTAMPED).encode()).decode(errors="replace")
    graph = manifest.address.root.uri
    if not text.isdecimal():
        message = f"the graph {graph} has the format stamp {text!r}, which is no number"
        raise _corruption_error(message, found=text)
    stamp = int(text)
    if stamp > CURRENT:
        message = f"the graph {graph} has format {stamp}; this release reads up to {CURRENT}"
        hint = "upgrade omnigraph"
        code = ErrorCode.FORMAT_TOO_NEW
        raise FormatError(message, hint=hint, code=code, found=stamp, supported=CURRENT)
    if stamp < MIN_SUPPORTED:
        message = f"the graph {graph} has format {stamp}; this release reads {MIN_SUPPORTED} and up"
        hint = "open it once with an older omnigraph, which migrates it"
        code = ErrorCode.FORMAT_TOO_OLD
        raise FormatError(message, hint=hint, code=code, found=stamp, supported=MIN_SUPPORTED)
    return stamp


def _corruption_error(message: str, **details: object) -> FormatError:
    hint = "restore the graph's files from a backup, and report how this came about"
    return FormatError(message, hint=hint, code=ErrorCode.CORRUPTED, supported=CURRENT, **details)
