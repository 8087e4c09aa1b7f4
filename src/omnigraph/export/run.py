"""The run of an export: a snapshot's rows into files, in one order, on either engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import pyarrow as pa

from omnigraph.choices import EngineName, ExportFormat
from omnigraph.clock import Clock
from omnigraph.engine.choose import Choice, Constraint, Measure, by_size
from omnigraph.errors import InvalidInputError
from omnigraph.export.buckets import bucket_uri, make_folder, make_object
from omnigraph.export.contents import is_export
from omnigraph.export.files import choose_format
from omnigraph.export.folders import DiskFolder
from omnigraph.export.local import export_lines
from omnigraph.export.plans import Exporter, ExportFiles, ExportPlan, Progress
from omnigraph.export.results import ExportResult
from omnigraph.export.targets import make_target, parse_target
from omnigraph.formats.compression import compression_of, suffix_of
from omnigraph.formats.export_folders import CONTENTS, format_contents
from omnigraph.formats.sinks import STANDARD_OUTPUT, compress, standard_output
from omnigraph.limits import LOCAL_BYTES_MAX
from omnigraph.storage.schemes import is_remote
from omnigraph.transaction.view import View

Exporters: TypeAlias = Callable[[EngineName], Exporter]
"""Returns what exports on the engine of a name."""


@dataclass(frozen=True, slots=True)
class ExportOrder:
    """What to export, where to, and how.

    Attributes:
        target: A file for NDJSON on the local engine, `-` for standard output, else a directory;
            either may be a `file://` URL, or in a folder of an object store,
            `s3://bucket/folder/name`. NDJSON is compressed as the name says: `.gz` or `.zst`.
        types: Names of types; all when None.
        format: `ndjson`, `parquet` or `csv`; NDJSON when None.
        engine: `local`, `spark` or `auto`.
        replaces: Whether an earlier export under that name is replaced.
        hidden: The types that are left out, because the actor may not export them.
    """

    target: str | Path
    types: tuple[str, ...] | None = None
    format: str | None = None
    engine: str | None = None
    replaces: bool = False
    progress: Progress | None = field(default=None, compare=False)
    hidden: tuple[str, ...] = ()


def export(view: View, clock: Clock, exporters: Exporters, order: ExportOrder) -> ExportResult:
    """Write a snapshot's rows, type by type and by id within: equal graphs give equal NDJSON.

    Rows that are loaded from NDJSON have the same ids again.
    """
    order = replace(order, target=parse_target(str(order.target)))
    plan = _plan(view, order)
    target = str(order.target)
    choice = by_size(order.engine, _measures(plan), _constraint(target, plan.format))
    if target == STANDARD_OUTPUT:
        with standard_output() as stream:
            rows = export_lines(plan, stream, None)
        return _result(plan, choice, STANDARD_OUTPUT, ExportFiles(rows, ()), order.hidden)
    exporter = exporters(choice.engine)
    is_one_file = exporter.exports_one_file(plan.format)
    _require_own_place(plan, target, is_one_file=is_one_file)
    if is_one_file:
        name, written = _write_one_file(plan, order, clock)
    else:
        name, written = _write_folder(plan, exporter, order, clock)
    return _result(plan, choice, name, written, order.hidden)


def _write_one_file(plan: ExportPlan, order: ExportOrder, clock: Clock) -> tuple[str, ExportFiles]:
    """Write one file; its full name, and what it has."""
    target = str(order.target)
    if is_remote(target):
        with (
            make_object(target, replaces=order.replaces) as file,
            compress(file, plan.compression) as stream,
        ):
            rows = export_lines(plan, stream, None)
        return target, ExportFiles(rows, (target.rpartition("/")[2],))
    path = Path(order.target).absolute()
    with (
        make_target(path, clock.ulid(), replaces=order.replaces, is_ours=is_export) as place,
        pa.OSFile(str(place), "wb") as file,
        compress(file, plan.compression) as stream,
    ):
        rows = export_lines(plan, stream, place.parent)
    return str(path), ExportFiles(rows, (path.name,))


def _write_folder(
    plan: ExportPlan, exporter: Exporter, order: ExportOrder, clock: Clock
) -> tuple[str, ExportFiles]:
    """Write a folder, the list of its contents last; its full name, and what it has."""
    target = str(order.target).rstrip("/")
    if is_remote(target):
        with make_folder(target, clock.ulid(), replaces=order.replaces) as bucket_target:
            written = exporter.export_files(plan, bucket_target.folder)
            bucket_target.finish(_contents(plan, written), written.files)
        return target, written
    path = Path(order.target).absolute()
    with make_target(path, clock.ulid(), replaces=order.replaces, is_ours=is_export) as place:
        place.mkdir()
        folder = DiskFolder(str(place))
        written = exporter.export_files(plan, folder)
        folder.settle(written.files)
        Path(place, CONTENTS).write_bytes(_contents(plan, written))
    return str(path), written


def _require_own_place(plan: ExportPlan, target: str, *, is_one_file: bool) -> None:
    """Refuse a target among the graph's own files, and a directory for what is one file."""
    # A type that is exported: the actor may read its table.
    keys = (*(type_.table_key for type_ in plan.types), *plan.view.snapshot.pins)
    graph = plan.view.data.table(keys[0]).address.root
    place = bucket_uri(target) if is_remote(target) else str(Path(target).resolve())
    home = str(Path(graph.uri).resolve()) if graph.is_local else graph.uri
    if f"{place}/".startswith(f"{home}/"):
        message = f"{target} lies in the directory of the graph itself"
        raise InvalidInputError(message, hint=f"choose a place outside of {graph.uri}")
    path = Path(target)
    if is_one_file and not is_remote(target) and path.is_dir() and not is_export(path):
        message = f"{target} is a directory, and ndjson is one file"
        raise InvalidInputError(message, hint=f"name a file, such as {path / 'graph.jsonl'}")


