"""Sources: what a load reads, found and named once, before any row is read.

A graph file (`.jsonl`, `.ndjson`, `.json`) has one envelope per line, its nodes and edges in any
order:

    {"type": "Person", "id": "ada", "data": {"name": "Ada"}}
    {"edge": "Knows", "from": "ada", "to": "bob", "id": "e1", "data": {"since": "2024-01-31"}}

`id` and `data` may be left out. The id of a type with a key is made from the key, so it is needed
only where ids are minted, to keep the one that a row had: exports always write it. It may be inside
`data` instead.

A file of one type (`.csv`, `.parquet`, `.orc`, `.avro`, `.jsonl`) is named by it, `Person.csv`, or
mapped to it, `{"Person": "people.csv"}`. Its columns are properties, beside `id` and, for edges,
`from` and `to` (or `src` and `dst`, with which properties may be called `from` and `to`). Columns
of other names are mapped behind the path: `{"Person": "people.csv:name=full_name"}`. Lines of a
`.jsonl` file that is named by a type may also be envelopes of that type, as an export writes them.
A directory means the files in it; one that is named by a type holds files of that type.

Lines and CSV may be compressed: `.gz` or `.zst`. Files, directories and patterns may be
in an object store: `s3://bucket/raw/*.jsonl.gz`; or, for the engine spark, in a file system that
Spark knows: `hdfs://namenode/raw/*.jsonl.gz`.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from glob import glob, has_magic
from itertools import islice
from os import PathLike, fspath
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeAlias, cast
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import (
    ErrorCode,
    InvalidInputError,
    InvalidParameterError,
    NotAllowedError,
    NotFoundError,
    StorageError,
    TypeNotFoundError,
)
from omnigraph.formats.compression import Compression, compression_of
from omnigraph.formats.export_folders import CONTENTS, find_replaced
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.limits import LOAD_INPUTS_MAX
from omnigraph.load.column_maps import ColumnMap
from omnigraph.load.dialects import CsvDialect, CsvOptions, Dialects, parse_dialects
from omnigraph.load.pandas_frames import from_pandas, is_pandas
from omnigraph.load.routes import Route, RoutedRows
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog, SchemaType
from omnigraph.storage.nearby import near_file
from omnigraph.storage.schemes import SCHEMES, is_remote

# A client over HTTP finds its files here, and needs no object store for that.
if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.load.remote_sources import FoundFile
    from omnigraph.storage.remote_files import RemoteFile

LOAD_COMPRESSED_FACTOR: Final = 5
"""The assumed expansion of a compressed file, or of a Parquet file, in memory."""


Source: TypeAlias = (
    "str | PathLike[str] | BinaryIO | Mapping[str, object] | RoutedRows | Sequence[object] | Inputs"
)
"""What a caller may give: paths, globs and directories, `-`, an open file, rows by type, rows that
say their types, or a list of these; or inputs that were found before."""

STANDARD_INPUT: Final = "-"

_ROUTED: Final = "rows"
"""How reports name rows of several types."""


class Form(StrEnum):
    """How a file holds its rows."""

    LINES = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    ORC = "orc"
    AVRO = "avro"

    @property
    def is_packed(self) -> bool:
        """Whether such files compress their rows themselves, and are in no other compression."""
        return self in (Form.PARQUET, Form.ORC, Form.AVRO)


_FORMS: Final = {
    ".jsonl": Form.LINES,
    ".ndjson": Form.LINES,
    ".json": Form.LINES,
    ".csv": Form.CSV,
    ".parquet": Form.PARQUET,
    ".orc": Form.ORC,
    ".avro": Form.AVRO,
}
_SUFFIXES: Final = (
    ".jsonl, .ndjson, .json or .csv, also with .gz or .zst behind it, .parquet, .orc or .avro"
)


@dataclass(frozen=True, slots=True)
class SparkFile:
    """A file of a file system that only Spark can read, such as HDFS, as it was found.

    Attributes:
        modified_at: When it was written, in microseconds since 1970.
    """

    url: str
    byte_count: int
    modified_at: int


FindFiles: TypeAlias = Callable[[str], Sequence[SparkFile]]
"""Finds the files that a URL names, itself, as a folder or as a pattern; sorted, at least one."""


@dataclass(frozen=True, slots=True)
class FileInput:
    """One file.

    Attributes:
        name: How reports name it: as the caller wrote it.
        path: A path of this machine, an object or a file of Spark's as it was found, or, in the
            task that Spark read it for, its contents.
        type_name: The type of all its rows; None for a graph file, whose lines name their types.
        byte_count: Its size where it is stored.
        columns: Which columns are properties of other names.
        dialect: How it is read if it is CSV.
    """

    name: str
    path: str | RemoteFile | SparkFile | pa.Buffer
    form: Form
    type_name: str | None
    compression: Compression | None
    byte_count: int
    columns: ColumnMap = field(default_factory=ColumnMap)
    dialect: CsvDialect = field(default_factory=CsvDialect)

    @property
    def unpacked_byte_count(self) -> int:
        """About how many bytes its rows have in memory."""
        is_packed = self.compression is not None or self.form.is_packed
        return self.byte_count * (LOAD_COMPRESSED_FACTOR if is_packed else 1)


@dataclass(frozen=True, slots=True)
class StreamInput:
    """A graph file that can be read once, from beginning to end: standard input, a request."""

    name: str
    stream: BinaryIO = field(repr=False)

    @property
    def type_name(self) -> None:
        """None: each line names its type."""
        return


@dataclass(frozen=True, slots=True)
class MemoryInput:
    """Rows that this process holds.

    Attributes:
        of: Their type, or how each of them says its own.
        rows: An Arrow table, batch or reader; anything else that exports Arrow, such as a polars
            DataFrame; or dictionaries by property. A pandas DataFrame has become one of them.
    """

    name: str
    of: str | Route
    rows: object = field(repr=False)

    @property
    def type_name(self) -> str | None:
        """The type of all rows, if they have one."""
        return self.of if isinstance(self.of, str) else None

    def ordered_by(self, column: str, catalog: Catalog) -> MemoryInput:
        """The rows of an Arrow table in the order of a column, as those of a DataFrame."""
        if not isinstance(self.rows, pa.Table):
            kind = f"the rows of {self.name} are a {type(self.rows).__name__}"
            message = f"order_by orders DataFrames of Spark and Arrow tables; {kind}"
            hint = "leave order_by out: these rows have an order"
            raise InvalidParameterError(message, hint=hint, name="order_by")
        _require_column(self.name, column, self.rows.column_names)
        is_null = pc.is_null(self.rows[column])
        values = self.rows.filter(pc.invert(is_null))
        rows = pa.concat_tables([self.rows.filter(is_null), values.sort_by(column)])
        is_property = self.type_name is None or column in _columns(self.type_name, catalog)
        return replace(self, rows=rows if is_property else rows.drop_columns([column]))


@dataclass(frozen=True, slots=True)
class FrameInput:
    """A Spark DataFrame; its rows are of one type, or each says its own.

    Attributes:
        is_ordered: Whether its partitions, and the rows in them, are in the order of a column.
    """

    name: str
    of: str | Route
    frame: Any = field(repr=False)
    is_ordered: bool = False

    @property
    def type_name(self) -> str | None:
        """The type of all rows, if they have one."""
        return self.of if isinstance(self.of, str) else None

    def ordered_by(self, column: str, catalog: Catalog) -> FrameInput:
        """The rows in the order of a column, which need not be a property of their type."""
        _require_column(self.name, column, self.frame.columns)
        rows = self.frame.orderBy(column)
        is_property = self.type_name is None or column in _columns(self.type_name, catalog)
        return replace(self, frame=rows if is_property else rows.drop(column), is_ordered=True)


def _require_column(name: str, column: str, columns: Sequence[str]) -> None:
    if column not in columns:
        message = f"{name} has no column {column!r} to order its rows by"
        hint = did_you_mean(column, columns)
        raise InvalidParameterError(message, hint=hint, name="order_by")


def _columns(type_name: str, catalog: Catalog) -> Sequence[str]:
    """The columns that rows of a type may have."""
    return (*table_schema(catalog.type_named(type_name)).names, "from", "to")


Input = FileInput | StreamInput | MemoryInput | FrameInput
"""One thing to read. Its place among the inputs of a load is its number in row positions."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """All inputs of one load, in order."""

    items: tuple[Input, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """How reports name them."""
        return tuple(source.name for source in self.items)

    @property
    def named_types(self) -> frozenset[str]:
        """The types that inputs are named by; graph files may have rows of others."""
        return frozenset(source.type_name for source in self.items if source.type_name is not None)

    @property
    def has_unordered_frames(self) -> bool:
        """Whether any rows have no order: those of a DataFrame, unless it was ordered."""
        frames = (source for source in self.items if isinstance(source, FrameInput))
        return any(not frame.is_ordered for frame in frames)

    def ordered_by(self, column: str, catalog: Catalog) -> Inputs:
        """The inputs, with the rows of each DataFrame and Arrow table in the order of a column."""
        ordered = []
        for source in self.items:
            if not isinstance(source, FrameInput | MemoryInput):
                message = f"order_by orders DataFrames of Spark and Arrow tables, not {source.name}"
                hint = "leave order_by out: the rows of a file have an order"
                raise InvalidParameterError(message, hint=hint, name="order_by")
            ordered.append(source.ordered_by(column, catalog))
        return Inputs(tuple(ordered))


def resolve(
    source: Source,
    catalog: Catalog,
    csv: CsvOptions | None = None,
    find_files: FindFiles | None = None,
    *,
    reads_stores: bool = True,
) -> Inputs:
    """Find the inputs that a source names, in a fixed order; no row is read.

    Args:
        csv: How CSV files are read.
        find_files: Finds files that are neither on this machine nor in an object store.
        reads_stores: Whether files in object stores may be looked for.
    """
    if isinstance(source, Inputs):
        return source
    # No more are looked for than can be loaded: a bucket may have any number.
    dialects = parse_dialects(csv, catalog)
    finder = _Finder(catalog, dialects, find_files or _refuse_url, reads_stores)
    inputs = tuple(islice(finder.find(source), LOAD_INPUTS_MAX + 1))
    if not inputs:
        message = "there is nothing to load"
        raise InvalidInputError(message, hint="name a file, or give rows by type")
    if len(inputs) > LOAD_INPUTS_MAX:
        message = f"there are more than {LOAD_INPUTS_MAX:,} files to load, which is the limit"
        raise InvalidInputError(message, hint="load them in several parts")
    if csv and not any(isinstance(file, FileInput) and file.form is Form.CSV for file in inputs):
        message = "CSV options were given, but no CSV file"
        raise InvalidParameterError(message, hint="leave them out, or name a .csv", name="csv")
    return Inputs(tuple(_with_distinct_names(inputs)))


def store_error(name: str, place: str = "in an object store") -> NotAllowedError:
    """The error about a file elsewhere that is loaded into a remote graph."""
    message = f"{name[:200]} is {place}, and a server reads no files for its clients"
    hint = "load it where the graph is stored, or load a copy of it from here"
    return NotAllowedError(message, hint=hint)


def _with_distinct_names(inputs: Iterable[Input]) -> Iterator[Input]:
    """The inputs with distinct names: reports and minted ids depend on them."""
    times: Counter[str] = Counter()
    for source in inputs:
        times[source.name] += 1
        if times[source.name] == 1:
            yield source
        elif isinstance(source, StreamInput) and _is_standard_input(source.stream):
            message = "standard input is named twice, and can be read once"
            raise InvalidInputError(message, hint="give --data - once")
        elif isinstance(source, FileInput):
            message = f"{source.name} is named twice"
            raise InvalidInputError(message, hint="name each file once; patterns may overlap")
        else:
            yield replace(source, name=f"{source.name}#{times[source.name]}")


def _is_standard_input(stream: BinaryIO) -> bool:
    return stream is getattr(sys.stdin, "buffer", None)


@dataclass(frozen=True, slots=True)
class _Finder:
    catalog: Catalog
    dialects: Dialects
    find_files: FindFiles
    reads_stores: bool

    def find(self, source: object) -> Iterator[Input]:
        match source:
            case str(text) if text == STANDARD_INPUT:
                yield _standard_input()
            case str() | PathLike():
                with _translate_errors(fspath(source)):
                    yield from self._paths(fspath(source), ColumnMap(), None)
            case Mapping():
                for name, rows in source.items():
                    yield from self._of_type(name, rows)
            case RoutedRows(rows, route) if _is_frame(rows):
                yield FrameInput(_ROUTED, route, rows)
            case RoutedRows(rows, route):
                if _is_pandas_frame(rows):
                    rows = from_pandas(rows, _ROUTED, as_table=True)
                yield MemoryInput(_ROUTED, route, rows)
            case _ if _is_rows(source):
                kind = type(source).__name__
                message = f"a {kind} does not say what type its rows have"
                raise InvalidParameterError(message, hint='give it by type: {"Person": rows}')
            case _ if callable(getattr(source, "read", None)):
                name = getattr(source, "name", None)
                stream = cast("BinaryIO", source)
                yield StreamInput(name if isinstance(name, str) else "stream", stream)
            case Sequence() if not isinstance(source, bytes | bytearray | memoryview):
                for part in source:
                    yield from self.find(part)
            case _:
                raise _unloadable_error(source)

    def _of_type(self, name: object, rows: object) -> Iterator[Input]:
        if not isinstance(name, str):
            message = f"{name!r} is not a type name"
            raise InvalidParameterError(message, hint='give rows by type: {"Person": rows}')
        type_ = self.catalog.type_named(name)
        if isinstance(rows, str | PathLike):
            rows = [rows]
        if isinstance(rows, Sequence) and rows and all(map(_is_path, rows)):
            for path in rows:
                with _translate_errors(fspath(path)):
                    yield from self._paths(*_split_map(fspath(path), type_), name)
        elif _is_frame(rows):
            yield FrameInput(name, name, rows)
        elif _is_pandas_frame(rows):
            yield MemoryInput(name, name, from_pandas(rows, name))
        elif _is_rows(rows):
            yield MemoryInput(name, name, rows)
        else:
            raise _unloadable_error(rows)

    def _paths(self, text: str, columns: ColumnMap, type_name: str | None) -> Iterator[FileInput]:
        """The files of a path or a pattern, with the map of their columns."""
        for file in self._find_files(text, type_name):
            if columns.pairs and file.form is Form.LINES:
                message = f"{file.name} has lines of JSON, which name their properties themselves"
                raise InvalidInputError(message, hint="map the columns of another form, or rename")
            yield replace(file, columns=columns) if columns.pairs else file

    def _find_files(self, text: str, type_name: str | None) -> Iterator[FileInput]:
        if text.startswith(_FILE_URL):
            text = unquote(text.removeprefix(_FILE_URL))
        path = Path(text)
        if text == STANDARD_INPUT:
            message = (
                f"- cannot be mapped to {type_name}: each line of standard input names its type"
            )
            raise InvalidInputError(message, hint="give --data -, or map a file")
        if is_remote(text):
            if not self.reads_stores:
                raise store_error(text)
            from omnigraph.load.remote_sources import find_remote

            for found in find_remote(text):
                yield self._remote_file(found, type_name)
        elif path.exists():
            yield from self._path(path, type_name)
        elif "://" in text:
            if not self.reads_stores:
                raise store_error(text, "not on this machine")
            for file in self.find_files(text):
                named = self._named_by(_folders_of(text, file.url), type_name)
                yield self._input(file.url, file, named, file.byte_count)
        elif has_magic(text):
            # A pattern may be absolute, which those of pathlib may not.
            paths = sorted(glob(text, recursive=True))  # noqa: PTH207
            # As in a bucket: an export's list of its files is not one of them.
            paths = [match for match in paths if Path(match).name != CONTENTS]
            if not paths:
                message = f"no file matches {text[:200]}"
                raise NotFoundError(message, hint="check the pattern and the directory")
            for match in paths:
                yield from self._path(Path(match), type_name)
        else:
            message = f"file {text[:200]} does not exist"
            hint = near_file(path)
            if (replaced := find_replaced(path)) is not None:
                message += ": an export that was to replace it was killed"
                hint = f"export again, or rename the earlier one back: {replaced}"
            raise NotFoundError(message, hint=hint, path=text)

    def _path(self, path: Path, type_name: str | None) -> Iterator[FileInput]:
        if not path.is_dir():
            yield self._file(path, type_name)
            return
        named = type_name or self._type_in(path.name)
        # Other tools leave files beside the rows, such as _SUCCESS: they are not read.
        inside = sorted(child for child in path.iterdir() if child.name[0] not in "._")
        if not inside:
            message = f"the directory {path} is empty"
            raise NotFoundError(message, hint=f"put files into it: {_SUFFIXES}", path=str(path))
        for child in inside:
            yield from self._path(child, named)

    def _file(self, path: Path, type_name: str | None) -> FileInput:
        if not path.is_file():
            message = f"{path} is neither a file nor a directory"
            raise InvalidInputError(message, hint="give a stream as --data -", path=str(path))
        name = str(path)
        return self._input(name, name, type_name, path.stat().st_size)

    def _remote_file(self, found: FoundFile, type_name: str | None) -> FileInput:
        file, named = found.file, self._named_by(found.folders, type_name)
        return self._input(file.path.url, file, named, file.byte_count)

    def _named_by(self, folders: Sequence[str], type_name: str | None) -> str | None:
        """The type that a file was mapped to, or that the first of its folders is named by."""
        by_folder = (self._type_in(folder) for folder in folders)
        return type_name or next((name for name in by_folder if name is not None), None)

    def _input(
        self,
        name: str,
        path: str | RemoteFile | SparkFile,
        type_name: str | None,
        byte_count: int,
    ) -> FileInput:
        """The input of a file, by its name."""
        file_name = PurePosixPath(name).name
        form, compression = _parse_name(name)
        named = type_name or self._type_in(file_name)
        if named is None and form is not Form.LINES:
            stem = file_name.partition(".")[0]
            near = did_you_mean(stem, (type_.name for type_ in self.catalog.types))
            message = f"{name} is named after a type, and the schema has no type {stem[:100]}"
            hint = f"name the file after a type, or map it: --map Type={name}"
            raise TypeNotFoundError(message, hint=f"{near}; {hint}" if near else hint, name=stem)
        dialect = CsvDialect() if named is None else self.dialects.of_type(named)
        return FileInput(name, path, form, named, compression, byte_count, dialect=dialect)

    def _type_in(self, file_name: str) -> str | None:
        """The type that a file is named by."""
        stem = file_name.partition(".")[0]
        return stem if any(type_.name == stem for type_ in self.catalog.types) else None


_FILE_URL: Final = "file://"
_PLACE: Final = re.compile(r"[A-Za-z][\w+.\-]*:(//[^/]*)?/*")
"""The scheme of a URL, and the machine."""


def _folders_of(text: str, url: str) -> list[str]:
    """The folders that a file is in, from the one that was named, or matched, downwards.

    >>> _folders_of("hdfs:///raw/Person", "hdfs://namenode:8020/raw/Person/2024/a.csv")
    ['Person', '2024']
    >>> _folders_of("hdfs:///raw/*/a.csv", "hdfs://namenode:8020/raw/2024/a.csv")
    ['2024']
    """
    given, parts = (_PLACE.sub("", each, count=1).strip("/").split("/") for each in (text, url))
    magic = (place for place, part in enumerate(given) if has_magic(part))
    return parts[next(magic, len(given) - 1) : -1]


def _refuse_url(text: str) -> Sequence[SparkFile]:
    raise unknown_store_error(text)


def unknown_store_error(text: str) -> InvalidInputError:
    """The error for the URL of a file that this process cannot read."""
    stores = ", ".join(f"{scheme}://" for scheme in SCHEMES)
    message = f"{text[:200]} cannot be read without Spark, which is not needed for {stores}"
    hint = "copy it there, or load it with Spark, if that knows the store: engine spark"
    return InvalidInputError(message, hint=hint, code=ErrorCode.INVALID_URI)


def _split_map(text: str, type_: SchemaType) -> tuple[str, ColumnMap]:
    """A path, and the map of columns behind it; a file may be called like both together."""
    return (text, ColumnMap()) if Path(text).exists() else ColumnMap.parse(text, type_)


def _standard_input() -> StreamInput:
    # Python sets it to None if it was closed before the start.
    if sys.stdin is None or sys.stdin.closed:
        message = "there is nothing to load: standard input is closed"
        raise InvalidInputError(message, hint="pipe a graph file into it, or name a file")
    return StreamInput("stdin", sys.stdin.buffer)


@contextmanager
def _translate_errors(path: str) -> Iterator[None]:
    """Re-raise an error of the file system as a `StorageError`."""
    try:
        yield
    except OSError as cause:
        path = cause.filename or path
        message = f"{path} cannot be read: {cause.strerror or cause}"
        code = ErrorCode.STORAGE_DENIED if isinstance(cause, PermissionError) else None
        hint = "check the permissions of the file and of its directories"
        raise StorageError(message, hint=hint, code=code, path=path) from cause


def _parse_name(name: str) -> tuple[Form, Compression | None]:
    """The form and the compression that the suffixes of a file's name tell."""
    suffixes = [suffix.lower() for suffix in PurePosixPath(name).suffixes[-2:]]
    compression = compression_of(suffixes[-1]) if suffixes else None
    if compression is not None:
        suffixes.pop()
    form = _FORMS.get(suffixes[-1]) if suffixes else None
    if form is None or (form.is_packed and compression is not None):
        message = f"the format of {name} is unknown"
        hint = f"a file to load ends in {_SUFFIXES}"
        raise InvalidInputError(message, hint=hint, path=name)
    return form, compression


