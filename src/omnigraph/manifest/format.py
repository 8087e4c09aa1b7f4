"""The format stamp: which manifest formats this release reads, and the one guard that checks it."""

from __future__ import annotations

from typing import Final

from omnigraph.errors import ErrorCode, FormatError
from omnigraph.manifest.layout import STAMP
from omnigraph.storage.tables import Table

CURRENT: Final = 4
"""The stamp this release writes."""

MIN_SUPPORTED: Final = 4
"""The oldest stamp this release reads."""

_ORIGINAL_COLUMNS: Final = frozenset({"base_objects", "stable_table_id"})
"""Columns that only manifests of the Rust releases have; their stamps count other formats."""

_UNSTAMPED_ORIGINAL: Final = 1

_RELEASES: Final = {1: "0.3", 2: "0.4 to 0.6", 3: "0.6 or 0.7", 4: "0.8", 6: "0.9 or 0.10"}
"""The Rust releases that wrote each internal schema; the manifest does not say which it was."""

IMPORTABLE: Final = frozenset({2, 3, 4})
"""The internal schemas of the Rust releases that `originals` imports (docs/decisions/0036)."""


def stamp_of(manifest: Table) -> int:
    """The stamp of one manifest version, rejected if this release cannot read it."""
    if "object_id" not in manifest.schema.names:
        # A file of zeros reads as a table without columns, and would look like the first format.
        message = f"{manifest.address} is not a manifest: it has no object_id"
        raise _corruption_error(message)
    graph = manifest.address.root.uri
    if (original := original_stamp(manifest)) is not None:
        raise _original_error(graph, original)
    metadata = manifest.schema.metadata or {}
    text = metadata.get(STAMP.encode(), b"").decode(errors="replace")
    if not text.isdecimal():
        message = f"the graph {graph} has the format stamp {text!r}, which is not a number"
        raise _corruption_error(message, found=text)
    stamp = int(text)
    if stamp > CURRENT:
        message = f"the graph {graph} has format {stamp}; this release reads up to {CURRENT}"
        hint = "upgrade omnigraph"
        code = ErrorCode.FORMAT_TOO_NEW
        raise FormatError(message, hint=hint, code=code, found=stamp, supported=CURRENT)
    if stamp < MIN_SUPPORTED:
        message = f"the graph {graph} has format {stamp}; this release reads {MIN_SUPPORTED} and up"
        hint = "open it with an older release"
        code = ErrorCode.FORMAT_TOO_OLD
        raise FormatError(message, hint=hint, code=code, found=stamp, supported=MIN_SUPPORTED)
    return stamp


def original_stamp(manifest: Table) -> int | None:
    """The internal schema of a manifest that a Rust release wrote; None for a manifest of ours."""
    if _ORIGINAL_COLUMNS.isdisjoint(manifest.schema.names):
        return None
    text = (manifest.schema.metadata or {}).get(STAMP.encode())
    if text is None:
        return _UNSTAMPED_ORIGINAL
    return int(text) if text.isdigit() else 0


def release_of(stamp: int) -> str:
    """The Rust releases that wrote an internal schema, as in "the Rust release 0.8"."""
    release = _RELEASES.get(stamp)
    return "an unknown Rust release" if release is None else f"the Rust release {release}"


def _original_error(graph: str, stamp: int) -> FormatError:
    message = f"{graph} was written by {release_of(stamp)} (internal schema {stamp})"
    hint = f"import it with 'omnigraph import original {graph} TARGET'"
    if stamp not in IMPORTABLE:
        hint = "it cannot be imported: export it with that release, and load the files"
    return FormatError(message, hint=hint, code=ErrorCode.FORMAT_TOO_OLD, found=stamp)


def _corruption_error(message: str, **details: object) -> FormatError:
    hint = "restore the graph's files from a backup, and report how this came about"
    return FormatError(message, hint=hint, code=ErrorCode.CORRUPTED, supported=CURRENT, **details)
