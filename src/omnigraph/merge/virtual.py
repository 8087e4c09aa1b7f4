"""Virtual bases: the rows of one table at a base that is no commit, where histories crossed.

Rows are held only where the virtual base may differ from its anchor, a commit that is there. So the
cost follows what the crossing sides changed, and not the size of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.records import TableChanges, excluding, having, ids_of
from omnigraph.changes.tables import compare_rows
from omnigraph.changes.wide import WideValues
from omnigraph.engine.protocol import Data, Engine
from omnigraph.merge.bases import Base, Fold
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
        ids: The rows in question.
        anchor: Those of them that the anchor has, as it has them.
        rows: Those of them that the step has; a value that nobody knows is null.
        unsettled: What nobody knows of them.
    """

    ids: pa.Array
    anchor: pa.Table
    rows: pa.Table
    unsettled: Unsettled


@dataclass(frozen=True, slots=True)
class TableFolds:
    """What folds the rows of one table.

    Attributes:
        compare: Compares two commits, of all that `Base.pairs` names.
        nothing: No rows, in the columns that rows are compared in.
        wide: What finds the vectors and blobs of rows that only refer to them.
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
        """A commit, which does not differ from its anchor: itself."""
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
        # What only the right side touched, the left side has as their base had it.
        known = pa.concat_arrays([to_left.ids(), below.ids, left.ids])
        return _after(left, _covered(lefts, known, _before(to_right)), merged)

    def _contested(self, left: _Overlay, to_right: TableChanges) -> _Overlay:
        """Sides whose base is not known: whatever differs between them is contested."""
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
        """How two steps differ, from how their anchors do; and the rows of the later one."""
        old = _covered(below.rows, below.ids, _covered(_before(found), found.ids(), above.anchor))
        new = _covered(above.rows, above.ids, _covered(_now(found), found.ids(), below.anchor))
        changes = compare_rows(self.type, old, new, self.engine, self.data)
        # A value that nobody knows equals no other, so its row counts as changed.
        unknown = _union(below.unsettled.rows(), above.unsettled.rows())
        alike = _among(_among(unknown, ids_of(old)), ids_of(new))
        alike = _without(alike, changes.ids())
        forced = replace(
            changes,
            before=pa.concat_tables([changes.before, having(old, alike)]),
            after=pa.concat_tables([changes.after, having(new, alike)]),
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
        """What nobody knows of its rows."""
        return self.overlay.unsettled

    def changes_to(self, commit_id: CommitId) -> TableChanges:
        """How a commit differs from the base."""
        return self.folds.changes_from(self.anchor, self.overlay, commit_id)


def _after(left: _Overlay, lefts: pa.Table, merged: Merged) -> _Overlay:
    """A step after something was merged into it; `lefts` are its rows, as far as they matter."""
    unsettled = left.unsettled.joined(_undecided(merged.conflicts))
    come = pa.concat_tables([merged.added, merged.replaced])
    moved = pa.concat_arrays([ids_of(come), merged.deleted, unsettled.contested])
    ids = _union(left.ids, _union(moved, unsettled.rows()))
    anchor = _covered(left.anchor, left.ids, _only(lefts, ids))
    come = excluding(come, unsettled.contested)
    rows = _covered(come, moved, _only(lefts, ids))
    return _Overlay(ids, anchor, unsettled.blanked(rows), unsettled)


def _undecided(conflicts: Iterable[Conflict]) -> Unsettled:
    """What a conflict leaves open: one value of a row, or whether there is a row."""
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
    """The rows of the one table, and those of the other whose ids are none of these."""
    return pa.concat_tables([above, excluding(below, ids)])


def _only(rows: pa.Table, ids: pa.Array) -> pa.Table:
    return rows.filter(pc.is_in(rows["id"], value_set=ids))


def _union(one: pa.Array, other: pa.Array) -> pa.Array:
    return pc.unique(pa.concat_arrays([one, other]))


def _among(ids: pa.Array, others: pa.Array) -> pa.Array:
    return ids.filter(pc.is_in(ids, value_set=others))


def _without(ids: pa.Array, others: pa.Array) -> pa.Array:
    return ids.filter(pc.invert(pc.is_in(ids, value_set=others)))
