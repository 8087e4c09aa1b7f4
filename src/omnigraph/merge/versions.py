"""The versions of each table that meet in a merge, found by the identities of their types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from omnigraph.changes.graphs import Side
from omnigraph.manifest.merge_bases import Base
from omnigraph.merge.rows import Sides
from omnigraph.merge.schemas import MergedSchema
from omnigraph.model.ids import CommitId
from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage.tables import Table

_Place = tuple[str, str | None, int] | None


@dataclass(frozen=True, slots=True)
class TableVersions:
    """Finds the tables of the merged types at each commit.

    Attributes:
        points: The commits of the base, opened.
    """

    schema: MergedSchema
    base: Base
    points: Mapping[CommitId, Side]
    ours: Side
    theirs: Side

    def moved(self) -> Iterator[Sides]:
        """The tables that the source, or a commit of a virtual base, has at another version."""
        for type_ in self.schema.catalog.types:
            if self._place(self.theirs, type_.table_key) is None:
                continue
            sides = self.sides(type_)
            restores = bool(sides.dropped.get(sides.ours))
            if restores or self._has_moved(sides, self.theirs):
                yield sides

    def sides(self, type_: SchemaType) -> Sides:
        """The versions of one table."""
        key = type_.table_key
        is_created = self._place(self.ours, key) is None
        # The base of a type that the target lacks does not matter: all rows of the source come.
        anchor = Base((self.base.anchor,))
        base = anchor if is_created else self._base_of(key)
        tables: dict[CommitId, Table | None] = {
            commit: None if is_created else self._table(self.points[commit], key)
            for commit in base.commits
        }
        for side in (self.theirs, self.ours):
            tables[_commit(side)] = self._table(side, key)
        sides = Sides(
            type_,
            base,
            tables,
            _commit(self.theirs),
            _commit(self.ours),
            is_target_base=is_created,
            lifts={commit: self.schema.lift(commit, type_) for commit in tables},
            dropped={
                commit: self.schema.dropped_columns(commit, type_)
                for commit in (_commit(self.ours), _commit(self.theirs))
            },
        )
        if is_created or self._has_moved(sides, self.ours):
            return sides
        return replace(sides, is_target_base=not sides.dropped[sides.ours])

    def _has_moved(self, sides: Sides, side: Side) -> bool:
        """Whether a side has another version of a table than the base, if that is a commit."""
        if sides.base.commit is None:
            return True
        anchor = self.points[sides.base.anchor]
        key = sides.type.table_key
        return self._place(anchor, key) != self._place(side, key)

    def _base_of(self, key: TableKey) -> Base:
        """The base of one table: most are alike in all commits of a virtual base."""
        return self.base.for_table(lambda commit: self._place(self.points[commit], key))

    def _place(self, side: Side, key: TableKey) -> _Place:
        own = self.schema.key_at(_commit(side), key)
        return None if own is None else side.snapshot.pin(own).place

    def _table(self, side: Side, key: TableKey) -> Table | None:
        own = self.schema.key_at(_commit(side), key)
        return None if own is None else side.data.table(own)


def _commit(side: Side) -> CommitId:
    return side.snapshot.head.commit_id
