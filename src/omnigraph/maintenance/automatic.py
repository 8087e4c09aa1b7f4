"""Automatic maintenance: a writer folds small fragments of the tables that it has just changed.

The work of one fold is bounded, and it never waits: if a table is busy, a later write folds it
(docs/decisions/0013). `maintenance.optimize` of the graph's settings switches it off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from omnigraph.choices import EngineName
from omnigraph.errors import (
    BranchNotFoundError,
    ConflictError,
    OmnigraphError,
    TypeNotFoundError,
)
from omnigraph.limits import FOLD_DELETED_ROWS_MIN, FOLD_FRAGMENTS_MIN, KEPT_FRAGMENT_ROWS_MAX
from omnigraph.maintenance.groups import Group, fragments_until_fold, group_to_fold
from omnigraph.maintenance.optimize import LocalCompaction, Optimizing, Policy
from omnigraph.manifest.settings import StoredSettings
from omnigraph.model.commits import MAINTENANCE_ACTOR, OperationKind
from omnigraph.model.followups import FollowUpFailure, optimize_failure
from omnigraph.model.names import BranchName
from omnigraph.model.settings import OptimizeMode
from omnigraph.model.tables import TableKey
from omnigraph.storage.compaction import FragmentSize, measure_fragments
from omnigraph.storage.tables import Table
from omnigraph.transaction.commit import Transactions
from omnigraph.transaction.writes import WriteRequest

FOLD_JOINED_ROWS_MAX: Final = 1 << 19
"""Rows of index segments that one fold joins: about a tenth of a second."""

FOLD_ROW_ID_BYTES_MAX: Final = 1 << 10
"""Bytes of row ids from which on a fold sorts what it takes: rows that were just written, or all
rows of a table of which many were."""


@dataclass(frozen=True, slots=True)
class _Threshold:
    """How many fragments and deleted rows a table may have before it is measured again."""

    fragment_count: int
    deleted_count: int

    def is_passed(self, table: Table) -> bool:
        return (
            table.count_fragments() >= self.fragment_count
            or table.count_deleted_rows() >= self.deleted_count
        )


_FIRST: Final = _Threshold(FOLD_FRAGMENTS_MIN, FOLD_DELETED_ROWS_MIN)


@dataclass(frozen=True, slots=True)
class Folding:
    """Follows the commits of one graph handle."""

    settings: StoredSettings
    _thresholds: dict[tuple[str, str | None], _Threshold] = field(default_factory=dict)

    def after_commit(
        self,
        transactions: Transactions,
        request: WriteRequest,
        tables: Mapping[TableKey, Table],
    ) -> tuple[FollowUpFailure, ...]:
        """Fold what is due in these tables; a failure is reported, since the commit has landed."""
        try:
            due = [key for key, table in tables.items() if self._is_due(table)]
            if due:
                self._fold(transactions, request.branch, due)
        except (ConflictError, BranchNotFoundError, TypeNotFoundError):
            # Others are at work on the table; their next write, or ours, folds it, unless they
            # deleted the branch or renamed the type.
            return ()
        except OmnigraphError as failure:
            return (optimize_failure(request.branch, failure),)
        return ()

    def _is_on(self) -> bool:
        return self.settings.current().maintenance.optimize is OptimizeMode.AUTO

    def _is_due(self, table: Table) -> bool:
        """Whether a table has a group to fold; measured only when it may have one."""
        place = (table.address.location, table.address.ref)
        threshold = self._thresholds.get(place, _FIRST)
        if not threshold.is_passed(table):
            return False
        sizes = measure_fragments(table)
        is_due = bool(group_to_fold(sizes))
        if is_due and self._is_on():
            self._thresholds.pop(place, None)
            return True
        self._thresholds[place] = _Threshold(
            len(sizes) + fragments_until_fold(sizes),
            table.count_deleted_rows() + FOLD_DELETED_ROWS_MIN,
        )
        return False

    def _fold(
        self, transactions: Transactions, branch: BranchName, keys: Sequence[TableKey]
    ) -> None:
        fold = WriteRequest(OperationKind.OPTIMIZE, branch, actor=MAINTENANCE_ACTOR, waits=False)
        names = tuple(str(key.type_name) for key in keys)
        optimizing = Optimizing(EngineName.LOCAL, begin_locally, _FOLD, names)
        transactions.run(fold, optimizing.plan)


def begin_locally(_: EngineName) -> LocalCompaction:
    """A fold is small: it runs in this process."""
    return LocalCompaction()


def _group_once(fragments: Sequence[FragmentSize]) -> tuple[Group, ...]:
    return (group_to_fold(fragments),)


_FOLD: Final = Policy(
    _group_once,
    indexed_rows_min=KEPT_FRAGMENT_ROWS_MAX,
    indexes_all=False,
    joined_rows_max=FOLD_JOINED_ROWS_MAX,
    row_id_bytes_max=FOLD_ROW_ID_BYTES_MAX,
)
"""Smaller fragments need no index: lookups keep their values in memory."""
