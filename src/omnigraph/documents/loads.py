"""Inputs of loads on their way: what a client found, and what a server loads as if it were here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, assert_never

from omnigraph.documents.values import from_document, parse_json, to_document
from omnigraph.errors import ErrorCode, InvalidInputError, NotAllowedError
from omnigraph.formats.compression import Compression
from omnigraph.limits import REMOTE_PIECE_BYTES
from omnigraph.load.column_maps import ColumnMap
from omnigraph.load.dialects import CsvDialect
from omnigraph.load.routes import ByColumn, ByEnvelope, Route
from omnigraph.load.sources import (
    FileInput,
    Form,
    FrameInput,
    Input,
    Inputs,
    MemoryInput,
    StreamInput,
    store_error,
)


class InputKind(StrEnum):
    """How the rows of an input are sent."""

    FILE = "file"
    STREAM = "stream"
    ARROW = "arrow"
    ROWS = "rows"
    """One document a line."""


@dataclass(frozen=True, slots=True)
class SentInput:
    """One input of a load, whose rows are a file of the archive.

    Attributes:
        name: How reports name it.
        of: The type of its rows, or how each says its own; None for a graph file.
    """

    kind: InputKind
    name: str
    of: str | Route | None = None
    form: Form | None = None
    compression: Compression | None = None
    columns: ColumnMap | None = None
    dialect: CsvDialect | None = None


CLASSES: Final = frozenset(
    {
        "ByColumn",
        "ByEnvelope",
        "ColumnMap",
        "Compression",
        "CsvDialect",
        "Form",
        "InputKind",
        "SentInput",
    }
)
"""The classes that the description of inputs has."""


def send_inputs(
    inputs: Inputs, make_file: Callable[[], Path]
) -> tuple[list[SentInput], list[Path]]:
    """The inputs of a load as they are sent, and their files.

    Args:
        make_file: Makes a new file for rows that are in none.
    """
    sent, files = [], []
    for source in inputs.items:
        described, path = _send_input(source, make_file)
        sent.append(described)
        files.append(path)
    return sent, files


def _send_input(source: Input, make_file: Callable[[], Path]) -> tuple[SentInput, Path]:
    match source:
        case FileInput(path=str(path)):
            described = SentInput(
                InputKind.FILE,
                source.name,
                source.type_name,
                source.form,
                source.compression,
                source.columns,
                source.dialect,
            )
            return described, Path(path)
        case StreamInput():
            return SentInput(InputKind.STREAM, source.name), _spool(source, make_file())
        case MemoryInput(rows=rows) if isinstance(rows, Sequence):
            sent = SentInput(InputKind.ROWS, source.name, source.of)
            return sent, _write_lines(rows, make_file())
        case MemoryInput():
            sent = SentInput(InputKind.ARROW, source.name, source.of)
            return sent, _write_arrow(source.rows, make_file())
        case FileInput():
            raise store_error(source.name)
        case FrameInput():
            message = "a DataFrame of Spark is loaded where the graph is stored"
            hint = "open the graph there, or load the rows as Arrow: frame.toArrow()"
            raise NotAllowedError(message, hint=hint)
        case _:
            assert_never(source)


def _spool(source: StreamInput, target: Path) -> Path:
    with target.open("wb") as file:
        while piece := source.stream.read(REMOTE_PIECE_BYTES):
            file.write(piece)
    return target


def _write_lines(rows: Iterable[Mapping[str, object]], target: Path) -> Path:
    with target.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(f"{json.dumps(to_document(dict(row)))}\n")
    return target


def _write_arrow(rows: Any, target: Path) -> Path:
    import pyarrow as pa

    if type(rows).__module__.partition(".")[0] == "pandas":
        rows = pa.Table.from_pandas(rows, preserve_index=False)
    elif isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    reader = rows.to_reader() if isinstance(rows, pa.Table) else _reader_of(rows)
    with pa.OSFile(str(target), "wb") as file, pa.ipc.new_stream(file, reader.schema) as stream:
        for batch in reader:
            stream.write_batch(batch)
    return target


def _reader_of(rows: Any) -> Any:
    import pyarrow as pa

    return pa.RecordBatchReader.from_stream(rows)


def receive_inputs(described: Any, files: Sequence[Path], stack: ExitStack) -> Inputs:
    """The inputs that a client sent, with their rows in files here.

    Args:
        stack: Closes what is opened for them.
    """
    sent = from_document(described, only=CLASSES)
    if not isinstance(sent, list) or len(sent) != len(files):
        message = "the archive must have one file for each input"
        raise InvalidInputError(message, hint="send it as a client of this release does")
    pairs = zip(sent, files, strict=True)
    return Inputs(tuple(_receive_input(source, path, stack) for source, path in pairs))


def _receive_input(source: Any, path: Path, stack: ExitStack) -> Input:
    if not isinstance(source, SentInput) or not isinstance(source.name, str):
        raise _input_error()
    match source:
        case SentInput(kind=InputKind.STREAM):
            return StreamInput(source.name, stack.enter_context(path.open("rb")))
        case SentInput(
            kind=InputKind.FILE,
            form=Form() as form,
            of=str() | None as type_name,
            columns=ColumnMap() as columns,
            dialect=CsvDialect() as dialect,
        ):
            compression = None if source.compression is None else Compression(source.compression)
            size = path.stat().st_size
            place = str(path)
            return FileInput(
                source.name, place, form, type_name, compression, size, columns, dialect
            )
        case SentInput(kind=InputKind.ROWS, of=str() as of):
            return MemoryInput(source.name, of, _read_rows(path, source.name))
        case SentInput(kind=InputKind.ARROW, of=str() | ByColumn() | ByEnvelope() as of):
            # Imported here: most loads of a client have no Arrow.
            from omnigraph.load.readers.arrow_files import read_arrow

            return MemoryInput(source.name, of, read_arrow(str(path), source.name, stack))
        case _:
            raise _input_error()


def _read_rows(path: Path, name: str) -> list[dict[str, object]]:
    rows = []
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            row = from_document(parse_json(line, f"{name}:{number}"), only=frozenset())
            if not isinstance(row, dict):
                message = f"{name}:{number}: it is not an object"
                raise InvalidInputError(message, hint="send one row a line, as a client does")
            rows.append(row)
    return rows


def _input_error() -> InvalidInputError:
    message = "the archive describes an input that cannot be loaded"
    hint = "send it as a client of this release does"
    return InvalidInputError(message, hint=hint, code=ErrorCode.INVALID_PARAMETER)
