"""The plan and the files of an export, and the protocol of engines that write it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from omnigraph.choices import ExportFormat
from omnigraph.export.folders import ExportFolder
from omnigraph.formats.compression import Compression
from omnigraph.schema.catalog import SchemaType
from omnigraph.transaction.view import View

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with a type, how many of its rows are written, and how many it has."""


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """The rows of some types at one commit, and the form in which they are written."""

    view: View
    types: tuple[SchemaType, ...]
    format: ExportFormat
    compression: Compression | None
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class ExportFiles:
    """What was written: rows by type, and files in the order of their rows."""

    rows: Mapping[str, int]
    files: tuple[str, ...]


class Exporter(Protocol):
    """The part of an engine that writes exports."""

    def exports_one_file(self, format_: ExportFormat) -> bool:
        """Whether an export of this format is one file, and no directory."""
        ...

    def export_files(self, plan: ExportPlan, folder: ExportFolder) -> ExportFiles:
        """Write the rows into a folder, type by type and by id within."""
        ...
