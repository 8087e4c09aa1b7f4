"""Traversals as tables of ends: single hops, both directions, bound edges, and longer walks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

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
class EndPlace:
    """A place that ids of one end of a traversal are read from.

    Attributes:
        label: The type of the nodes, if the end has several.
        decides: Whether it holds all ids of nodes of that type, so that others may follow it.
    """

    place: Place
    label: str | None
    decides: bool


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
    source_places: tuple[EndPlace, ...] = ()
    destination_places: tuple[EndPlace, ...] = ()
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
    edge_columns = tuple(dict.fromkeys(["id", *columns]))
    is_labelled = len(traversal.steps) > 1
    parts: list[exp.Query] = []
    relations: list[str] = []
    for step in traversal.steps:
        stored = [stored_column(name) for name in columns]
        names = [*ENDPOINTS, "id", *(name for name in stored if name is not None)]
        relation = state.builder.scan(edges_of(step), names)
        relations.append(relation)
        type_ = state.catalog.edge_type(step.edge_type)
        local = filters if not is_labelled else [each for each in map(localized, filters) if each]
        state.seeds.extend(seeds_of(type_, relation, local, state.given))
        label = step.edge_type if is_labelled else None
        parts += _edge_rows(step, relation, edge_columns, label)
    table_ = state.builder.define(union(parts, distinct=False))
    return Ends(table_, edge_columns, *_places(traversal, relations))


def pair_ends(state: LoweringState, traversal: ir.Traversal) -> Ends:
    """One row per pair of nodes that one hop connects."""
    relations = [state.builder.scan(edges_of(step), ENDPOINTS) for step in traversal.steps]
    parts = [
        _pairs(state, step, relation)
        for step, relation in zip(traversal.steps, relations, strict=True)
    ]
    table_ = state.builder.define(union(parts, distinct=_may_coincide(state, traversal)))
    return Ends(table_, (), *_places(traversal, relations))


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
    # All nodes of a walk have one type, so labels matter at its ends only.
    plain = [replace(step, source=None, destination=None) for step in traversal.steps]
    if backward:
        plain = [replace(step, direction=REVERSED[step.direction]) for step in plain]
    relations = [state.builder.scan(edges_of(step), ENDPOINTS) for step in plain]
    parts = [_pairs(state, step, relation) for step, relation in zip(plain, relations, strict=True)]
    step_table = state.builder.define(union(parts, distinct=len(parts) > 1), reused=True)
    first = traversal.steps[0]
    labels = (first.destination, first.source) if backward else (first.source, first.destination)
    level = state.builder.define(_first_level(step_table, start, labels[0]))
    for hops in range(2, traversal.hops_max + 1):
        level = state.builder.define(_next_level(level, step_table, hops))
    both_ways = plain[0].direction is ir.Direction.BOTH
    is_single = len(plain) == 1
    source, destination = direction_ends(plain[0].direction)
    if start is not None and is_single:
        for place in start.places:
            by = ReachedFrom(
                place.relation, place.column, destination, traversal.hops_max, both_ways
            )
            state.builder.reduce(Reduction(relations[0], source, by))
    reached = None if both_ways or not is_single else Place(relations[0], destination)
    ends = (TO, FROM) if backward else (FROM, TO)
    within = _within_bounds(
        level, traversal.hops_min, ends, labels=(first.source, first.destination)
    )
    return Ends(state.builder.define(within), reached=reached)


REVERSED: Final = {
    ir.Direction.OUT: ir.Direction.IN,
    ir.Direction.IN: ir.Direction.OUT,
    ir.Direction.BOTH: ir.Direction.BOTH,
}
"""How edges are walked from the other end."""


def stored_column(name: str) -> str | None:
    """The stored column that a column of a variable of several types is; None for its type."""
    if name == ir.TYPE:
        return None
    return "id" if name == ir.LOCAL_ID else name


def labelled(id_: exp.Expr, label: str | None) -> exp.Expr:
    """An id as a variable of several types has it."""
    if label is None:
        return id_
    prefix = exp.Literal.string(f"{label}:")
    return exp.Paren(this=exp.DPipe(this=prefix, expression=id_, safe=True))


def typed_column(name: str, alias: str, label: str | None) -> exp.Expr:
    """A column of a row of one of several types; without a label, of the only one."""
    if label is None:
        return column(name, alias)
    if name == ir.TYPE:
        return exp.Literal.string(label)
    return labelled(column("id", alias), label) if name == "id" else typed_stored(name, alias)


def typed_stored(name: str, alias: str) -> exp.Expr:
    """A stored column, by the name that it has for a variable of several types."""
    return column(stored_column(name) or name, alias)


def localized(condition: ir.Filter) -> ir.Filter | None:
    """A filter on a variable of several types as one on the rows of one; None otherwise."""

    def local(operand: ir.Operand) -> ir.Operand:
        if isinstance(operand, ir.ColumnValue) and operand.column == ir.LOCAL_ID:
            return replace(operand, column="id")
        return operand

    if not isinstance(condition, ir.Comparison):
        return None
    sides = condition.left, condition.right
    if any(isinstance(side, ir.ColumnValue) and side.column in ("id", ir.TYPE) for side in sides):
        return None
    return ir.Comparison(local(condition.left), condition.operator, local(condition.right))


def union(parts: Sequence[exp.Query], *, distinct: bool) -> exp.Query:
    """The rows of all parts."""
    return parts[0] if len(parts) == 1 else exp.union(*parts, distinct=distinct)


def edges_of(step: ir.EdgeStep) -> TableKey:
    """The table of the edges of a step."""
    return TableKey(TableKind.EDGE, step.edge_type)


def direction_ends(direction: ir.Direction) -> tuple[str, str]:
    """The columns of an edge that a step starts from, and that it leads to."""
    return ("dst", "src") if direction is ir.Direction.IN else ("src", "dst")


def _edge_rows(
    step: ir.EdgeStep, relation: str, edge_columns: Sequence[str], label: str | None
) -> list[exp.Query]:
    """The edges of a step, and if it is walked both ways, those walked backwards."""
    source, destination = direction_ends(step.direction)
    forward = _edges(step, relation, (source, destination), edge_columns, label)
    if step.direction is not ir.Direction.BOTH:
        return [forward]
    backward = _edges(step, relation, (destination, source), edge_columns, label).where(
        exp.NEQ(this=column(source, "e"), expression=column(destination, "e"))
    )
    return [forward, backward]


def _edges(
    step: ir.EdgeStep,
    relation: str,
    ends: tuple[str, str],
    edge_columns: Sequence[str] = (),
    label: str | None = None,
) -> exp.Select:
    source, destination = (column(name, "e") for name in ends)
    columns = [
        named(labelled(source, step.source), FROM),
        named(labelled(destination, step.destination), TO),
    ]
    # Edge columns are numbered, because a property may have the name of an end.
    columns += [
        named(typed_column(name, "e", label), f"c{place}")
        for place, name in enumerate(edge_columns)
    ]
    return exp.select(*columns).from_(table(relation, "e"))


def _pairs(state: LoweringState, step: ir.EdgeStep, relation: str) -> exp.Query:
    source, destination = direction_ends(step.direction)
    forward = _edges(step, relation, (source, destination))
    if step.direction is ir.Direction.BOTH:
        return exp.union(forward, _edges(step, relation, (destination, source)), distinct=True)
    edge_type = state.catalog.edge_type(step.edge_type)
    has_no_parallels = any(
        set(columns) <= set(ENDPOINTS) for columns in (edge_type.key, *edge_type.uniques) if columns
    )
    return forward if has_no_parallels else forward.distinct()


def _may_coincide(state: LoweringState, traversal: ir.Traversal) -> bool:
    """Whether edges of two types may connect the same pair of nodes."""
    ends = []
    for step in traversal.steps:
        edge = state.catalog.edge_type(step.edge_type)
        pair = edge.source, edge.target
        ends.append(pair[::-1] if step.direction is ir.Direction.IN else pair)
    return len(set(ends)) < len(ends)


def _places(
    traversal: ir.Traversal, relations: Sequence[str]
) -> tuple[tuple[EndPlace, ...], tuple[EndPlace, ...]]:
    """The places of both ends; none where edges are walked both ways."""
    if any(step.direction is ir.Direction.BOTH for step in traversal.steps):
        return (), ()
    walked = list(zip(traversal.steps, relations, strict=True))
    labels = [step.source for step in traversal.steps]
    others = [step.destination for step in traversal.steps]
    return _end_places(walked, labels, 0), _end_places(walked, others, 1)


def _end_places(
    walked: Sequence[tuple[ir.EdgeStep, str]], labels: Sequence[str | None], end: int
) -> tuple[EndPlace, ...]:
    counts = Counter(labels)
    return tuple(
        EndPlace(Place(relation, direction_ends(step.direction)[end]), label, counts[label] == 1)
        for (step, relation), label in zip(walked, labels, strict=True)
    )


def _first_level(step: str, start: Start | None, label: str | None) -> exp.Select:
    one = named(exp.Literal.number(1), HOPS)
    level = exp.select(column(FROM, "s"), column(TO, "s"), one).from_(table(step, "s"))
    if start is None:
        return level
    ids = exp.select(named(column(start.column, "i"), "x")).from_(table(start.table, "i"))
    on = exp.EQ(this=column("x", "o"), expression=labelled(column(FROM, "s"), label))
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


def _within_bounds(
    level: str,
    hops_min: int,
    ends: tuple[str, str],
    labels: tuple[str | None, str | None],
) -> exp.Select:
    hops = column(HOPS, "l")
    is_far_enough = exp.GTE(this=hops, expression=exp.Literal.number(hops_min))
    leads_on = exp.NEQ(this=column(FROM, "l"), expression=column(TO, "l"))
    is_loop = exp.EQ(this=hops.copy(), expression=exp.Literal.number(1))
    return (
        exp.select(
            named(labelled(column(ends[0], "l"), labels[0]), FROM),
            named(labelled(column(ends[1], "l"), labels[1]), TO),
        )
        .from_(table(level, "l"))
        .where(is_far_enough, exp.or_(leads_on, is_loop))
    )
