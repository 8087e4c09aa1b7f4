"""Virtual bases: the rows of one table at a base that is not a commit, after criss-cross merges.

Rows are held only where the virtual base may differ from its anchor, which is a commit. So the cost
depends on what the sides changed, and not on the size of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.records import TableChanges, exclude_ids, ids_of, select_ids
from omnigraph.changes.tables import compare_rows
from omnigraph.changes.wide import WideValues
from omnigraph.engine.protocol import Data, Engine
from omnigraph.manifest.merge_bases import Base, Fold
from omnigraph.merge.conflicts import Conflict
from omnigraph.merge.decisions import Merged, ThreeWay, Unsettled
from omnigraph.merge.resolutions import Resolutions
from omnigraph.model.ids import CommitId
from omnigraph.schema.catalog import SchemaType

Compare: TypeAlias = Callable[[CommitId, CommitId], TableChanges]
"""Compares two commits: how the rows of the one table differ."""


@dataclass(frozen=True, slots=True)
class _Overlay:
    """How a step of a base differs from its anchor.

    Attributes:
        ids: The ids of rows that may differ.
        anchor: The anchor's rows with these ids.
        rows: The step's rows with these ids; unknown values are null.
        unsettled: What is unknown about them.
    """

    ids: pa.Array
    anchor: pa.Table
    rows: pa.Table
    unsettled: Unsettled


@dataclass(frozen=True, slots=True)
class TableFolds:
    """Folds the rows of one table.

    Attributes:
        compare: Compares two commits that `Base.pairs` names.
        nothing: An empty table of the columns that are compared.
        wide: Finds the vectors and blobs of rows that only refer to them.
    """

    type: SchemaType
    compare: Compare
    engine: Engine
    data: Data
    nothing: pa.Table
    wide: WideValues

    def fold(self, base: Base) -> VirtualBase:
        """Fold every step of a base; nothing is written."""
        overlays: list[_Overlay] = []
        for step in base.steps:
            found = self._fold(base, step, overlays) if isinstance(step, Fold) else self._plain()
            overlays.append(found)
        return VirtualBase(self, base.anchor, overlays[-1])

    def changes_from(self, anchor: CommitId, base: _Overlay, commit_id: CommitId) -> TableChanges:
        """How a commit differs from a step with that anchor."""
        found = self._between(anchor, commit_id)
        return self._changes(found, base, self._plain())[0] if len(base.ids) else found

    def _plain(self) -> _Overlay:
        """The overlay of a commit, which is its own anchor and does not differ from it."""
        return _Overlay(pa.array([], pa.utf8()), self.nothing, self.nothing, Unsettled())

    def _fold(self, base: Base, fold: Fold, overlays: list[_Overlay]) -> _Overlay:
        left, anchor = overlays[fold.left], base.anchor_of(fold.left)
        if fold.base is None:
            return self._contested(left, self._between(anchor, fold.right))
        below, root = overlays[fold.base], base.anchor_of(fold.base)
        to_left, to_right = self._between(root, anchor), self._between(root, fold.right)
        ours, lefts = self._changes(to_left, below, left)
        theirs, _ = self._changes(to_right, below, self._plain())
        decider = ThreeWay(self.engine, self.data, Resolutions())
        merged = decider.merge(ours, theirs, below.unsettled)
        # Rows that only the right side changed are on the left side as in their base.
        known = pa.concat_arrays([to_left.ids(), below.ids, left.ids])
        return _after(left, _covered(lefts, known, _before(to_right)), merged)

    def _contested(self, left: _Overlay, to_right: TableChanges) -> _Overlay:
        """Sides whose base is unknown: all rows that differ between them are contested."""
        ids = _union(left.ids, to_right.ids())
        anchor = _covered(left.anchor, left.ids, _before(to_right))
        return _Overlay(ids, anchor, self.nothing, Unsettled(contested=ids))

    def _between(self, before: CommitId, after: CommitId) -> TableChanges:
        if before == after:
            nothing = self.nothing
            return TableChanges(self.type, nothing, nothing, nothing, nothing, self.wide)
        return self.compare(before, after)

    def _changes(
        self, found: TableChanges, below: _Overlay, above: _Overlay
    ) -> tuple[TableChanges, pa.Table]:
        """How two steps differ, given how their anchors differ; and the rows of the later one."""
        old = _covered(below.rows, below.ids, _covered(_before(found), found.ids(), above.anchor))
        new = _covered(above.rows, above.ids, _covered(_now(found), found.ids(), below.anchor))
        changes = compare_rows(self.type, old, new, self.engine, self.data)
        # An unknown value equals no other, so its row counts as updated.
        unknown = _union(below.unsettled.rows(), above.unsettled.rows())
        alike = _among(_among(unknown, ids_of(old)), ids_of(new))
        alike = _without(alike, changes.ids())
        forced = replace(
            changes,
            before=pa.concat_tables([changes.before, select_ids(old, alike)]),
            after=pa.concat_tables([changes.after, select_ids(new, alike)]),
            wide=self.wide,
        )
        return forced, new


@dataclass(frozen=True, slots=True)
class VirtualBase:
    """A virtual base of one table."""

    folds: TableFolds
    anchor: CommitId
    overlay: _Overlay

    @property
    def unsettled(self) -> Unsettled:
        """What is unknown about its rows."""
        return self.overlay.unsettled

    def changes_to(self, commit_id: CommitId) -> TableChanges:
        """How a commit differs from the base."""
        return self.folds.changes_from(self.anchor, self.overlay, commit_id)


def _after(left: _Overlay, lefts: pa.Table, merged: Merged) -> _Overlay:
    """The step that results from a merge into `left`, whose relevant rows are `lefts`."""
    unsettled = left.unsettled.joined(_undecided(merged.conflicts))
    come = pa.concat_tables([merged.added, merged.replaced])
    moved = pa.concat_arrays([ids_of(come), merged.deleted, unsettled.contested])
    ids = _union(left.ids, _union(moved, unsettled.rows()))
    anchor = _covered(left.anchor, left.ids, _only(lefts, ids))
    come = exclude_ids(come, unsettled.contested)
    rows = _covered(come, moved, _only(lefts, ids))
    return _Overlay(ids, anchor, unsettled.blanked(rows), unsettled)


def _undecided(conflicts: Iterable[Conflict]) -> Unsettled:
    """What conflicts leave unknown: one value of a row, or whether the row exists."""
    contested: list[str] = []
    unknown: dict[str, list[str]] = {}
    for each in conflicts:
        assert each.id is not None, "conflicts about rows name them"
        (contested if each.property is None else unknown.setdefault(each.property, [])).append(
            each.id
        )
    cells = {name: pa.array(ids, pa.utf8()) for name, ids in unknown.items()}
    return Unsettled(pa.array(contested, pa.utf8()), cells)


def _before(found: TableChanges) -> pa.Table:
    return pa.concat_tables([found.before, found.deleted])


def _now(found: TableChanges) -> pa.Table:
    return pa.concat_tables([found.after, found.inserted])


def _covered(above: pa.Table, ids: pa.Array, below: pa.Table) -> pa.Table:
    """The rows of `above`, and those of `below` whose id is not in `ids`."""
    return pa.concat_tables([above, exclude_ids(below, ids)])


def _only(rows: pa.Table, ids: pa.Array) -> pa.Table:
    return rows.filter(pc.is_in(rows["id"], value_set=ids))


def _union(one: pa.Array, other: pa.Array) -> pa.Array:
    return pc.unique(pa.concat_arrays([one, other]))


def _among(ids: pa.Array, others: pa.Array) -> pa.Array:
    return ids.filter(pc.is_in(ids, value_set=others))


def _without(ids: pa.Array, others: pa.Array) -> pa.Array:
    return ids.filter(pc.invert(pc.is_in(ids, value_set=others)))
