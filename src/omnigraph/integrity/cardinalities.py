"""Cardinality rules: how many edges a source has, once the delta is in.

Only sources that a delta touches are counted. The graph was right before, so the most can be
exceeded only where edges come, and the least missed only where edges go or nodes come.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from omnigraph.integrity.deltas import POSITION, Shape
from omnigraph.integrity.drafts import (
    Draft,
    Offenders,
    Reliance,
    aliased,
    among,
    every,
    no_position,
    position_of,
)
from omnigraph.integrity.violations import (
    Breach,
    Rule,
    ToOrigin,
    Violation,
    no_origin,
    origin_at,
    shortened,
)
from omnigraph.model.types import Scalar
from omnigraph.relational.plans import Place
from omnigraph.relational.trees import column, table
from omnigraph.schema.catalog import EdgeType, NodeType


@dataclass(frozen=True, slots=True)
class Most:
    """No source has more edges than the type allows."""

    edge: EdgeType
    maximum: int

    @property
    def breach(self) -> Breach:
        """What an offender breaks."""
        return _breach(self.edge)

    def applies(self, shape: Shape) -> bool:
        """Whether a delta of this shape could break it."""
        return self.edge.table_key in shape.upserted

    def offenders(self, shape: Shape) -> Offenders:
        """The sources of the delta's edges that have too many."""
        draft = Draft(shape)
        key = self.edge.table_key
        written = draft.upserts(key, "id", "src", POSITION)
        edges = [_written(written)]
        left = draft.remaining(
            key,
            "id",
            "src",
            by="src",
            among=Place(written, "src"),
            replaced=False,
            reliance=Reliance.ABSENCE,
        )
        if left is not None:
            edges.append(among(_left(left), column("src", "e"), written, "w", at="src"))
        count = exp.Count(this=exp.Distinct(expressions=[column("id", "a")]))
        query = (
            exp.select(
                *aliased(
                    position=exp.Min(this=column("o", "a")),
                    id=column("src", "a"),
                    count=count,
                )
            )
            .from_(table(draft.define(every(edges)), "a"))
            .where(exp.Not(this=exp.Is(this=column("src", "a"), expression=exp.Null())))
            .group_by(column("src", "a"))
            .having(exp.GT(this=count.copy(), expression=exp.Literal.number(self.maximum)))
        )
        return draft.offenders(query, ("count", Scalar.I64))

    def described(self, row: dict[str, object], to_origin: ToOrigin = no_origin) -> Violation:
        """The violation that a row of `offenders` is."""
        return _described(self.edge, row, f"at most {self.maximum}", to_origin)


