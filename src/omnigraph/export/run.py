"""The run of an export: a snapshot's rows into files, in one order, on either engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa

from omnigraph.choices import EngineName, ExportFormat
from omnigraph.clock import Clock
from omnigraph.engine.choose import Choice, asked_engine, by_size
from omnigraph.engine.local.sort import sorted_batches
from omnigraph.errors import InvalidInputError
from omnigraph.export.contents import is_export, write_contents
from omnigraph.export.files import choose_format, write_file, write_lines
from omnigraph.export.targets import make_target
from omnigraph.export.uploads import is_remote, upload_target
from omnigraph.formats.compression import Compression, compression_of, suffix_of
from omnigraph.formats.sinks import STANDARD_OUTPUT, Sink, open_sink, standard_output
from omnigraph.limits import LOCAL_BYTES_MAX
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import SchemaType
from omnigraph.transaction.view import View

Progress = Callable[[str, int, int], None]
"""Called with a type, the number of its rows that are written, and the number it has."""


@dataclass(frozen=True, slots=True)
class ExportOrder:
    """What to export, where to, and how.

    Attributes:
        target: A file for NDJSON on the local engine, `-` for standard output, else a directory;
            either may be in a folder of a bucket, `s3://bucket/folder/name`. NDJSON is compressed
            as the name says: `.gz` or `.zst`.
        types: Names of types; all when None.
        format: `ndjson`, `parquet` or `csv`; NDJSON when None.
        engine: `local`, `spark` or `auto`.
        replaces: Whether an earlier export under that name is replaced.
    """

    target: str | Path
    types: tuple[str, ...] | None = None
    format: str | None = None
    engine: str | None = None
    replaces: bool = False
    progress: Progress | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ExportResult:
    """A complete export.

    Attributes:
        commit_id: The commit whose rows it has.
        target: The file or directory; `-` for standard output.
        rows: Rows by type, in the order in which they were written.
        files: Every file with rows, in order, below the target where that is a directory.
        engine: The engine that ran it, and `why` it was chosen.
    """

    commit_id: str
    target: str
    format: str
    engine: EngineName
    why: str
    rows: Mapping[str, int]
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Plan:
    types: tuple[SchemaType, ...]
    format: ExportFormat
    compression: Compression | None
    engine: EngineName
    why: str


def export(view: View, clock: Clock, order: ExportOrder) -> ExportResult:
    """Write a snapshot's rows, type by type and by id within: equal graphs give equal NDJSON.

    Rows that are loaded from NDJSON have the same ids again.

    Raises:
        TypeNotFoundError: the schema has no type of a name. Nothing was written.
        AlreadyExistsError: there is something under that name. It is unchanged.
        InvalidInputError: target, format and engine do not go together. Nothing was written.
        StorageError: a table could not be read, or the disk written. Nothing became visible.
    """
    plan = _plan(view, order)
    if order.target == STANDARD_OUTPUT:
        with standard_output() as stream:
            rows = _write_envelopes(view, plan, stream, order.progress, None)
        return _result(view, plan, STANDARD_OUTPUT, rows, ())
    _require_own_place(view, plan, str(order.target))
    with _open_target(order, clock) as (name, place):
        if plan.engine is EngineName.SPARK:
            # Imported here: an export on the local engine must not pay for Spark.
            from omnigraph.export.spark.parts import export_parts

            place.mkdir()
            parts = export_parts(view, plan.types, place, plan.format, plan.compression)
            rows, files = parts.rows, parts.files
            _list_contents(view, plan, place, rows, files)
        elif plan.format is ExportFormat.NDJSON:
            with open_sink(place, plan.compression) as stream:
                rows = _write_envelopes(view, plan, stream, order.progress, place.parent)
            files = (name.rpartition("/")[2],)
        else:
            place.mkdir()
            rows, files = _write_files(view, plan, place, order.progress)
            _list_contents(view, plan, place, rows, files)
    return _result(view, plan, name, rows, files)


def _require_own_place(view: View, plan: _Plan, target: str) -> None:
    """Refuse a target among the graph's own files, and a directory for what is one file."""
    graph = view.data.table(next(iter(view.snapshot.pins))).address.root
    place = target if is_remote(target) else str(Path(target).resolve())
    home = graph.uri if is_remote(graph.uri) else str(Path(graph.uri).resolve())
    if f"{place}/".startswith(f"{home}/"):
        message = f"{target} lies in the directory of the graph itself"
        raise InvalidInputError(message, hint=f"choose a place outside of {graph.uri}")
    is_one_file = plan.format is ExportFormat.NDJSON and plan.engine is EngineName.LOCAL
    path = Path(target)
    if is_one_file and not is_remote(target) and path.is_dir() and not is_export(path):
        message = f"{target} is a directory, and ndjson is one file"
        raise InvalidInputError(message, hint=f"name a file, such as {path / 'graph.jsonl'}")


