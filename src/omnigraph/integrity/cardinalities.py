"""Cardinality rules: how many edges a source has after the delta.

Only sources that a delta touches are counted. The graph was valid before, so a maximum can be
exceeded only where edges are inserted, and a minimum missed only where edges are deleted or nodes
inserted.
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
    alias_columns,
    no_position,
    position_of,
    semi_join,
    union_all,
)
from omnigraph.integrity.violations import (
    Breach,
    Rule,
    ToOrigin,
    Violation,
    no_origin,
    origin_at,
    shorten,
)
from omnigraph.model.types import Scalar
from omnigraph.relational.plans import Place
from omnigraph.relational.trees import column, table
from omnigraph.schema.catalog import EdgeType, NodeType


@dataclass(frozen=True, slots=True)
class CardinalityMax:
    """No source has more edges than the type allows."""

    edge: EdgeType
    maximum: int

    @property
    def breach(self) -> Breach:
        """The breach of an offender."""
        return _breach(self.edge)

    def applies(self, shape: Shape) -> bool:
        """Whether a delta of this shape could break it."""
        return self.edge.table_key in shape.upserted

    def offenders(self, shape: Shape) -> Offenders:
        """The sources of the delta's edges that have too many."""
        draft = Draft(shape)
        key = self.edge.table_key
        written = draft.upserts(key, "id", "src", POSITION)
        edges = [_written_edges(written)]
        remaining = draft.remaining_rows(
            key,
            "id",
            "src",
            by="src",
            among=Place(written, "src"),
            replaced=False,
            reliance=Reliance.ABSENCE,
        )
        if remaining is not None:
            edges.append(
                semi_join(_remaining_edges(remaining), column("src", "e"), written, "w", at="src")
            )
        count = exp.Count(this=exp.Distinct(expressions=[column("id", "a")]))
        query = (
            exp.select(
                *alias_columns(
                    position=exp.Min(this=column("o", "a")),
                    id=column("src", "a"),
                    count=count,
                )
            )
            .from_(table(draft.define(union_all(edges)), "a"))
            .where(exp.Not(this=exp.Is(this=column("src", "a"), expression=exp.Null())))
            .group_by(column("src", "a"))
            .having(exp.GT(this=count.copy(), expression=exp.Literal.number(self.maximum)))
        )
        return draft.offenders(query, ("count", Scalar.I64))

    def describe(self, row: dict[str, object], to_origin: ToOrigin = no_origin) -> Violation:
        """The violation for a row of `offenders`."""
        return _describe(self.edge, row, f"at most {self.maximum}", to_origin)


