"""Arrow's own formats, as a stream or as a file: read whole, and checked before it is used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

import pyarrow as pa

from omnigraph.load.readers.opening import translate_errors

_MAGIC: Final = b"ARROW1"


def read_arrow(path: str, name: str, stack: ExitStack) -> pa.Table:
    """The rows of a file. What is not compressed stays in it, until the stack is closed.

    Args:
        name: How errors name the file.
    """
    with translate_errors(name):
        file = stack.enter_context(pa.memory_map(path))
        is_stream = file.read(len(_MAGIC)) != _MAGIC
        file.seek(0)
        reader = pa.ipc.open_stream(file) if is_stream else pa.ipc.open_file(file)
        return pa.Table.from_batches(_checked_batches(reader, name), reader.schema)


def _checked_batches(reader: Any, name: str) -> Iterator[pa.RecordBatch]:
    """The batches of a reader, each found to be whole: what is damaged could crash the process."""
    is_stream = isinstance(reader, pa.RecordBatchReader)
    number = 0
    while is_stream or number < reader.num_record_batches:
        with translate_errors(f"record batch {number + 1} of {name}"):
            try:
                batch = reader.read_next_batch() if is_stream else reader.get_batch(number)
            except StopIteration:
                return
            batch.validate(full=True)
        yield batch
        number += 1
