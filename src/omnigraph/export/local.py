"""An export in this process: one stream of lines, or one file for each type."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from omnigraph.engine.budget import checkpoint
from omnigraph.engine.local.sort import sorted_batches
from omnigraph.export.files import write_file, write_lines
from omnigraph.export.folders import ExportFolder
from omnigraph.export.plans import ExportFiles, ExportPlan
from omnigraph.formats.compression import suffix_of
from omnigraph.formats.sinks import Sink
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import SchemaType


def export_lines(plan: ExportPlan, stream: Sink, spill_directory: Path | None) -> dict[str, int]:
    """Write the rows of all types as NDJSON; how many, by type."""
    return {
        type_.name: write_lines(type_, _sorted_rows(plan, type_, spill_directory), stream)
        for type_ in plan.types
    }


def export_files(plan: ExportPlan, folder: ExportFolder) -> ExportFiles:
    """Write one file for each type."""
    rows: dict[str, int] = {}
    files: list[str] = []
    for type_ in plan.types:
        suffix = f".{plan.format.suffix}{suffix_of(plan.compression)}"
        name = folder.to_name(type_.name, suffix)
        batches = _sorted_rows(plan, type_, folder.spill_directory)
        with folder.write(name) as file:
            rows[type_.name] = write_file(
                type_, batches, file, format=plan.format, compression=plan.compression
            )
        files.append(name)
    return ExportFiles(rows, tuple(files))


def _sorted_rows(
    plan: ExportPlan, type_: SchemaType, spill_directory: Path | None
) -> Iterator[pa.RecordBatch]:
    table = plan.view.data.table(type_.table_key)
    total = table.count_rows()
    done = 0
    for batch in sorted_batches(
        table, table_schema(type_), by="id", spill_directory=spill_directory
    ):
        checkpoint()
        yield batch
        done += batch.num_rows
        if plan.progress is not None:
            plan.progress(type_.name, done, total)
