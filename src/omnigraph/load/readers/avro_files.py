"""Avro files: records, read one by one and shaped a batch at a time."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import islice
from typing import Any, Final

from omnigraph.errors import ErrorCode, InvalidInputError, OmnigraphError
from omnigraph.load.positions import positions
from omnigraph.load.readers.batches import SplitBatch, named_columns
from omnigraph.load.readers.opening import RawStream, open_file
from omnigraph.load.shaping.batches import Shaping
from omnigraph.load.shaping.values import shape_values
from omnigraph.load.splits import FileSplit

_BATCH_RECORDS: Final = 1 << 14
"""Records that are held at a time: each is a dictionary of Python's."""


def read_avro(
    shaping: Shaping, number: int, split: FileSplit, *, access_hint: str
) -> Iterator[SplitBatch]:
    """Read and shape a file."""
    source = split.file
    assert source.type_name is not None, "a file of records has rows of one type"
    with open_file(source, access_hint=access_hint) as (stream, file):
        first = 1
        with _translate_errors(source.name, first):
            records = _open(io.BufferedReader(RawStream(stream)))
            fields = [field["name"] for field in _fields(records.writer_schema)]
        named = named_columns(shaping, shaping.catalog.type_named(source.type_name), fields, source)
        while True:
            with _translate_errors(source.name, first):
                rows = [
                    {name: record[field] for name, field in named.items()}
                    for record in islice(records, _BATCH_RECORDS)
                ]
            if not rows:
                return
            places = positions(number, first, len(rows))
            first += len(rows)
            yield SplitBatch(shape_values(shaping, source.type_name, rows, places), file.tell())


def _open(stream: io.BufferedReader) -> Any:
    if find_spec("fastavro") is None:
        message = "fastavro, which reads Avro, is not installed"
        hint = "pip install 'omnigraph[avro]'; on a cluster, every worker needs it"
        raise InvalidInputError(message, hint=hint, code=ErrorCode.NOT_INSTALLED)
    import fastavro

    return fastavro.reader(stream)


def _fields(schema: Any) -> list[dict[str, Any]]:
    """The fields of the records of a file."""
    if not isinstance(schema, dict) or schema.get("type") != "record":
        message = "its values are not records"
        raise ValueError(message)
    fields: list[dict[str, Any]] = schema["fields"]
    return fields


@contextmanager
def _translate_errors(name: str, first: int) -> Iterator[None]:
    """Re-raise what fastavro raises about contents as ours, with where it was."""
    try:
        yield
    except OmnigraphError:
        raise
    except Exception as cause:
        if isinstance(cause, OSError) and cause.errno is not None:
            raise
        # Each codec has failures of its own, and so have schemas.
        reason = str(cause) or type(cause).__name__
        message = f"{name} cannot be read, at row {first} or after: {reason[:300]}"
        hint = "check that it is whole, and Avro with a schema in it"
        raise InvalidInputError(message, hint=hint) from cause