@dataclass(frozen=True, slots=True)
class Least:
    """No node of the source type has fewer edges than the type demands.

    It relies on no other writer: a node that is inserted has only edges of its own write, and
    whoever deletes an edge counts those that its node keeps.
    """

    edge: EdgeType
    node: NodeType
    minimum: int

    @property
    def breach(self) -> Breach:
        """What an offender breaks."""
        return _breach(self.edge)

    def applies(self, shape: Shape) -> bool:
        """Whether a delta of this shape could break it."""
        edges, nodes = self.edge.table_key, self.node.table_key
        return edges in shape.upserted | shape.deleted | shape.overwritten or (
            nodes in shape.upserted
        )

    def offenders(self, shape: Shape) -> Offenders:
        """The nodes that lost edges, or came, and have too few."""
        draft = Draft(shape)
        touched = list(self._touched(draft))
        sources = draft.define(every([each.query for each in touched]))
        edges = draft.define(every(list(self._edges(draft, touched))))
        count = exp.Count(this=exp.Distinct(expressions=[column("id", "a")]))
        query = (
            exp.select(
                *aliased(position=exp.Max(this=column("o", "s")), id=column("id", "s"), count=count)
            )
            .from_(table(sources, "s"))
            .join(
                table(edges, "a"),
                on=exp.EQ(this=column("id", "s"), expression=column("src", "a")),
                join_type="left",
            )
            .group_by(column("id", "s"))
            .having(exp.LT(this=count.copy(), expression=exp.Literal.number(self.minimum)))
        )
        return draft.offenders(query, ("count", Scalar.I64))

    def described(self, row: dict[str, object], to_origin: ToOrigin = no_origin) -> Violation:
        """The violation that a row of `offenders` is."""
        return _described(self.edge, row, f"at least {self.minimum}", to_origin)

    def _touched(self, draft: Draft) -> Iterator[_Touched]:
        edges, nodes = self.edge.table_key, self.node.table_key
        shape = draft.shape
        if nodes in shape.upserted:
            came = draft.upserts(nodes, "id", POSITION)
            columns = aliased(id=column("id", "n"), o=position_of("n"))
            is_there = exp.Not(this=exp.Is(this=column("id", "n"), expression=exp.Null()))
            query = exp.select(*columns).from_(table(came, "n")).where(is_there)
            yield _Touched(query, Place(came, "id"))
        if edges in shape.overwritten:
            # Every node may have lost its edges.
            left = draft.remaining(
                nodes, "id", by="id", among=None, replaced=False, reliance=Reliance.NONE
            )
            if left is not None:
                yield _Touched(_without_position(left, "id"), None)
            elif nodes not in shape.upserted:
                yield _Touched(_nothing(), None)
            return
        if edges in shape.upserted:
            yield self._losing(draft, draft.upserts(edges, "id"))
        if edges in shape.deleted:
            yield self._losing(draft, draft.deletions(edges))

    def _losing(self, draft: Draft, going: str) -> _Touched:
        """The nodes, if they stay, that edges with these ids led from."""
        edges, nodes = self.edge.table_key, self.node.table_key
        before = draft.committed(
            edges, "id", "src", by="id", among=Place(going, "id"), reliance=Reliance.NONE
        )
        place = Place(before, "src")
        lost = among(
            exp.select(*aliased(id=column("src", "b"))).from_(table(before, "b")),
            column("id", "b"),
            going,
            "g",
        )
        losers = draft.define(lost.distinct())
        staying = []
        if nodes in draft.shape.upserted:
            staying.append(_ids(draft.upserts(nodes, "id")))
        left = draft.remaining(
            nodes, "id", by="id", among=place, replaced=False, reliance=Reliance.NONE
        )
        if left is not None:
            staying.append(_ids(left))
        if not staying:
            return _Touched(_nothing(), None)
        query = _without_position(losers, "id")
        query = among(query, column("id", "i"), draft.define(every(staying)), "k")
        return _Touched(query, place)

    def _edges(self, draft: Draft, touched: list[_Touched]) -> Iterator[exp.Select]:
        key = self.edge.table_key
        if key in draft.shape.upserted:
            yield _written(draft.upserts(key, "id", "src", POSITION))
        else:
            nothing = exp.Cast(this=exp.Null(), to=exp.DataType.build("TEXT"))
            yield exp.select(*aliased(id=nothing, src=nothing.copy(), o=no_position()))
        # One reading of the table for each way to be touched, so that each can be a lookup.
        for each in touched:
            left = draft.remaining(
                key,
                "id",
                "src",
                by="src",
                among=each.place,
                replaced=False,
                reliance=Reliance.NONE,
            )
            if left is not None:
                yield _left(left)


@dataclass(frozen=True, slots=True)
class _Touched:
    """Nodes to count the edges of: `id` and `o`, their position; and where the ids can be read."""

    query: exp.Select
    place: Place | None


def _breach(edge: EdgeType) -> Breach:
    return Breach(Rule.CARDINALITY, edge.name, ("src",))


def _described(
    edge: EdgeType, row: dict[str, object], allowed: str, to_origin: ToOrigin
) -> Violation:
    found = str(row["id"])
    message = (
        f"{edge.source} {shortened(found)} would have {row['count']} {edge.name}, "
        f"and must have {allowed}"
    )
    origin = origin_at(row["position"], to_origin)
    return Violation(_breach(edge), found, row["count"], origin, message)


def _written(relation: str) -> exp.Select:
    columns = aliased(id=column("id", "e"), src=column("src", "e"), o=position_of("e"))
    return exp.select(*columns).from_(table(relation, "e"))


def _left(name: str) -> exp.Select:
    columns = aliased(id=column("id", "e"), src=column("src", "e"), o=no_position())
    return exp.select(*columns).from_(table(name, "e"))


def _ids(name: str) -> exp.Select:
    return exp.select(*aliased(id=column("id", "n"))).from_(table(name, "n"))


def _without_position(name: str, at: str) -> exp.Select:
    columns = aliased(id=column(at, "i"), o=no_position())
    return exp.select(*columns).from_(table(name, "i"))


def _nothing() -> exp.Select:
    nowhere = exp.Cast(this=exp.Null(), to=exp.DataType.build("TEXT"))
    columns = aliased(id=nowhere, o=no_position())
    return exp.select(*columns).where(exp.false())