def _is_path(value: object) -> bool:
    return isinstance(value, str | PathLike)


def _is_frame(value: object) -> bool:
    """Whether it is a Spark DataFrame, classic or connected; Spark is not imported for it."""
    kind = type(value)
    return kind.__module__.startswith("pyspark.sql.") and kind.__name__ == "DataFrame"


def _is_pandas_frame(value: object) -> bool:
    return is_pandas(value) and hasattr(value, "columns")


def _is_rows(value: object) -> bool:
    if hasattr(value, "to_frame"):
        # A Series exports Arrow as well, and is a column without a name or rows.
        return False
    if _is_frame(value) or hasattr(value, "__arrow_c_stream__"):
        return True
    if hasattr(value, "__arrow_c_array__") and hasattr(value, "schema"):
        return True
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str | bytes)
        and all(isinstance(row, Mapping) for row in value)
        and not any(map(_names_types, value))
    )


def _names_types(value: Mapping[object, object]) -> bool:
    """Whether a dictionary has rows by type, and is not itself a row."""
    return any(_is_path(rows) or _is_frame(rows) for rows in value.values()) and all(
        isinstance(name, str) and name[:1].isupper() for name in value
    )


def _unloadable_error(value: object) -> InvalidInputError:
    message = f"a value of Python's {type(value).__name__} cannot be loaded"
    hint = "give files, or rows by type: Arrow, pandas, polars, Spark, or a list of dictionaries"
    if hasattr(value, "to_frame"):
        hint = "give a DataFrame, such as series.to_frame()"
    return InvalidInputError(message, hint=hint, code=ErrorCode.INVALID_PARAMETER)
