"""Results of schema changes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from omnigraph.choices import EngineName
from omnigraph.model.brief import brief
from omnigraph.model.commits import Commit
from omnigraph.model.followups import FollowUpFailure
from omnigraph.schema.plan import SchemaPlan


@brief
@dataclass(frozen=True, slots=True)
class SchemaResult:
    """What a schema change did.

    Attributes:
        commit_id: The commit that it made; None if the branch had this schema already.
        plan: The steps that were carried out.
        engine: The engine that wrote new values, and `why` it was chosen.
        warnings: What failed after the commit, which has landed all the same.
    """

    commit_id: str | None
    plan: SchemaPlan
    engine: EngineName
    why: str
    warnings: tuple[FollowUpFailure, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The result as plain values that JSON can represent."""
        return {
            "commit_id": self.commit_id,
            "engine": self.engine,
            "why": self.why,
            **self.plan.to_json(),
            "warnings": [asdict(warning) for warning in self.warnings],
        }


@brief
@dataclass(frozen=True, slots=True)
class SchemaRevision:
    """A commit that changed the schema of its branch, and the steps since the commit before it.

    Attributes:
        plan: The steps; None if one of the two commits expired.
    """

    commit: Commit
    plan: SchemaPlan | None
