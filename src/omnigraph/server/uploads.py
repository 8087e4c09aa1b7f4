"""Uploads: files that clients sent, and how much they may expand when they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from omnigraph.formats.compression import Compression
from omnigraph.load.readers.avro_blocks import block_sizes
from omnigraph.load.sources import FileInput, Form, Inputs, MemoryInput, StreamInput
from omnigraph.server.bodies import require_expansion, require_whole_expansion

_MAGIC: Final = {b"\x1f\x8b": Compression.GZIP, b"\x28\xb5\x2f\xfd": Compression.ZSTD}


@dataclass(frozen=True, slots=True)
class UploadLimits:
    """How large a file may be when it is decompressed, and how many times as large as it was."""

    bytes_max: int
    expansion: int

    def check(self, inputs: Inputs, files: Sequence[Path]) -> None:
        """Refuse the inputs of a load if a small file of them stands for very much.

        Args:
            files: Those that the inputs were sent as.
        """
        for source, file in zip(inputs.items, files, strict=True):
            match source:
                case FileInput(path=str(path), compression=Compression() as compression):
                    self._check_compressed(Path(path), compression)
                case FileInput(path=str(path), form=Form.AVRO):
                    self._check_avro(Path(path))
                case FileInput(path=str(path), form=Form.PARQUET | Form.ORC as form):
                    self.check_columns(Path(path), form)
                case StreamInput():
                    self._check_stream(source)
                case MemoryInput(rows=pa.Table() as rows):
                    self.check_rows(rows, file)
                case _:
                    pass

    def check_columns(self, path: Path, form: Form) -> None:
        """Refuse a file of columns whose rows are very many for its size.

        A value that is repeated takes no room, however often: so rows count as bytes.
        """
        try:
            expanded = _parquet_bytes(path) if form is Form.PARQUET else orc.ORCFile(path).nrows
        except (pa.ArrowException, OSError):
            # Whoever reads it says what is wrong with it.
            return
        require_expansion(expanded, path.stat().st_size, self.expansion)

    def check_rows(self, rows: pa.Table, file: Path) -> None:
        """Refuse the rows of an Arrow file if they are very many, or very large, for its size."""
        require_expansion(rows.num_rows + rows.nbytes, file.stat().st_size, self.expansion)

    def _check_avro(self, path: Path) -> None:
        if find_spec("fastavro") is None:
            # Then nobody reads it.
            return
        size, expanded = path.stat().st_size, 0
        for more in block_sizes(path):
            expanded += more
            require_expansion(expanded, size, self.expansion)

    def _check_compressed(self, path: Path, compression: Compression) -> None:
        limits = {"bytes_max": self.bytes_max, "expansion": self.expansion}
        require_whole_expansion(path, compression.value, **limits)

    def _check_stream(self, source: StreamInput) -> None:
        first = source.stream.read(4)
        source.stream.seek(0)
        for magic, compression in _MAGIC.items():
            if first.startswith(magic):
                self._check_compressed(Path(source.stream.name), compression)


def _parquet_bytes(path: Path) -> int:
    with pq.ParquetFile(path) as file:
        described = file.metadata
        groups = (described.row_group(number) for number in range(described.num_row_groups))
        return int(described.num_rows + sum(group.total_byte_size for group in groups))
