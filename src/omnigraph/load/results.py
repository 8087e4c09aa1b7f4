"""Results of loads, and the protocol that reports their progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from omnigraph.choices import EngineName, Mode
from omnigraph.embedding.counts import EmbeddingCounts
from omnigraph.model.counts import Counts
from omnigraph.model.followups import FollowUpFailure


class Progress(Protocol):
    """Follows a load. If it raises, `KeyboardInterrupt` included, the load ends.

    Nothing becomes visible then, unless `commit` or `index` was reported: the load has landed.
    """

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Receive how far a stage is: `read`, `check`, `stage`, `commit` or `index`.

        Args:
            done: Bytes for `read`, or tasks where Spark reads DataFrames; else steps.
            total: None where it is not known.
        """
        ...


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load did.

    Attributes:
        commit_id: The commit that it made; None if there was nothing to load.
        engine: The engine that carried it out, and `why` it was chosen.
        changes: By the name of the type; only types that the input names. A row that was written
            again with the values it had counts as updated. Overwriting a type deletes all its rows
            and inserts others.
        rejected: Rows that broke rules and were written elsewhere instead.
        seconds: How long each stage took.
        warnings: What failed after the commit, which has landed all the same, such as indexing.
        embedding: How many texts were embedded, and how many wait for it.
    """

    commit_id: str | None
    branch: str
    mode: Mode
    engine: EngineName
    why: str
    changes: Mapping[str, Counts] = field(default_factory=dict)
    rejected: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
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
        """Rows that were deleted, over all types."""
        return sum(counts.deleted for counts in self.changes.values())

    def __reduce__(self) -> tuple[object, ...]:
        # A read-only view of a dictionary cannot be pickled.
        own = (self.commit_id, self.branch, self.mode, self.engine, self.why)
        counts = (dict(self.changes), self.rejected, dict(self.seconds))
        return LoadResult, (*own, *counts, self.warnings, self.embedding)


def freeze_counts(counts: Mapping[str, Counts]) -> Mapping[str, Counts]:
    """A read-only copy."""
    return MappingProxyType(dict(counts))
