"""Results of loads, and the protocol that reports their progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Protocol, Self

from omnigraph.choices import EngineName, Mode
from omnigraph.embedding.counts import EmbeddingCounts
from omnigraph.model.brief import brief
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


@brief
@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load did.

    Attributes:
        commit_id: The commit that it made; None if there was nothing to load.
        engine: The engine that carried it out, and `why` it was chosen.
        changes: By the name of the type; only types that the input names. Overwriting a type
            deletes all its rows and inserts others.
        rejected: Rows that broke rules and were written elsewhere instead.
        superseded: Rows that were left out because another row of the input has their id.
        unchanged: By the name of the type, rows that it had already, value for value. They are
            not written.
        seconds: How long each stage took.
        warnings: What failed after the commit, which has landed all the same, such as indexing.
        embedding: How many texts were embedded, and how many wait for it.
        hidden: The changed types that the actor may not read: their rows are not counted.
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
    superseded: int = 0
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
        """Rows that were deleted, over all types."""
        return sum(counts.deleted for counts in self.changes.values())

    def to_json(self) -> dict[str, Any]:
        """The result as plain values that JSON can represent."""
        return {
            "commit_id": self.commit_id,
            "branch": self.branch,
            "mode": self.mode,
            "engine": self.engine,
            "why": self.why,
            "changes": {name: asdict(counts) for name, counts in self.changes.items()},
            "rejected": self.rejected,
            "superseded": self.superseded,
            "unchanged": dict(self.unchanged),
            "seconds": {stage: round(seconds, 3) for stage, seconds in self.seconds.items()},
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
            Mode(fields["mode"]),
            EngineName(fields["engine"]),
            fields["why"],
            MappingProxyType(changes),
            fields["rejected"],
            MappingProxyType(dict(fields["seconds"])),
            tuple(map(FollowUpFailure.from_json, fields["warnings"])),
            EmbeddingCounts(**fields["embedding"]),
            fields.get("superseded", 0),
            tuple(fields.get("hidden", ())),
            MappingProxyType(dict(fields.get("unchanged", {}))),
        )

    def __reduce__(self) -> tuple[object, ...]:
        # A read-only view of a dictionary cannot be pickled.
        own = (self.commit_id, self.branch, self.mode, self.engine, self.why)
        counts = (dict(self.changes), self.rejected, dict(self.seconds))
        ends = (self.warnings, self.embedding, self.superseded, self.hidden)
        return LoadResult, (*own, *counts, *ends, dict(self.unchanged))


def freeze_counts(counts: Mapping[str, Counts]) -> Mapping[str, Counts]:
    """A read-only copy."""
    return MappingProxyType(dict(counts))
