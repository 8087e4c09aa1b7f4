"""Conflicts: changes of two branches that exclude each other, as data with a readable message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, Self

from omnigraph.errors import ConflictError, ErrorCode
from omnigraph.integrity.violations import Rule, Violation
from omnigraph.model.brief import brief
from omnigraph.wording import count_of, describe_hidden

_NAMED_MAX: Final = 5


class ConflictKind(StrEnum):
    """The kind of a conflict. Programs match on these words."""

    DIVERGENT_INSERT = "divergent_insert"
    DIVERGENT_UPDATE = "divergent_update"
    DELETE_VS_UPDATE = "delete_vs_update"
    ORPHAN_EDGE = "orphan_edge"
    UNIQUE_VIOLATION = "unique_violation"
    CARDINALITY_VIOLATION = "cardinality_violation"
    VALUE_CONSTRAINT_VIOLATION = "value_constraint_violation"
    SCHEMA = "schema"


_KINDS: Final = {
    Rule.ENDPOINT: ConflictKind.ORPHAN_EDGE,
    Rule.STRANDED: ConflictKind.ORPHAN_EDGE,
    Rule.UNIQUE: ConflictKind.UNIQUE_VIOLATION,
    Rule.CARDINALITY: ConflictKind.CARDINALITY_VIOLATION,
}


_OF_BOTH_SIDES: Final = frozenset(
    {ConflictKind.UNIQUE_VIOLATION, ConflictKind.CARDINALITY_VIOLATION}
)
"""Kinds that cannot be decided for theirs, since that would not say what happens to ours."""


@brief
@dataclass(frozen=True, slots=True)
class Conflict:
    """What both sides changed in a row or in the schema, or a rule the merged graph would break.

    Attributes:
        id: The id of the row; None for a conflict of schemas.
        property: The property in conflict; None for a whole row.
        base: The value in the base; `ours` is that of the target, `theirs` that of the source. For
            a whole row, its columns; for schemas, a text in their language. None where there is
            no row, nothing is declared, or nothing is known.
        facet: For a conflict of schemas, what of the type or property is in conflict.
        edges: For a conflict that decides about a node that one side deleted, how many edges were
            deleted along with the node. The decision decides about them too.
        edge_counts: The same by type of edge.
        reasons: The rules that the row breaks besides, one sentence each.
    """

    kind: ConflictKind
    type_name: str
    id: str | None
    property: str | None = None
    base: object = None
    ours: object = None
    theirs: object = None
    message: str = ""
    facet: str | None = None
    edges: int = 0
    edge_counts: Mapping[str, int] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()

    def may_take_theirs(self) -> bool:
        """Whether it can be decided for the source."""
        return self.kind not in _OF_BOTH_SIDES

    def with_edges(self, counts: Mapping[str, int]) -> Conflict:
        """The conflict with the edges, by type, that were deleted along with its node."""
        return replace(self, edges=sum(counts.values()), edge_counts=counts)

    def to_json(self) -> dict[str, Any]:
        """The conflict as plain values that JSON can represent."""
        from omnigraph.formats.cells import plain_value

        return {
            "kind": str(self.kind),
            "type": self.type_name,
            "id": self.id,
            "property": self.property,
            "base": plain_value(self.base),
            "ours": plain_value(self.ours),
            "theirs": plain_value(self.theirs),
            "message": f"{self.kind}: {self.describe()}",
            **({} if self.facet is None else {"facet": self.facet}),
            **({"edges": self.edges, "edge_counts": dict(self.edge_counts)} if self.edges else {}),
            **({"reasons": list(self.reasons)} if self.reasons else {}),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """The conflict that `to_json` was called for, with values as JSON has them."""
        kind, edges = ConflictKind(fields["kind"]), fields.get("edges", 0)
        return cls(
            kind,
            fields["type"],
            fields["id"],
            fields["property"],
            fields["base"],
            fields["ours"],
            fields["theirs"],
            fields["message"].removeprefix(f"{kind}: ").removesuffix(_in_brackets(edges)),
            fields.get("facet"),
            edges,
            fields.get("edge_counts", {}),
            tuple(fields.get("reasons", ())),
        )

    def __str__(self) -> str:
        return "; ".join((f"{self.kind}: {self.describe()}", *self.reasons))

    def describe(self) -> str:
        """What is in conflict, without the kind and further reasons."""
        return self._describe_row() + _in_brackets(self.edges)

    def describe_edges(self) -> str:
        """How many edges were deleted along with the node, for people; nothing if none were."""
        return _describe_edges(self.edges)

    def _describe_row(self) -> str:
        if self.message:
            return self.message
        where = f"{self.type_name} {self.id!r}" + (f" {self.property}" if self.property else "")
        if self.kind is ConflictKind.DELETE_VS_UPDATE:
            gone, kept = ("ours", "theirs") if self.ours is None else ("theirs", "ours")
            return f"{where} was deleted by {gone} and changed by {kept}"
        return f"{where} is {self.ours!r} in ours and {self.theirs!r} in theirs"


def _describe_edges(count: int) -> str:
    if not count:
        return ""
    verb = "was" if count == 1 else "were"
    return f"{count_of(count, 'edge')} {verb} deleted along with the node"


def _in_brackets(count: int) -> str:
    return f" ({_describe_edges(count)})" if count else ""


def one_per_row(conflicts: Iterable[Conflict], violations: Iterable[Conflict]) -> list[Conflict]:
    """The conflicts, with each broken rule as a reason of the conflict that its row has already.

    Properties of one row that both sides changed stay apart, because each is decided by itself.
    """
    listed = list(conflicts)
    first = {(each.type_name, each.id): place for place, each in reversed([*enumerate(listed)])}
    for violation in violations:
        row = (violation.type_name, violation.id)
        if violation.id is None or row not in first:
            first[row] = len(listed)
            listed.append(violation)
        else:
            known = listed[first[row]]
            # The number of edges is not part of a text: an actor may not see all of their types.
            reason = str(violation.with_edges({}))
            listed[first[row]] = replace(known, reasons=(*known.reasons, reason))
    return listed


def broken(violation: Violation) -> Conflict:
    """A violation in the merged graph, as a conflict of the merge."""
    properties = violation.properties
    return Conflict(
        _KINDS.get(violation.rule, ConflictKind.VALUE_CONSTRAINT_VIOLATION),
        violation.type_name,
        violation.id,
        properties[0] if len(properties) == 1 else None,
        message=violation.message,
    )


class MergeConflictError(ConflictError):
    """A merge needs decisions. Nothing was written; `conflicts` has all conflicts.

    A merge on Spark with very many conflicts lists only the first of `conflict_count`.
    """

    default_code = ErrorCode.MERGE_CONFLICTS
    retryable = False

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """The conflicts, sorted by type and id."""
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
    source: str,
    target: str,
    conflicts: Sequence[Conflict],
    count: int,
    *,
    hidden: Sequence[str] = (),
) -> MergeConflictError:
    """The error for a merge with conflicts that have no decision.

    Args:
        count: How many there are; `conflicts` may have only some of them.
        hidden: The types whose conflicts are left out, because the actor may not read them.
    """
    named = [str(each) for each in conflicts[:_NAMED_MAX]]
    if more := count - len(named):
        named.append(f"and {more:,} more")
    plural = "s" * (count != 1)
    if hidden:
        named.append(describe_hidden(hidden))
    shown = "visible " if hidden else ""
    message = f"merging {source} into {target} has {count:,} {shown}conflict{plural}: "
    message += "; ".join(named)
    found = tuple(conflicts)
    hint = how_to_decide(found)
    error = MergeConflictError(message, hint=hint, conflicts=found, conflict_count=count)
    if hidden:
        error.details["hidden"] = list(hidden)
    return error


def how_to_decide(conflicts: Sequence[Conflict]) -> str:
    """What to do about conflicts, as a hint."""
    hint = "decide with --resolve ours|theirs or a file of resolutions, or change a branch"
    if not all(each.may_take_theirs() for each in conflicts):
        hint += "; where rows of both sides break a rule together, take ours or give a value"
    if any(each.kind is ConflictKind.SCHEMA for each in conflicts):
        hint += "; schemas are decided first, and rows are compared after that"
    return hint
