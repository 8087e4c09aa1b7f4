"""Conflicts: what two branches changed and cannot both have, named for people and programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from omnigraph.errors import ConflictError, ErrorCode
from omnigraph.integrity.violations import Rule, Violation

_NAMED_MAX: Final = 5


class ConflictKind(StrEnum):
    """What is in conflict. Programs match on these words."""

    DIVERGENT_INSERT = "divergent_insert"
    DIVERGENT_UPDATE = "divergent_update"
    DELETE_VS_UPDATE = "delete_vs_update"
    ORPHAN_EDGE = "orphan_edge"
    UNIQUE_VIOLATION = "unique_violation"
    CARDINALITY_VIOLATION = "cardinality_violation"
    VALUE_CONSTRAINT_VIOLATION = "value_constraint_violation"


_KINDS: Final = {
    Rule.ENDPOINT: ConflictKind.ORPHAN_EDGE,
    Rule.STRANDED: ConflictKind.ORPHAN_EDGE,
    Rule.UNIQUE: ConflictKind.UNIQUE_VIOLATION,
    Rule.CARDINALITY: ConflictKind.CARDINALITY_VIOLATION,
}


_OF_BOTH_SIDES: Final = frozenset(
    {ConflictKind.UNIQUE_VIOLATION, ConflictKind.CARDINALITY_VIOLATION}
)
"""To take theirs would leave open what becomes of ours."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """One thing that both sides changed, or that the merged graph may not have.

    Attributes:
        property: Where the sides disagree; None for a whole row.
        base: The value before both, `ours` on the branch merged into, `theirs` on the one merged.
            Of a whole row, its columns; None where there is no row or nothing is known.
    """

    kind: ConflictKind
    type_name: str
    id: str | None
    property: str | None = None
    base: object = None
    ours: object = None
    theirs: object = None
    message: str = ""

    def __str__(self) -> str:
        if self.message:
            return f"{self.kind}: {self.message}"
        where = f"{self.type_name} {self.id!r}" + (f" {self.property}" if self.property else "")
        if self.kind is ConflictKind.DELETE_VS_UPDATE:
            gone, kept = ("ours", "theirs") if self.ours is None else ("theirs", "ours")
            return f"{self.kind}: {where} was deleted by {gone} and changed by {kept}"
        return f"{self.kind}: {where} is {self.ours!r} in ours and {self.theirs!r} in theirs"


def broken(violation: Violation) -> Conflict:
    """What the merged graph would break, as a conflict of the merge."""
    properties = violation.properties
    return Conflict(
        _KINDS.get(violation.rule, ConflictKind.VALUE_CONSTRAINT_VIOLATION),
        violation.type_name,
        violation.id,
        properties[0] if len(properties) == 1 else None,
        message=violation.message,
    )


class MergeConflictError(ConflictError):
    """A merge needs decisions. Nothing was written; `conflicts` has every one.

    But for a merge on Spark that has very many: then they are the first of `conflict_count`.
    """

    default_code = ErrorCode.MERGE_CONFLICTS
    retryable = False

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """Every conflict, by type and id."""
        found = self.details["conflicts"]
        assert isinstance(found, tuple), "that is what it is raised with"
        return found

    @property
    def conflict_count(self) -> int:
        """How many conflicts there are."""
        count = self.details["conflict_count"]
        assert isinstance(count, int), "that is what it is raised with"
        return count


def refused(
    source: str, target: str, conflicts: Sequence[Conflict], count: int
) -> MergeConflictError:
    """What to raise when a merge has conflicts that nobody decided.

    Args:
        count: How many there are; not all may be known by name.
    """
    named = [str(each) for each in conflicts[:_NAMED_MAX]]
    if more := count - len(named):
        named.append(f"and {more:,} more")
    plural = "s" * (count != 1)
    message = f"merging {source} into {target} has {count:,} conflict{plural}: " + "; ".join(named)
    hint = "decide with --resolve ours|theirs or a file of resolutions, or change a branch"
    if any(each.kind in _OF_BOTH_SIDES for each in conflicts):
        hint += "; where rows of both sides break a rule together, take ours or give a value"
    found = tuple(conflicts)
    return MergeConflictError(message, hint=hint, conflicts=found, conflict_count=count)
