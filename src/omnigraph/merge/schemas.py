"""The schema of a merge: the one that both sides have, or the three-way merge of their schemas.

Types and properties are matched by their identities (docs/decisions/0012), so each commit may call
them differently. Rows of every commit become rows of the merged types (`changes.lifts`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Self

from omnigraph.changes.lifts import Lift
from omnigraph.manifest.merge_bases import Base, Fold
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.merge.conflicts import Conflict, ConflictKind
from omnigraph.merge.resolutions import Resolutions
from omnigraph.model.ids import CommitId
from omnigraph.model.tables import TableKey
from omnigraph.schema import codec
from omnigraph.schema.catalog import Catalog, SchemaType
from omnigraph.schema.matching import Identities, Matching, match_by_identity
from omnigraph.schema.schema_conflicts import SchemaConflict, SideName
from omnigraph.schema.schema_facts import Facet, SchemaSide, Unit
from omnigraph.schema.three_way import SchemaMerge, merge_schemas

UsedUnits = Collection[tuple[SideName, Unit]]
"""Types and properties that one side dropped, and whose rows or values the named side changed."""


def side_of(snapshot: Snapshot, find_catalog: Callable[[str], Catalog]) -> SchemaSide:
    """The schema of a commit, with the identities of its types."""
    identities = {key: pin.identity for key, pin in snapshot.pins.items()}
    return SchemaSide(find_catalog(snapshot.schema_digest), identities)


@dataclass(frozen=True, slots=True)
class MergedSchema:
    """The schema that the target gets, and where each commit has what it is about.

    Attributes:
        points: The schemas of all commits that the merge looks at.
    """

    catalog: Catalog
    identities: Identities = field(hash=False)
    points: Mapping[CommitId, SchemaSide] = field(hash=False)
    _matchings: Mapping[CommitId, Matching] = field(hash=False)

    @classmethod
    def of(cls, side: SchemaSide, points: Mapping[CommitId, SchemaSide]) -> Self:
        """Match a schema with those of all commits."""
        matchings = {
            commit: match_by_identity(
                point.catalog, point.identities, side.catalog, side.identities
            )
            for commit, point in points.items()
        }
        return cls(side.catalog, side.identities, points, matchings)

    def matching(self, commit: CommitId) -> Matching:
        """What each type and property of the merged schema continues in that of a commit."""
        return self._matchings[commit]

    def key_at(self, commit: CommitId, key: TableKey) -> TableKey | None:
        """The key that a type of the merged schema has at a commit; None if it has no such type."""
        return self._matchings[commit].types.get(key)

    def lift(self, commit: CommitId, type_: SchemaType) -> Lift:
        """How rows of a commit become rows of a type of the merged schema."""
        key = self.key_at(commit, type_.table_key)
        if key is None:
            return Lift.identity(type_)
        point = self.points[commit]
        return Lift.between(
            point.catalog.type_of(key),
            point.identities[key],
            wanted=type_,
            wanted_identity=self.identities[type_.table_key],
        )

    def dropped_columns(self, commit: CommitId, type_: SchemaType) -> tuple[str, ...]:
        """The columns of a type that a commit has dropped, and that the merge keeps nonetheless."""
        key = self.key_at(commit, type_.table_key)
        if key is None:
            return ()
        dropped = self.points[commit].identities[key].dropped
        identity = self.identities[type_.table_key]
        return tuple(
            property_.name
            for property_ in type_.properties
            if identity.origin_of(property_.name) in dropped
        )

    def is_that_of(self, commit: CommitId) -> bool:
        """Whether a commit has the merged schema, with all identities."""
        point = self.points[commit]
        return point.identities == self.identities and (
            point.catalog is self.catalog
            or codec.digest(point.catalog) == codec.digest(self.catalog)
        )


@dataclass(frozen=True, slots=True)
class SchemaSides:
    """The schemas that meet in a merge.

    Attributes:
        points: By commit, the schemas of the base's commits, of ours and of theirs.
    """

    base: Base
    points: Mapping[CommitId, SchemaSide]
    ours: CommitId
    theirs: CommitId

    def merge(
        self, resolutions: Resolutions, used: UsedUnits = ()
    ) -> MergedSchema | tuple[Conflict, ...]:
        """The merged schema, or every undecided conflict of schemas.

        Args:
            resolutions: The decisions of the caller; those that are used are noted there.
        """
        ours, theirs = self.points[self.ours], self.points[self.theirs]
        if _is_same(ours, theirs):
            return MergedSchema.of(ours, self.points)

        def decide(conflict: SchemaConflict) -> SideName | None:
            name = conflict.declaration.partition(":")[2]
            choice = resolutions.decide_schema(name, conflict.property, conflict.facet)
            return None if choice is None else choice.value

        bases = self._bases()
        results = [
            merge_schemas(base, ours, theirs, decide=decide, used=used) for base in bases.sides
        ]
        sides = _distinct(
            SchemaSide(result.catalog, result.identities)
            for result in results
            if isinstance(result, SchemaMerge)
        )
        conflicts = [conflict for result in results for conflict in _conflicts_in(result)]
        if conflicts:
            return tuple(map(_to_conflict, dict.fromkeys(conflicts)))
        if len(sides) > 1:
            return tuple(map(_to_conflict, map(_unknown, bases.contradictions)))
        merged = MergedSchema.of(sides[0], self.points)
        return tuple(map(_to_conflict, self._rival_defaults(merged))) or merged

    def _rival_defaults(self, merged: MergedSchema) -> Iterator[SchemaConflict]:
        """Properties that both sides added to rows of the base, with different defaults.

        Those rows have the default of either side, which no user wrote there: no decision about the
        schemas tells which of the values were meant.
        """
        base, ours, theirs = (
            merged.matching(commit) for commit in (self.base.anchor, self.ours, self.theirs)
        )
        for type_ in merged.catalog.types:
            key = type_.table_key
            if not all(key in matching.types for matching in (base, ours, theirs)):
                continue
            for property_ in type_.properties:
                name = property_.name
                added = name not in base.properties[key]
                both = name in ours.properties[key] and name in theirs.properties[key]
                if added and both:
                    yield from self._rivals(merged, key, name)

    def _rivals(self, merged: MergedSchema, key: TableKey, name: str) -> Iterator[SchemaConflict]:
        ours, theirs = (
            self.points[commit]
            .catalog.type_of(merged.matching(commit).types[key])
            .property_named(merged.matching(commit).properties[key][name])
            for commit in (self.ours, self.theirs)
        )
        if ours.default != theirs.default:
            reason = (
                f"both sides added {name} with different defaults, and rows that nobody wrote to "
                "have either: drop it from a branch with 'omnigraph schema apply', and merge again"
            )
            yield SchemaConflict(
                str(key),
                name,
                Facet.DEFAULT,
                ours=None if ours.default is None else str(ours.default),
                theirs=None if theirs.default is None else str(theirs.default),
                reason=reason,
            )

    def _bases(self) -> _BaseSchemas:
        """What the base's schema may be: one, unless commits of a virtual base contradict."""
        folded: list[_BaseSchemas] = []
        for step in self.base.steps:
            if isinstance(step, Fold):
                below = None if step.base is None else folded[step.base]
                folded.append(_fold(below, folded[step.left], self.points[step.right]))
            else:
                folded.append(_BaseSchemas((self.points[step],)))
        return folded[-1]