def _plan(view: View, order: ExportOrder) -> ExportPlan:
    target = str(order.target)
    format_ = choose_format(order.format, target)
    types = view.catalog.types_named(order.types)
    compression = None if format_ is ExportFormat.PARQUET else compression_of(target)
    return ExportPlan(view, types, format_, compression, order.progress)


def _names_a_file(target: str) -> bool:
    plain = target.removesuffix(suffix_of(compression_of(target)))
    return plain.endswith((".jsonl", ".ndjson", ".json"))


def _measures(plan: ExportPlan) -> Iterator[Measure]:
    tables = (plan.view.data.table(type_.table_key) for type_ in plan.types)
    byte_count = sum(table.count_bytes() for table in tables)
    yield Measure.of_bytes(byte_count, LOCAL_BYTES_MAX, "{} to export")


def _constraint(target: str, format_: ExportFormat) -> Constraint | None:
    """One process writes one file; where Spark is asked for, the name is that of a directory."""
    why = "the target is one file"
    if target == STANDARD_OUTPUT:
        message = "Spark writes a directory of files, and standard output is one"
        hint = "use engine='local', or give a directory"
        return Constraint(EngineName.LOCAL, why, InvalidInputError(message, hint=hint))
    if format_ is ExportFormat.NDJSON and _names_a_file(target):
        return Constraint(EngineName.LOCAL, why)
    return None


def _contents(plan: ExportPlan, written: ExportFiles) -> bytes:
    return format_contents(
        commit_id=plan.view.snapshot.head.commit_id,
        format_name=plan.format.suffix,
        rows=written.rows,
        files=written.files,
    )


def _result(
    plan: ExportPlan, choice: Choice, target: str, written: ExportFiles, hidden: tuple[str, ...]
) -> ExportResult:
    return ExportResult(
        commit_id=plan.view.snapshot.head.commit_id,
        target=target,
        format=plan.format.value,
        engine=choice.engine,
        why=choice.why,
        rows=MappingProxyType(dict(written.rows)),
        files=written.files,
        hidden=hidden,
    )
