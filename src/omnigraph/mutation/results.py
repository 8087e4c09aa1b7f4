"""Results: what a mutation changed, exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from omnigraph.embedding.counts import EmbeddingCounts
from omnigraph.model.brief import brief
from omnigraph.model.counts import Counts
from omnigraph.model.followups import FollowUpFailure
from omnigraph.model.tables import TableKey

# A client over HTTP has results without what makes them.
if TYPE_CHECKING:
    from omnigraph.transaction.writes import WriteOutcome


@brief
@dataclass(frozen=True, slots=True)
class MutationResult:
    """What a mutation did.

    Attributes:
        commit_id: The commit that it made; None if nothing changed.
        changes: By the name of the type; only types that changed.
        warnings: What failed after the commit, which has landed all the same.
        embedding: How many texts were embedded, and how many wait for it.
        hidden: The changed types that the actor may not read: their rows are not counted.
        unchanged: By the name of the type, rows that it had already, value for value. They are
            not written.
    """

    commit_id: str | None
    branch: str
    changes: Mapping[str, Counts] = field(default_factory=dict)
    warnings: tuple[FollowUpFailure, ...] = ()
    embedding: EmbeddingCounts = field(default_factory=EmbeddingCounts)
    hidden: tuple[str, ...] = ()
    unchanged: Mapping[str, int] = field(default_factory=dict)

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
            "unchanged": dict(self.unchanged),
            "embedding": asdict(self.embedding),
            "warnings": [asdict(warning) for warning in self.warnings],
            **({"hidden": list(self.hidden)} if self.hidden else {}),
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
            tuple(fields.get("hidden", ())),
            MappingProxyType(dict(fields.get("unchanged", {}))),
        )

    def __reduce__(self) -> tuple[object, ...]:
        # A read-only view of a dictionary cannot be pickled.
        own = (self.commit_id, self.branch, dict(self.changes), self.warnings)
        return MutationResult, (*own, self.embedding, self.hidden, dict(self.unchanged))


@dataclass(frozen=True, slots=True)
class MutationReport:
    """What a plan will do: rows to write and rows to delete, by table.

    How many of the written rows are new is known after they are written.
    """

    written: Mapping[TableKey, int] = field(default_factory=dict)
    deleted: Mapping[TableKey, int] = field(default_factory=dict)
    embedding: EmbeddingCounts = field(default_factory=EmbeddingCounts)


def result_of(transaction: WriteOutcome[MutationReport]) -> MutationResult:
    """What a mutation did, after its transaction."""
    report, snapshot = transaction.report, transaction.view.snapshot
    changes: dict[str, Counts] = {}
    unchanged: dict[str, int] = {}
    touched = {*report.written, *report.deleted}
    for key in [key for key in snapshot.pins if key in touched]:
        name = key.type_name
        if deleted := report.deleted.get(key, 0):
            changes[name] = Counts(deleted=deleted)
            continue
        inserted, updated, same = transaction.upserts(key, report.written[key])
        if inserted or updated:
            changes[name] = Counts(inserted, updated)
        if same:
            unchanged[name] = same
    commit_id = None if transaction.commit is None else str(transaction.commit.commit_id)
    branch, warnings = str(snapshot.branch), transaction.warnings
    changed = MappingProxyType(changes)
    return MutationResult(
        commit_id,
        branch,
        changed,
        warnings,
        report.embedding,
        unchanged=MappingProxyType(unchanged),
    )