@contextmanager
def _open_target(order: ExportOrder, clock: Clock) -> Iterator[tuple[str, Path]]:
    """The full name of the target, and a place to make it in; it gets the name when complete."""
    target = str(order.target)
    if is_remote(target):
        with upload_target(target, replaces=order.replaces) as place:
            yield target.rstrip("/"), place
        return
    path = Path(order.target).absolute()
    with make_target(path, clock.ulid(), replaces=order.replaces, is_ours=is_export) as place:
        yield str(path), place


def _plan(view: View, order: ExportOrder) -> _Plan:
    target = str(order.target)
    format_ = choose_format(order.format, target)
    types = view.catalog.types_named(order.types)
    is_one_file = format_ is ExportFormat.NDJSON and _names_a_file(target)
    choice = asked_engine(order.engine) or _fitting(view, types, is_one_file=is_one_file)
    if choice.engine is EngineName.SPARK and target == STANDARD_OUTPUT:
        message = "Spark writes a directory of files, and standard output is one"
        raise InvalidInputError(message, hint="use engine='local', or give a directory")
    packing = None if format_ is ExportFormat.PARQUET else compression_of(target)
    return _Plan(types, format_, packing, choice.engine, choice.why)


def _names_a_file(target: str) -> bool:
    plain = target.removesuffix(suffix_of(compression_of(target)))
    return target == STANDARD_OUTPUT or plain.endswith((".jsonl", ".ndjson", ".json"))


def _fitting(view: View, types: Iterable[SchemaType], *, is_one_file: bool) -> Choice:
    if is_one_file:
        return Choice(EngineName.LOCAL, "the target is one file")
    touched = sum(view.data.table(each.table_key).count_bytes() for each in types)
    fits = touched <= LOCAL_BYTES_MAX
    relation = "at most" if fits else "more than"
    why = f"the types have {touched:,} bytes, {relation} {LOCAL_BYTES_MAX:,}"
    return by_size(why, fits=fits)


def _write_envelopes(
    view: View,
    plan: _Plan,
    stream: Sink,
    progress: Progress | None,
    spill_directory: Path | None,
) -> dict[str, int]:
    return {
        type_.name: write_lines(type_, _rows(view, type_, progress, spill_directory), stream)
        for type_ in plan.types
    }


def _write_files(
    view: View, plan: _Plan, place: Path, progress: Progress | None
) -> tuple[dict[str, int], tuple[str, ...]]:
    rows: dict[str, int] = {}
    files: list[str] = []
    for type_ in plan.types:
        name = f"{type_.name}.{plan.format.suffix}{suffix_of(plan.compression)}"
        rows[type_.name] = write_file(
            type_,
            _rows(view, type_, progress, place),
            place / name,
            format=plan.format,
            compression=plan.compression,
        )
        files.append(name)
    return rows, tuple(files)


def _rows(
    view: View, type_: SchemaType, progress: Progress | None, spill_directory: Path | None
) -> Iterator[pa.RecordBatch]:
    table = view.data.table(type_.table_key)
    total = table.count_rows()
    written = 0
    for batch in sorted_batches(
        table, table_schema(type_), by="id", spill_directory=spill_directory
    ):
        yield batch
        written += batch.num_rows
        if progress is not None:
            progress(type_.name, written, total)


def _list_contents(
    view: View, plan: _Plan, directory: Path, rows: Mapping[str, int], files: tuple[str, ...]
) -> None:
    write_contents(
        directory,
        commit_id=view.snapshot.head.commit_id,
        format_name=plan.format.suffix,
        rows=rows,
        files=files,
    )


def _result(
    view: View, plan: _Plan, target: str, rows: Mapping[str, int], files: tuple[str, ...]
) -> ExportResult:
    return ExportResult(
        commit_id=view.snapshot.head.commit_id,
        target=target,
        format=plan.format.value,
        engine=plan.engine,
        why=plan.why,
        rows=MappingProxyType(dict(rows)),
        files=files,
    )
