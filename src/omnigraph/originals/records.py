"""The record of an import: which commits it brings; it claims the target, and stays there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self

from omnigraph.errors import AlreadyExistsError, ErrorCode
from omnigraph.manifest.layout import IMPORT
from omnigraph.model.ids import CommitId
from omnigraph.model.names import BranchName
from omnigraph.storage.store import Store


@dataclass(frozen=True, slots=True)
class ImportRecord:
    """What one import brings.

    Attributes:
        heads: The newest commit of each branch, without recoveries.
        interrupted: The interrupted writes that it recovers, by operation id.
        begun_at: When the first of several attempts began; the time of recoveries.
    """

    source: str
    stamp: int
    heads: Mapping[BranchName, CommitId]
    interrupted: tuple[str, ...]
    begun_at: datetime

    def claim(self, store: Store) -> Self:
        """Record the import in its target; an interrupted one of the same commits is continued.

        Returns:
            The record of the first attempt.
        """
        facts = {
            "format": 1,
            "source": self.source,
            "internal_schema": self.stamp,
            "heads": dict(self.heads),
            "interrupted": list(self.interrupted),
            "begun_at": self.begun_at.isoformat(),
        }
        stored = store.objects.read(IMPORT)
        if stored is None:
            if store.objects.holds_any():
                message = f"{store.root.uri} is not empty"
                hint = "import into an empty or a new directory"
                raise AlreadyExistsError(message, hint=hint, code=ErrorCode.FOREIGN_DIRECTORY)
            store.objects.put_if_absent(IMPORT, json.dumps(facts, indent=1).encode())
            stored = store.objects.read(IMPORT)
            assert stored is not None, "it was just written"
        first = self._decode(json.loads(stored.data))
        if replace(first, source=self.source, begun_at=self.begun_at) != self:
            message = f"{store.root.uri} holds an import of other commits, from {first.source}"
            hint = "import into an empty or a new directory"
            raise AlreadyExistsError(message, hint=hint, code=ErrorCode.GRAPH_EXISTS)
        return first

    @classmethod
    def _decode(cls, facts: Mapping[str, Any]) -> Self:
        return cls(
            facts["source"],
            facts["internal_schema"],
            {BranchName(name): CommitId(head) for name, head in facts["heads"].items()},
            tuple(facts["interrupted"]),
            datetime.fromisoformat(facts["begun_at"]),
        )