@dataclass(frozen=True, slots=True)
class CardinalityMin:
    """No node of the source type has fewer edges than the type requires.

    It relies on no other writer: a node that is inserted has only edges of its own write, and
    a writer that deletes an edge counts the edges that its node keeps.
    """

    edge: EdgeType
    node: NodeType
    minimum: int

    @property
    def breach(self) -> Breach:
        """The breach of an offender."""
        return _breach(self.edge)

    def applies(self, shape: Shape) -> bool:
        """Whether a delta of this shape could break it."""
        edges, nodes = self.edge.table_key, self.node.table_key
        return edges in shape.upserted | shape.deleted | shape.overwritten or (
            nodes in shape.upserted
        )

    def offenders(self, shape: Shape) -> Offenders:
        """The nodes that lost edges or were inserted, and have too few."""
        draft = Draft(shape)
        touched = list(self._touched_nodes(draft))
        sources = draft.define(union_all([nodes.query for nodes in touched]))
        edges = draft.define(union_all(list(self._edges(draft, touched))))
        count = exp.Count(this=exp.Distinct(expressions=[column("id", "a")]))
        query = (
            exp.select(
                *alias_columns(
                    position=exp.Max(this=column("o", "s")), id=column("id", "s"), count=count
                )
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

    def describe(self, row: dict[str, object], to_origin: ToOrigin = no_origin) -> Violation:
        """The violation for a row of `offenders`."""
        return _describe(self.edge, row, f"at least {self.minimum}", to_origin)

    def _touched_nodes(self, draft: Draft) -> Iterator[_TouchedNodes]:
        edges, nodes = self.edge.table_key, self.node.table_key
        shape = draft.shape
        if nodes in shape.upserted:
            written = draft.upserts(nodes, "id", POSITION)
            columns = alias_columns(id=column("id", "n"), o=position_of("n"))
            is_there = exp.Not(this=exp.Is(this=column("id", "n"), expression=exp.Null()))
            query = exp.select(*columns).from_(table(written, "n")).where(is_there)
            yield _TouchedNodes(query, Place(written, "id"))
        if edges in shape.overwritten:
            # Every node may have lost its edges.
            remaining = draft.remaining_rows(
                nodes, "id", by="id", among=None, replaced=False, reliance=Reliance.NONE
            )
            if remaining is not None:
                yield _TouchedNodes(_without_position(remaining, "id"), None)
            elif nodes not in shape.upserted:
                yield _TouchedNodes(_no_nodes(), None)
            return
        if edges in shape.upserted:
            yield self._nodes_losing_edges(draft, draft.upserts(edges, "id"))
        if edges in shape.deleted:
            yield self._nodes_losing_edges(draft, draft.deletions(edges))

    def _nodes_losing_edges(self, draft: Draft, edge_ids: str) -> _TouchedNodes:
        """The remaining nodes that edges with these ids led from."""
        edges, nodes = self.edge.table_key, self.node.table_key
        before = draft.committed_rows(
            edges, "id", "src", by="id", among=Place(edge_ids, "id"), reliance=Reliance.NONE
        )
        place = Place(before, "src")
        sources = semi_join(
            exp.select(*alias_columns(id=column("src", "b"))).from_(table(before, "b")),
            column("id", "b"),
            edge_ids,
            "g",
        )
        source_ids = draft.define(sources.distinct())
        remaining_ids = []
        if nodes in draft.shape.upserted:
            remaining_ids.append(_ids(draft.upserts(nodes, "id")))
        remaining = draft.remaining_rows(
            nodes, "id", by="id", among=place, replaced=False, reliance=Reliance.NONE
        )
        if remaining is not None:
            remaining_ids.append(_ids(remaining))
        if not remaining_ids:
            return _TouchedNodes(_no_nodes(), None)
        query = _without_position(source_ids, "id")
        query = semi_join(query, column("id", "i"), draft.define(union_all(remaining_ids)), "k")
        return _TouchedNodes(query, place)

    def _edges(self, draft: Draft, touched: list[_TouchedNodes]) -> Iterator[exp.Select]:
        key = self.edge.table_key
        if key in draft.shape.upserted:
            yield _written_edges(draft.upserts(key, "id", "src", POSITION))
        else:
            no_id = exp.Cast(this=exp.Null(), to=exp.DataType.build("TEXT"))
            yield exp.select(*alias_columns(id=no_id, src=no_id.copy(), o=no_position()))
        # One scan of the table for each way to be touched, so that each can be a lookup.
        for nodes in touched:
            remaining = draft.remaining_rows(
                key,
                "id",
                "src",
                by="src",
                among=nodes.place,
                replaced=False,
                reliance=Reliance.NONE,
            )
            if remaining is not None:
                yield _remaining_edges(remaining)


@dataclass(frozen=True, slots=True)
class _TouchedNodes:
    """Nodes whose edges are counted: `id` and `o`, their position; and where to read the ids."""

    query: exp.Select
    place: Place | None


def _breach(edge: EdgeType) -> Breach:
    return Breach(Rule.CARDINALITY, edge.name, ("src",))


def _describe(
    edge: EdgeType, row: dict[str, object], allowed: str, to_origin: ToOrigin
) -> Violation:
    node_id = str(row["id"])
    message = (
        f"{edge.source} {shorten(node_id)} would have {row['count']} {edge.name}, "
        f"but must have {allowed}"
    )
    origin = origin_at(row["position"], to_origin)
    return Violation(_breach(edge), node_id, row["count"], origin, message)


def _written_edges(relation: str) -> exp.Select:
    columns = alias_columns(id=column("id", "e"), src=column("src", "e"), o=position_of("e"))
    return exp.select(*columns).from_(table(relation, "e"))


def _remaining_edges(name: str) -> exp.Select:
    columns = alias_columns(id=column("id", "e"), src=column("src", "e"), o=no_position())
    return exp.select(*columns).from_(table(name, "e"))


def _ids(name: str) -> exp.Select:
    return exp.select(*alias_columns(id=column("id", "n"))).from_(table(name, "n"))


def _without_position(name: str, at: str) -> exp.Select:
    columns = alias_columns(id=column(at, "i"), o=no_position())
    return exp.select(*columns).from_(table(name, "i"))


def _no_nodes() -> exp.Select:
    no_id = exp.Cast(this=exp.Null(), to=exp.DataType.build("TEXT"))
    columns = alias_columns(id=no_id, o=no_position())
    return exp.select(*columns).where(exp.false())
