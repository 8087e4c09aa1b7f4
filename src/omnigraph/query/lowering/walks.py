"""Traversals as tables of ends: single hops, both directions, bound edges, and longer walks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from omnigraph.choices import TableKind
from omnigraph.model.tables import TableKey
from omnigraph.query import ir
from omnigraph.query.lowering.keys import seeds_of
from omnigraph.query.lowering.state import LoweringState
from omnigraph.relational.plans import Place, ReachedFrom, Reduction
from omnigraph.relational.trees import column, named, subquery, table
from omnigraph.schema.catalog import ENDPOINTS

FROM, TO = "a", "b"
"""The columns of a table of ends: the traversal's source and its destination."""

HOPS = "h"
"""The least number of hops from one to the other, in the intermediate tables of a walk."""


@dataclass(frozen=True, slots=True)
class Start:
    """The start of a walk: a table whose `column` holds the ids, and the places those are from."""

    table: str
    column: str
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Ends:
    """A table of ends.

    Attributes:
        edge_columns: The columns of the bound edge, by their own names.
        source_places: The places that the ids of the source are read from, to reduce what is read.
        reached: A place that holds every id a walk reaches, and also the ids on its way: conditions
            on the walk's end must not reduce it.
    """

    table: str
    edge_columns: tuple[str, ...] = ()
    source_places: tuple[Place, ...] = ()
    destination_places: tuple[Place, ...] = ()
    reached: Place | None = None


def edge_ends(
    state: LoweringState,
    traversal: ir.Traversal,
    columns: Sequence[str],
    filters: Sequence[ir.Filter],
) -> Ends:
    """One row per edge, with the columns that the query uses.

    Args:
        filters: Filters on the edge alone, which the caller applies: no row that fails matters.
    """
    relation = state.builder.scan(_key(traversal), [*ENDPOINTS, "id", *columns])
    type_ = state.catalog.edge_type(traversal.edge_type)
    state.seeds.extend(seeds_of(type_, relation, filters, state.given))
    edge_columns = tuple(dict.fromkeys(["id", *columns]))
    source, destination = _ends(traversal.direction)
    forward = _edges(relation, source, destination, edge_columns)
    if traversal.direction is not ir.Direction.BOTH:
        places = Place(relation, source), Place(relation, destination)
        return Ends(state.builder.define(forward), edge_columns, (places[0],), (places[1],))
    backward = _edges(relation, destination, source, edge_columns).where(
        exp.NEQ(this=column(source, "e"), expression=column(destination, "e"))
    )
    return Ends(state.builder.define(exp.union(forward, backward, distinct=False)), edge_columns)


def pair_ends(state: LoweringState, traversal: ir.Traversal) -> Ends:
    """One row per pair of nodes that one hop connects."""
    relation = state.builder.scan(_key(traversal), ENDPOINTS)
    source, destination = _ends(traversal.direction)
    step = state.builder.define(_step(state, traversal, relation, source, destination))
    if traversal.direction is ir.Direction.BOTH:
        return Ends(step)
    return Ends(
        step,
        source_places=(Place(relation, source),),
        destination_places=(Place(relation, destination),),
    )


def walk_ends(
    state: LoweringState, traversal: ir.Traversal, start: Start | None, *, backward: bool
) -> Ends:
    """One row per pair whose least number of hops is within the traversal's bounds.

    Breadth first, a level at a time: each level is the pairs reached so far with their least number
    of hops, and only the pairs of the last level are extended. Each level names the previous one
    once, so the size of the plan is linear in the number of hops and not exponential.

    Args:
        start: The ids to walk from; every node of the type when None.
        backward: Walk from the destination against the edges; the pairs are the same.
    """
    relation = state.builder.scan(_key(traversal), ENDPOINTS)
    source, destination = _ends(traversal.direction)
    if backward:
        source, destination = destination, source
    step = state.builder.define(_step(state, traversal, relation, source, destination), reused=True)
    level = state.builder.define(_first_level(step, start))
    for hops in range(2, traversal.hops_max + 1):
        level = state.builder.define(_next_level(level, step, hops))
    both_ways = traversal.direction is ir.Direction.BOTH
    if start is not None:
        for place in start.places:
            by = ReachedFrom(
                place.relation, place.column, destination, traversal.hops_max, both_ways
            )
            state.builder.reduce(Reduction(relation, source, by))
    ends = (TO, FROM) if backward else (FROM, TO)
    reached = None if both_ways else Place(relation, destination)
    return Ends(
        state.builder.define(_within_bounds(level, traversal.hops_min, ends)), reached=reached
    )


