"""Keys: the columns of a load that rules about several rows read, as DataFrames over scratch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from omnigraph.errors import InternalError
from omnigraph.integrity.deltas import POSITION, delta_schema
from omnigraph.load.spark.intake import FAULTS, TYPE, ScratchFile, TypeOutput
from omnigraph.load.spark.scratch import Scratch
from omnigraph.schema.catalog import SchemaType


@dataclass(frozen=True, slots=True)
class ScratchSource:
    """A file in scratch, which executors read."""

    scratch: Scratch
    file: ScratchFile

    @property
    def row_count(self) -> int:
        """How many rows it has."""
        return self.file.row_count

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Columns of all rows, in this order."""
        return self.scratch.read(self.file.path, columns)


@dataclass(frozen=True, slots=True)
class KeyRows:
    """The rows of one type in the scratch of a load; the upserts of its delta.

    Attributes:
        columns: The columns that the files in scratch have.
    """

    session: SparkSession
    scratch: Scratch
    type: SchemaType
    written: TypeOutput
    columns: frozenset[str]
    faults: tuple[ScratchFile, ...] = ()
    fault_count: int = 0

    def __len__(self) -> int:
        return self.written.row_count - self.fault_count

    @property
    def has_given_ids(self) -> bool:
        """Whether any row has an id that was not minted."""
        return self.written.minted_count < self.written.row_count

    def without(self, faults: tuple[ScratchFile, ...], fault_count: int) -> KeyRows:
        """The rows that are not among those with faults, of which there are so many."""
        return replace(self, faults=faults, fault_count=fault_count)

    def select(self, columns: Sequence[str]) -> DataFrame:
        """Columns of the files in scratch; only they are read."""
        self._require(columns)
        if not self.fault_count:
            return self._every(columns)
        rows = self._every(list(dict.fromkeys([*columns, POSITION])))
        return rows.join(self.faulty(), POSITION, "left_anti").select(*columns)

    def sources(self) -> tuple[ScratchSource, ...] | None:
        """The files in scratch; None if they have rows that are left out."""
        if self.fault_count:
            return None
        return tuple(ScratchSource(self.scratch, file) for file in self.written.scratch)

    def _require(self, columns: Sequence[str]) -> None:
        if missing := set(columns) - self.columns - {POSITION}:
            message = f"scratch lacks the columns {', '.join(sorted(missing))} of {self.type.name}"
            raise InternalError(message)

    def faulty(self) -> DataFrame:
        """The positions of the rows that are left out, each once."""
        faults = faults_frame(self.session, self.scratch, self.faults)
        own = sql.col(TYPE) == str(self.type.table_key)
        return faults.where(own).select(POSITION).distinct()

    def _every(self, columns: Sequence[str]) -> DataFrame:
        own = delta_schema(self.type)
        paths = [file.path for file in self.written.scratch]
        return self.scratch.frame(self.session, paths, pa.schema(map(own.field, columns)))


def faults_frame(
    session: SparkSession, scratch: Scratch, files: Sequence[ScratchFile]
) -> DataFrame:
    """What rows break, with the columns of `FAULTS`."""
    return scratch.frame(session, [file.path for file in files], FAULTS)
