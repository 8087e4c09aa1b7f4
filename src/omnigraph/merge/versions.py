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
            key = type_.table_key
            if self._place(self.theirs, key) is None:
                continue
            # By their places: tables that did not move are not opened.
            restores = bool(self.schema.dropped_columns(_commit(self.ours), type_))
            if restores or self._has_moved(self._base_of(key), key, self.theirs):
                yield self.sides(type_)

    def sides(self, type_: SchemaType) -> Sides:
        """The versions of one table."""
        key = type_.table_key
        is_created = self._place(self.ours, key) is None
        base = self._base_of(key)
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
        if is_created or self._has_moved(base, key, self.ours):
            return sides
        return replace(sides, is_target_base=not sides.dropped[sides.ours])

    def our_table(self, key: TableKey) -> Table | None:
        """The target's table of a merged type; None if the target has no such type."""
        return self._table(self.ours, key)

    def their_table(self, key: TableKey) -> Table | None:
        """The source's table of a merged type; None if the source has no such type."""
        return self._table(self.theirs, key)

    def base_table(self, key: TableKey) -> Table | None:
        """The table of a merged type in the base, or in the anchor of a virtual one."""
        return self._table(self.points[self.base.anchor], key)

    def _has_moved(self, base: Base, key: TableKey, side: Side) -> bool:
        """Whether a side has another version of a table than the base, if that is a commit."""
        if base.commit is None:
            return True
        return self._place(self.points[base.anchor], key) != self._place(side, key)

    def _base_of(self, key: TableKey) -> Base:
        """The base of one table: most are alike in all commits of a virtual base."""
        if self._place(self.ours, key) is None:
            # The target lacks the type, so its base does not matter: all rows of the source come.
            return Base((self.base.anchor,))
        return self.base.for_table(lambda commit: self._place(self.points[commit], key))

    def _place(self, side: Side, key: TableKey) -> _Place:
        own = self.schema.key_at(_commit(side), key)
        return None if own is None else side.snapshot.pin(own).place

    def _table(self, side: Side, key: TableKey) -> Table | None:
        own = self.schema.key_at(_commit(side), key)
        return None if own is None else side.data.table(own)


def _commit(side: Side) -> CommitId:
    return side.snapshot.head.commit_id