def _key(traversal: ir.Traversal) -> TableKey:
    return TableKey(TableKind.EDGE, traversal.edge_type)


def _ends(direction: ir.Direction) -> tuple[str, str]:
    return ("dst", "src") if direction is ir.Direction.IN else ("src", "dst")


def _edges(relation: str, source: str, destination: str, edge_columns: Sequence[str]) -> exp.Select:
    ends = named(column(source, "e"), FROM), named(column(destination, "e"), TO)
    # Edge columns are numbered, because a property may have the name of an end.
    others = [named(column(name, "e"), f"c{place}") for place, name in enumerate(edge_columns)]
    return exp.select(*ends, *others).from_(table(relation, "e"))


def _step(
    state: LoweringState, traversal: ir.Traversal, relation: str, source: str, destination: str
) -> exp.Query:
    forward = _edges(relation, source, destination, ())
    if traversal.direction is ir.Direction.BOTH:
        return exp.union(forward, _edges(relation, destination, source, ()), distinct=True)
    edge_type = state.catalog.edge_type(traversal.edge_type)
    has_no_parallels = any(
        set(columns) <= set(ENDPOINTS) for columns in (edge_type.key, *edge_type.uniques) if columns
    )
    return forward if has_no_parallels else forward.distinct()


def _first_level(step: str, start: Start | None) -> exp.Select:
    one = named(exp.Literal.number(1), HOPS)
    level = exp.select(column(FROM, "s"), column(TO, "s"), one).from_(table(step, "s"))
    if start is None:
        return level
    ids = exp.select(named(column(start.column, "i"), "x")).from_(table(start.table, "i"))
    on = exp.EQ(this=column("x", "o"), expression=column(FROM, "s"))
    return level.join(subquery(ids.distinct(), "o"), on=on)


def _next_level(level: str, step: str, hops: int) -> exp.Select:
    """The pairs reached so far, and those that one more hop reaches from the last level."""
    was_last = exp.EQ(this=column(HOPS, "l"), expression=exp.Literal.number(hops - 1))
    leads_on = exp.EQ(this=column(TO, "l"), expression=column(FROM, "s"))
    # Each pair yields two rows: the pair itself, and the pair extended by the hop.
    ways = exp.values([(0,), (1,)], alias="w", columns=["onward"])
    stays = exp.EQ(this=exp.column("onward", table="w"), expression=exp.Literal.number(0))
    reached = exp.Case(ifs=[exp.If(this=stays, true=column(TO, "l"))], default=column(TO, "s"))
    hops_taken = exp.Case(
        ifs=[exp.If(this=stays.copy(), true=column(HOPS, "l"))], default=exp.Literal.number(hops)
    )
    both = (
        exp.select(column(FROM, "l"), named(reached, TO), named(hops_taken, HOPS))
        .from_(table(level, "l"))
        .join(table(step, "s"), on=exp.and_(leads_on, was_last), join_type="left")
        .join(ways, join_type="cross")
    )
    least = named(exp.Min(this=column(HOPS, "b")), HOPS)
    return (
        exp.select(column(FROM, "b"), column(TO, "b"), least)
        .from_(subquery(both, "b"))
        .where(exp.Not(this=exp.Is(this=column(TO, "b"), expression=exp.Null())))
        .group_by(column(FROM, "b"), column(TO, "b"))
    )


def _within_bounds(level: str, hops_min: int, ends: tuple[str, str]) -> exp.Select:
    hops = column(HOPS, "l")
    is_far_enough = exp.GTE(this=hops, expression=exp.Literal.number(hops_min))
    leads_on = exp.NEQ(this=column(FROM, "l"), expression=column(TO, "l"))
    is_loop = exp.EQ(this=hops.copy(), expression=exp.Literal.number(1))
    return (
        exp.select(named(column(ends[0], "l"), FROM), named(column(ends[1], "l"), TO))
        .from_(table(level, "l"))
        .where(is_far_enough, exp.or_(leads_on, is_loop))
    )
