"""Batches of a load: typed rows of a delta, violations and rejects, and their builder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

import numpy as np
import pyarrow as pa

from omnigraph.integrity.convert import RawRow, convert_rows
from omnigraph.integrity.deltas import POSITION
from omnigraph.integrity.violations import IntegrityReport, Tally, ToOrigin, Violation
from omnigraph.load.positions import minted_id
from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import Catalog, SchemaType


@dataclass(frozen=True, slots=True)
class Shaping:
    """All that shaping depends on beside the rows; small, and can be sent to any process.

    Attributes:
        to_origin: How reports name the rows.
        seed: A ULID of this load alone; minted ids are this ULID plus the row's position.
        ignores_unknown: Whether values without a property are dropped instead of refused.
        keeps_rejects: Whether each row that is refused is kept, to be written elsewhere.
    """

    catalog: Catalog
    to_origin: ToOrigin
    seed: str
    ignores_unknown: bool = False
    keeps_rejects: bool = False


@dataclass(frozen=True, slots=True)
class Reject:
    """A row that was refused.

    Attributes:
        row: As the input has it: the text of a line, or values by column.
        violations: What it breaks; at least one.
    """

    position: int
    row: object
    violations: tuple[Violation, ...]

    @property
    def origin(self) -> str:
        """The input and line, or row, of the row."""
        return self.violations[0].origin


@dataclass(frozen=True, slots=True)
class ShapedBatch:
    """The result of a batch: rows by table, with the columns of `delta_schema`, in input order.

    Attributes:
        minted_counts: How many of a table's rows got a minted id.
    """

    rows: Mapping[TableKey, pa.Table] = field(default_factory=dict)
    minted_counts: Mapping[TableKey, int] = field(default_factory=dict)
    report: IntegrityReport = field(default_factory=IntegrityReport)
    rejects: tuple[Reject, ...] = ()


class BatchCollector:
    """The results of all batches of a load, in the order they were added."""

    def __init__(self) -> None:
        self._rows: dict[TableKey, list[pa.Table]] = {}
        self._tally = Tally()
        self.rejects: list[Reject] = []

    def add(self, shaped: ShapedBatch) -> None:
        """Add one batch."""
        for key, rows in shaped.rows.items():
            self._rows.setdefault(key, []).append(rows)
        self._tally.add_report(shaped.report)
        self.rejects.extend(shaped.rejects)

    def rows(self) -> dict[TableKey, pa.Table]:
        """The rows by table."""
        return {key: pa.concat_tables(tables) for key, tables in sorted(self._rows.items())}

    def report(self) -> IntegrityReport:
        """The violations of the rows that were refused."""
        return self._tally.report()


@dataclass(frozen=True, slots=True)
class TypedRows:
    """Rows of one type, with the columns of `delta_schema`, and how many ids were minted."""

    rows: pa.Table
    minted_count: int = 0


@dataclass(frozen=True, slots=True)
class RawInput:
    """A row for the converter, and as the input has it."""

    position: int
    row: RawRow
    original: object


@dataclass(slots=True)
class BatchBuilder:
    """Builds the result of a batch from pieces."""

    shaping: Shaping
    pieces: dict[SchemaType, list[TypedRows]] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)
    rejects: list[Reject] = field(default_factory=list)

    def put(self, type_: SchemaType, piece: TypedRows) -> None:
        """Add valid rows."""
        if len(piece.rows):
            self.pieces.setdefault(type_, []).append(piece)

    def refuse(self, position: int, original: object, violation: Violation) -> None:
        """Add a row that has no values to convert; its violation gets an origin here."""
        named = replace(violation, origin=self.shaping.to_origin(position))
        self.tally.add(named)
        if self.shaping.keeps_rejects:
            self.rejects.append(Reject(position, original, (named,)))

    def convert(self, type_: SchemaType, raws: Sequence[RawInput]) -> None:
        """Convert and add rows value by value."""
        if not raws:
            return
        piece, report = self._convert(type_, raws)
        self.tally.add_report(report)
        self.put(type_, piece)
        if len(piece.rows) < len(raws) and self.shaping.keeps_rejects:
            valid = set(piece.rows[POSITION].to_pylist())
            for raw in raws:
                if raw.position not in valid:
                    violations = self._convert(type_, [raw])[1].violations
                    self.rejects.append(Reject(raw.position, raw.original, violations))

    def _convert(
        self, type_: SchemaType, raws: Sequence[RawInput]
    ) -> tuple[TypedRows, IntegrityReport]:
        at = minted_count = 0

        def in_turn() -> Iterator[RawRow]:
            nonlocal at
            for raw in raws:
                at = raw.position
                yield raw.row

        def mint() -> str:
            # The converter calls it while it holds the row that needs an id.
            nonlocal minted_count
            minted_count += 1
            return minted_id(self.shaping.seed, at)

        conversion = convert_rows(
            type_,
            in_turn(),
            mint=mint,
            ignores_unknown=self.shaping.ignores_unknown,
            to_origin=self.shaping.to_origin,
        )
        return TypedRows(conversion.rows, minted_count), conversion.report

    def build(self) -> ShapedBatch:
        """Everything that was added, in the order of positions."""
        rows = {type_.table_key: _concat_in_order(pieces) for type_, pieces in self.pieces.items()}
        minted = {
            type_.table_key: sum(piece.minted_count for piece in pieces)
            for type_, pieces in self.pieces.items()
        }
        self.rejects.sort(key=attrgetter("position"))
        return ShapedBatch(rows, minted, self.tally.report(), tuple(self.rejects))


def _concat_in_order(pieces: list[TypedRows]) -> pa.Table:
    if len(pieces) == 1:
        return pieces[0].rows
    rows = pa.concat_tables([piece.rows for piece in pieces])
    positions = rows[POSITION].to_numpy()
    if np.all(positions[1:] > positions[:-1]):
        return rows
    return rows.take(pa.array(np.argsort(positions)))
