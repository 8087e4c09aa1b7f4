"""Results: what a mutation changed, exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from omnigraph.embedding.counts import EmbeddingCounts
from omnigraph.model.counts import Counts
from omnigraph.model.followups import FollowUpFailure
from omnigraph.model.tables import TableKey

# A client over HTTP has results without what makes them.
if TYPE_CHECKING:
    from omnigraph.transaction.work import TransactionResult


@dataclass(frozen=True, slots=True)
class MutationResult:
    """What a mutation did.

    Attributes:
        commit_id: The commit that it made; None if nothing matched, so that nothing changed.
        changes: By the name of the type; only types that changed. A row that was written again
            with the values it had counts as updated.
        warnings: What failed after the commit, which has landed all the same.
        embedding: How many texts were embedded, and how many wait for it.
    """

    commit_id: str | None
    branch: str
    changes: Mapping[str, Counts] = field(default_factory=dict)
    warnings: tuple[FollowUpFailure, ...] = ()
    embedding: EmbeddingCounts = field(default_factory=EmbeddingCounts)

    @property
    def inserted(self) -> int:
        """Rows that were inserted, over all types."""
        return sum(counts.inserted for counts in self.changes.values())

    @property
    def updated(self) -> int:
        """Rows that replaced others, over all types."""
        return sum(counts.updated for counts in self.changes.values())

    @property
    def deleted(self) -> int:
        """Rows that were deleted, over all types; with the edges of deleted nodes."""
        return sum(counts.deleted for counts in self.changes.values())

    def to_json(self) -> dict[str, Any]:
        """The result as plain values that JSON can represent."""
        return {
            "commit_id": self.commit_id,
            "branch": self.branch,
            "changes": {name: asdict(counts) for name, counts in self.changes.items()},
            "embedding": asdict(self.embedding),
            "warnings": [asdict(warning) for warning in self.warnings],
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """The result that `to_json` was called for."""
        changes = {name: Counts(**counts) for name, counts in fields["changes"].items()}
        return cls(
            fields["commit_id"],
            fields["branch"],
            MappingProxyType(changes),
            tuple(map(FollowUpFailure.from_json, fields["warnings"])),
            EmbeddingCounts(**fields["embedding"]),
        )

    def __reduce__(self) -> tuple[object, ...]:
        # A read-only view of a dictionary cannot be pickled.
        own = (self.commit_id, self.branch, dict(self.changes), self.warnings, self.embedding)
        return MutationResult, own


@dataclass(frozen=True, slots=True)
class MutationReport:
    """What a plan will do: rows to write and rows to delete, by table.

    How many of the written rows are new is known after they are written.
    """

    written: Mapping[TableKey, int] = field(default_factory=dict)
    deleted: Mapping[TableKey, int] = field(default_factory=dict)
    embedding: EmbeddingCounts = field(default_factory=EmbeddingCounts)


def result_of(transaction: TransactionResult[MutationReport]) -> MutationResult:
    """What a mutation did, after its transaction."""
    report, snapshot = transaction.report, transaction.view.snapshot
    changes: dict[str, Counts] = {}
    touched = {*report.written, *report.deleted}
    for key in [key for key in snapshot.pins if key in touched]:
        before = snapshot.pin(key).row_count
        written, deleted = report.written.get(key, 0), report.deleted.get(key, 0)
        inserted = transaction.row_counts.get(key, before) - before + deleted
        changes[key.type_name] = Counts(inserted, written - inserted, deleted)
    commit_id = None if transaction.commit is None else str(transaction.commit.commit_id)
    branch, warnings = str(snapshot.branch), transaction.warnings
    changed = MappingProxyType(changes)
    return MutationResult(commit_id, branch, changed, warnings, report.embedding)