@dataclass(frozen=True, slots=True)
class _BaseSchemas:
    """The schemas that a base may have: several where the commits it is made of contradict.

    Attributes:
        contradictions: The reasons.
    """

    sides: tuple[SchemaSide, ...]
    contradictions: tuple[SchemaConflict, ...] = ()


_NOTHING: Final = SchemaSide(Catalog(), {})


def _fold(base: _BaseSchemas | None, left: _BaseSchemas, right: SchemaSide) -> _BaseSchemas:
    """What two commits of a base have in common."""
    sides: list[SchemaSide] = []
    contradictions = [*left.contradictions]
    for own in left.sides:
        for below in (_NOTHING,) if base is None else base.sides:
            merged = own if _is_same(own, right) else merge_schemas(below, own, right)
            if isinstance(merged, SchemaSide):
                sides.append(merged)
            elif isinstance(merged, SchemaMerge) and base is not None:
                sides.append(SchemaSide(merged.catalog, merged.identities))
            else:
                sides += (own, right)
                contradictions += _conflicts_in(merged)
    return _BaseSchemas(_distinct(sides), tuple(dict.fromkeys(contradictions)))


def _unknown(conflict: SchemaConflict) -> SchemaConflict:
    """A fact that has no base, since the branches merged each other and then went apart."""
    reason = (
        f"the {conflict.facet} has no base, since the commits that both branches come from differ; "
        "give both the same schema with 'omnigraph schema apply', and merge again"
    )
    return replace(conflict, base=None, ours=None, theirs=None, reason=reason)


def _conflicts_in(
    result: SchemaMerge | tuple[SchemaConflict, ...],
) -> tuple[SchemaConflict, ...]:
    return () if isinstance(result, SchemaMerge) else result


def _to_conflict(conflict: SchemaConflict) -> Conflict:
    return Conflict(
        ConflictKind.SCHEMA,
        conflict.declaration.partition(":")[2],
        None,
        conflict.property,
        base=conflict.base,
        ours=conflict.ours,
        theirs=conflict.theirs,
        message=str(conflict),
        facet=str(conflict.facet),
    )


def _is_same(left: SchemaSide, right: SchemaSide) -> bool:
    if left.identities != right.identities:
        return False
    same = left.catalog is right.catalog
    return same or codec.digest(left.catalog) == codec.digest(right.catalog)


def _distinct(sides: Iterable[SchemaSide]) -> tuple[SchemaSide, ...]:
    kept: list[SchemaSide] = []
    for side in sides:
        if not any(_is_same(side, other) for other in kept):
            kept.append(side)
    return tuple(kept)
