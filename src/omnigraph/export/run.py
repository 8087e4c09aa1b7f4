"""Export: a snapshot's rows into files that load again, in one order, on either engine."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from omnigraph.choices import EngineName, ExportFormat
from omnigraph.clock import Clock
from omnigraph.engine.choose import Choice, asked_engine, by_size
from omnigraph.engine.local.sort import sorted_batches
from omnigraph.errors import InvalidInputError
from omnigraph.export.files import choose_format, write_file, write_lines
from omnigraph.export.targets import CONTENTS, appearing
from omnigraph.export.uploads import is_remote, uploaded
from omnigraph.formats.compression import Compression, compression_of, suffix_of
from omnigraph.formats.sinks import STANDARD_OUTPUT, Sink, open_sink, standard_output
from omnigraph.limits import LOCAL_BYTES_MAX
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import SchemaType
from omnigraph.transaction.view import View

Progress = Callable[[str, int, int], None]
"""Told a type, how many of its rows are written, and how many it has."""


@dataclass(frozen=True, slots=True)
class ExportOrder:
    """What to export, where to, and how.

    Attributes:
        target: A file for NDJSON on the local engine, `-` for standard output, else a directory;
            either may lie in a folder of a bucket, `s3://bucket/folder/name`. NDJSON is packed as
            the name says: `.gz` or `.zst`.
        types: Names of types; all when None.
        format: `ndjson`, `parquet` or `csv`; NDJSON when None.
        engine: `local`, `spark` or `auto`.
        replaces: Whether an earlier export under that name goes.
    """

    target: str | Path
    types: tuple[str, ...] | None = None
    format: str | None = None
    engine: str | None = None
    replaces: bool = False
    progress: Progress | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ExportResult:
    """An export that is there in whole.

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


_EXPORTED: Final = re.compile(rb'\{"(type|edge)":"[A-Za-z][A-Za-z0-9_]*",("id"|"from"|"data"):')
_BEGINNING_BYTES: Final = 1 << 10
"""How an exported row begins, and how much of a file tells: names of types are short."""


def export(view: View, clock: Clock, order: ExportOrder) -> ExportResult:
    """Write a snapshot's rows, type by type and by id within: equal graphs give equal NDJSON.

    What NDJSON holds loads again with the ids it had.

    Raises:
        TypeNotFoundError: the schema has no type of a name. Nothing was written.
        AlreadyExistsError: there is something under that name. It is untouched.
        InvalidInputError: target, format and engine do not go together. Nothing was written.
        StorageError: a table could not be read, or the disk written. Nothing became visible.
    """
    plan = _plan(view, order)
    if order.target == STANDARD_OUTPUT:
        with standard_output() as stream:
            rows = _write_envelopes(view, plan, stream, order.progress, None)
        return _result(view, plan, STANDARD_OUTPUT, rows, ())
    _require_own_place(view, plan, str(order.target))
    with _appearing(order, clock) as (name, place):
        if plan.engine is EngineName.SPARK:
            # Imported here: an export on the local engine must not pay for Spark.
            from omnigraph.export.spark.parts import export_parts

            place.mkdir()
            made = export_parts(view, plan.types, place, plan.format, plan.compression)
            rows, files = made.rows, made.files
            _write_contents(view, plan, place, rows, files)
        elif plan.format is ExportFormat.NDJSON:
            with open_sink(place, plan.compression) as stream:
                rows = _write_envelopes(view, plan, stream, order.progress, place.parent)
            files = (name.rpartition("/")[2],)
        else:
            place.mkdir()
            rows, files = _write_files(view, plan, place, order.progress)
            _write_contents(view, plan, place, rows, files)
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
def _appearing(order: ExportOrder, clock: Clock) -> Iterator[tuple[str, Path]]:
    """The target in full, and a place to make it in: it takes the name when it is whole."""
    target = str(order.target)
    if is_remote(target):
        with uploaded(target, replaces=order.replaces) as place:
            yield target.rstrip("/"), place
        return
    path = Path(order.target).absolute()
    with appearing(path, clock.ulid(), replaces=order.replaces, is_ours=is_export) as place:
        yield str(path), place


def is_export(path: Path) -> bool:
    """Whether a file or a directory is what an export made, all of it; of a file, its beginning."""
    return _is_export_directory(path) if path.is_dir() else _is_export_file(path)


def _is_export_file(path: Path) -> bool:
    packing = compression_of(path.name)
    try:
        with pa.input_stream(str(path), compression=packing and packing.value) as stream:
            begins = stream.read(_BEGINNING_BYTES)
    except (OSError, pa.ArrowInvalid):
        return path.is_file() and not path.stat().st_size
    # An export without rows is empty.
    return not begins or _EXPORTED.match(begins) is not None


def _is_export_directory(directory: Path) -> bool:
    try:
        contents = json.loads((directory / CONTENTS).read_bytes())
        files = {CONTENTS, *contents["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return False
    there = {
        path.relative_to(directory).as_posix()
        for path in directory.rglob("*")
        if not path.is_dir() or path.is_symlink()
    }
    return there <= files


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
        each.name: write_lines(each, _rows(view, each, progress, spill_directory), stream)
        for each in plan.types
    }


def _write_files(
    view: View, plan: _Plan, place: Path, progress: Progress | None
) -> tuple[dict[str, int], tuple[str, ...]]:
    rows: dict[str, int] = {}
    files: list[str] = []
    for each in plan.types:
        name = f"{each.name}.{plan.format.suffix}{suffix_of(plan.compression)}"
        rows[each.name] = write_file(
            each,
            _rows(view, each, progress, place),
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
    done = 0
    for batch in sorted_batches(
        table, table_schema(type_), by="id", spill_directory=spill_directory
    ):
        yield batch
        done += batch.num_rows
        if progress is not None:
            progress(type_.name, done, total)


def _write_contents(
    view: View, plan: _Plan, place: Path, rows: Mapping[str, int], files: tuple[str, ...]
) -> None:
    contents = {
        "commit": view.snapshot.head.commit_id,
        "format": plan.format.suffix,
        "rows": dict(rows),
        "files": files,
    }
    (place / CONTENTS).write_text(json.dumps(contents, indent=1) + "\n", encoding="utf-8")


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
