"""Outcomes of merges, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Self

from omnigraph.choices import EngineName
from omnigraph.merge.conflicts import Conflict
from omnigraph.model.brief import brief
from omnigraph.model.counts import Counts
from omnigraph.model.followups import FollowUpFailure
from omnigraph.schema.steps import SchemaStep


class Outcome(StrEnum):
    """How a merge ended."""

    ALREADY_UP_TO_DATE = "already up to date"
    FAST_FORWARD = "fast-forward"
    MERGED = "merged"
    CONFLICTED = "conflicted"


@brief
@dataclass(frozen=True, slots=True)
class MergeOutcome:
    """How a merge ended.

    Attributes:
        outcome: `conflicted` only in a dry run: the merge would be refused.
        source_commit: The commit of the source that was merged.
        commit_id: The commit that it made; None if there was nothing to merge, or in a dry run.
        changes: By type, what it changed in the target.
        steps: What it changed in the schema of the target.
        conflicts: Only in a dry run: what would have to be decided; of very many, Spark names the
            first, and `conflict_count` says how many there are.
        deleted_source: Whether the source was deleted, as asked; one that moved on stays.
        engine: The engine that merged, and `why` it was chosen.
        warnings: What failed after the merge, which has landed all the same, such as the deletion
            of the source.
        hidden: The types that the actor may not read: their changes and conflicts are left out.
    """

    outcome: Outcome
    source: str
    target: str
    source_commit: str
    commit_id: str | None = None
    changes: Mapping[str, Counts] = field(default_factory=dict)
    conflicts: tuple[Conflict, ...] = ()
    conflict_count: int = 0
    deleted_source: bool = False
    engine: EngineName = EngineName.LOCAL
    why: str = ""
    warnings: tuple[FollowUpFailure, ...] = ()
    steps: tuple[SchemaStep, ...] = ()
    hidden: tuple[str, ...] = ()

    @property
    def is_conflicted(self) -> bool:
        """Whether the merge would be refused, perhaps for conflicts of hidden types alone."""
        return self.outcome is Outcome.CONFLICTED

    def to_json(self) -> dict[str, Any]:
        """The outcome as plain values that JSON can represent."""
        return {
            "outcome": self.outcome,
            "source": self.source,
            "target": self.target,
            "source_commit": self.source_commit,
            "commit_id": self.commit_id,
            "engine": self.engine,
            "why": self.why,
            "changes": {name: asdict(counts) for name, counts in self.changes.items()},
            **({"schema": [step.to_json() for step in self.steps]} if self.steps else {}),
            "conflict_count": self.conflict_count,
            "merge_conflicts": [conflict.to_json() for conflict in self.conflicts],
            "deleted_source": self.deleted_source,
            "warnings": [asdict(warning) for warning in self.warnings],
            **({"hidden": list(self.hidden)} if self.hidden else {}),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """The outcome that `to_json` was called for."""
        return cls(
            Outcome(fields["outcome"]),
            fields["source"],
            fields["target"],
            fields["source_commit"],
            fields["commit_id"],
            {name: Counts(**counts) for name, counts in fields["changes"].items()},
            tuple(map(Conflict.from_json, fields["merge_conflicts"])),
            fields["conflict_count"],
            fields["deleted_source"],
            EngineName(fields["engine"]),
            fields["why"],
            tuple(map(FollowUpFailure.from_json, fields["warnings"])),
            tuple(map(SchemaStep.from_json, fields.get("schema", ()))),
            tuple(fields.get("hidden", ())),
        )
