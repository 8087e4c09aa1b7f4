"""Paths as tables of ends: level by level, the best walk to each node that was reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from omnigraph.choices import TableKind
from omnigraph.model.names import TypeName
from omnigraph.model.tables import TableKey
from omnigraph.model.types import Scalar
from omnigraph.query import ir
from omnigraph.query.lowering.state import LoweringState
from omnigraph.query.lowering.walks import (
    FROM,
    HOPS,
    REVERSED,
    TO,
    EndPlace,
    Ends,
    Start,
    direction_ends,
    edges_of,
    labelled,
    union,
)
from omnigraph.relational.expressions import WIDE, sql_type, without_negative_zero
from omnigraph.relational.patterns import LinkWay
from omnigraph.relational.plans import PathSearch, Place, ReachedFrom, Reduction
from omnigraph.relational.trees import column, named, subquery, table
from omnigraph.schema.catalog import ENDPOINTS, Catalog

_NODES: Final = "n"
_COST: Final = "c"
_WEIGHT: Final = "w"
_RANK: Final = "k"
"""The columns of a level, beside its ends and hops, and of its candidates."""


def path_ends(
    state: LoweringState,
    traversal: ir.Traversal,
    path: ir.Path,
    columns: Sequence[str],
    start: Start | None,
    *,
    backward: bool,
) -> Ends:
    """One row per pair that a best walk connects, with the columns of it that the query uses.

    Each level is the pairs reached so far with their best walks, and only walks that the last level
    found are extended: no other has become better. Each level names the one before it once.

    Args:
        start: The ids to walk from; every node of the type when None.
        backward: Walk from the destination against the edges, which has no weight.
    """
    levels = _Levels(
        has_nodes=ir.NODES in columns, is_weighted=path.weight is not None, backward=backward
    )
    steps = [replace(step, source=None, destination=None) for step in traversal.steps]
    if backward:
        steps = [replace(step, direction=REVERSED[step.direction]) for step in steps]
    weights = [] if path.weight is None else [path.weight]
    relations = [state.builder.scan(edges_of(step), [*ENDPOINTS, *weights]) for step in steps]
    parts = [
        arcs
        for step, relation in zip(steps, relations, strict=True)
        for arcs in _arcs(step, relation, path)
    ]
    arcs = state.builder.define(_least(parts, path), reused=True)
    first = traversal.steps[0]
    labels = (first.destination, first.source) if backward else (first.source, first.destination)
    level = state.builder.define(levels.first(arcs, start, labels[0]))
    for hops in range(2, traversal.hops_max + 1):
        level = state.builder.define(levels.next(level, arcs, hops))
    both_ways = steps[0].direction is ir.Direction.BOTH
    source, destination = direction_ends(steps[0].direction)
    if start is not None and len(steps) == 1:
        for place in start.places:
            by = ReachedFrom(
                place.relation, place.column, destination, traversal.hops_max, both_ways
            )
            state.builder.reduce(Reduction(relations[0], source, by))
    reached = None if both_ways or len(steps) > 1 else Place(relations[0], destination)
    selected = levels.within_bounds(level, traversal, columns)
    return Ends(state.builder.define(selected), tuple(columns), reached=reached)


def given_path_ends(state: LoweringState, path: ir.Path, columns: Sequence[str]) -> Ends:
    """The same as a relation that is given."""
    relation = state.builder.give()
    state.given_paths[path.variable] = relation, tuple(columns)
    source, destination = (
        (EndPlace(Place(relation, end), None, decides=True),) for end in (FROM, TO)
    )
    return Ends(relation, tuple(columns), source, destination)


def findable_paths(block: ir.Block, catalog: Catalog) -> dict[str, ir.Traversal]:
    """The traversals of a block, by their paths, that an engine may walk by other means.

    These walk edges of one type between nodes of one type.
    """
    return {
        traversal.path.variable: traversal
        for traversal in block.traversals
        if traversal.path is not None and _is_findable(traversal.steps, catalog)
    }


def _is_findable(steps: Sequence[ir.EdgeStep], catalog: Catalog) -> bool:
    first, *others = steps
    edge = catalog.edge_type(first.edge_type)
    is_labelled = first.source is not None or first.destination is not None
    return not others and not is_labelled and edge.source == edge.target


def path_search(
    traversal: ir.Traversal, relation: str, columns: tuple[str, ...], catalog: Catalog
) -> PathSearch:
    """What an engine has to find for such a traversal."""
    (step,) = traversal.steps
    assert traversal.path is not None, "it has a path"
    nodes = TypeName(catalog.edge_type(step.edge_type).source)
    return PathSearch(
        relation,
        edges_of(step),
        TableKey(TableKind.NODE, nodes),
        LinkWay(step.direction.value),
        (traversal.hops_min, traversal.hops_max),
        traversal.path.weight,
        columns,
    )


def _arcs(step: ir.EdgeStep, relation: str, path: ir.Path) -> list[exp.Select]:
    """The edges of a step from one end to the other, both ways if it is walked so."""
    ways = [direction_ends(step.direction)]
    if step.direction is ir.Direction.BOTH:
        ways.append(ways[0][::-1])
    return [_weigh(relation, ends, path) for ends in ways]


def _weigh(relation: str, ends: tuple[str, str], path: ir.Path) -> exp.Select:
    query = exp.select(named(column(ends[0], "e"), FROM), named(column(ends[1], "e"), TO))
    query = query.from_(table(relation, "e"))
    if path.weight is None or path.type is None:
        return query
    weight = column(path.weight, "e")
    kind = sql_type(Scalar.F64) if path.type.is_float else exp.DataType.build(WIDE)
    is_weight: list[exp.Expr] = [exp.GTE(this=weight, expression=exp.Literal.number(0))]
    if path.type.is_float:
        # What is not a number is greater than infinity.
        endless = exp.Cast(this=exp.Literal.string("Infinity"), to=sql_type(Scalar.F64))
        is_weight.append(exp.LT(this=weight.copy(), expression=endless))
    value = without_negative_zero(exp.Cast(this=weight.copy(), to=kind), path.type)
    return query.select(named(value, _WEIGHT)).where(*is_weight)


def _least(parts: Sequence[exp.Select], path: ir.Path) -> exp.Query:
    """Each pair once, with its least weight."""
    if path.weight is None:
        return parts[0].distinct() if len(parts) == 1 else union(parts, distinct=True)
    every = subquery(union(parts, distinct=False), "u")
    least = named(exp.Min(this=column(_WEIGHT, "u")), _WEIGHT)
    ends = [column(FROM, "u"), column(TO, "u")]
    return exp.select(*ends, least).from_(every).group_by(*(end.copy() for end in ends))


@dataclass(frozen=True, slots=True)
class _Levels:
    """The tables of best walks, by what of a walk is used."""

    has_nodes: bool
    is_weighted: bool
    backward: bool

    @property
    def _names(self) -> list[str]:
        return [*([_COST] if self.is_weighted else []), *([_NODES] if self.has_nodes else [])]

    def first(self, arcs: str, start: Start | None, label: str | None) -> exp.Select:
        """The walks of one edge."""
        one = named(exp.Literal.number(1), HOPS)
        query = exp.select(column(FROM, "s"), column(TO, "s"), one).from_(table(arcs, "s"))
        if self.is_weighted:
            query = query.select(named(column(_WEIGHT, "s"), _COST))
        if self.has_nodes:
            ends = [column(FROM, "s"), column(TO, "s")]
            ends = ends[::-1] if self.backward else ends
            query = query.select(named(exp.Array(expressions=ends), _NODES))
        if start is None:
            return query
        ids = exp.select(named(column(start.column, "i"), "x")).from_(table(start.table, "i"))
        on = exp.EQ(this=column("x", "o"), expression=labelled(column(FROM, "s"), label))
        return query.join(subquery(ids.distinct(), "o"), on=on)

    def next(self, level: str, arcs: str, hops: int) -> exp.Select:
        """The best of the walks so far, and of those that one more edge makes of the last ones."""
        was_last = exp.EQ(this=column(HOPS, "l"), expression=exp.Literal.number(hops - 1))
        leads_on = exp.EQ(this=column(TO, "l"), expression=column(FROM, "s"))
        # A node leads to itself by a loop only, which is of no use on the way.
        is_onward = [
            exp.NEQ(this=column(FROM, "l"), expression=column(TO, each)) for each in ("l", "s")
        ]
        # Each walk yields two rows: the walk itself, and the walk extended by the edge.
        ways = exp.values([(0,), (1,)], alias="w", columns=["onward"])
        stays = exp.EQ(this=exp.column("onward", table="w"), expression=exp.Literal.number(0))

        def choose(stayed: exp.Expr, moved: exp.Expr) -> exp.Expr:
            return exp.Case(ifs=[exp.If(this=stays.copy(), true=stayed)], default=moved)

        both = exp.select(
            column(FROM, "l"),
            named(choose(column(TO, "l"), column(TO, "s")), TO),
            named(choose(column(HOPS, "l"), exp.Literal.number(hops)), HOPS),
        )
        if self.is_weighted:
            total = exp.Add(this=column(_COST, "l"), expression=column(_WEIGHT, "s"))
            both = both.select(named(choose(column(_COST, "l"), total), _COST))
        if self.has_nodes:
            both = both.select(named(choose(column(_NODES, "l"), self._longer()), _NODES))
        both = (
            both.from_(table(level, "l"))
            .join(table(arcs, "s"), on=exp.and_(leads_on, was_last, *is_onward), join_type="left")
            .join(ways, join_type="cross")
        )
        return self._best(both)

    def _longer(self) -> exp.Expr:
        node = exp.Array(expressions=[column(TO, "s")])
        parts = [column(_NODES, "l"), node]
        first, second = parts[::-1] if self.backward else parts
        return exp.ArrayConcat(this=first, expressions=[second])

    def _best(self, candidates: exp.Select) -> exp.Select:
        """The best walk of each pair: by cost, then by edges, then by nodes."""
        is_walk = exp.Not(this=exp.Is(this=column(TO, "b"), expression=exp.Null()))
        ends = [column(FROM, "b"), column(TO, "b")]
        walks = exp.select(*ends).from_(subquery(candidates, "b")).where(is_walk)
        if not self._names:
            least = named(exp.Min(this=column(HOPS, "b")), HOPS)
            return walks.select(least).group_by(*(end.copy() for end in ends))
        keys = [*([_COST] if self.is_weighted else []), HOPS]
        keys += [_NODES] if self.has_nodes else []
        order = exp.Order(expressions=[exp.Ordered(this=column(name, "b")) for name in keys])
        rank = exp.Window(
            this=exp.RowNumber(), partition_by=[end.copy() for end in ends], order=order
        )
        names = [HOPS, *self._names]
        walks = walks.select(*(column(name, "b") for name in names), named(rank, _RANK))
        is_first = exp.EQ(this=column(_RANK, "r"), expression=exp.Literal.number(1))
        kept = [column(name, "r") for name in (FROM, TO, *names)]
        return exp.select(*kept).from_(subquery(walks, "r")).where(is_first)

    def within_bounds(
        self, level: str, traversal: ir.Traversal, columns: Sequence[str]
    ) -> exp.Select:
        """The pairs whose walks have enough edges; a node is paired with itself by a loop only."""
        hops = column(HOPS, "l")
        is_far_enough = exp.GTE(this=hops, expression=exp.Literal.number(traversal.hops_min))
        leads_on = exp.NEQ(this=column(FROM, "l"), expression=column(TO, "l"))
        is_loop = exp.EQ(this=hops.copy(), expression=exp.Literal.number(1))
        ends = (TO, FROM) if self.backward else (FROM, TO)
        first = traversal.steps[0]
        values = {
            ir.LENGTH: exp.Cast(this=hops.copy(), to=sql_type(Scalar.I64)),
            ir.NODES: column(_NODES, "l"),
            ir.COST: column(_COST, "l"),
        }
        return (
            exp.select(
                named(labelled(column(ends[0], "l"), first.source), FROM),
                named(labelled(column(ends[1], "l"), first.destination), TO),
                *(named(values[name], f"c{place}") for place, name in enumerate(columns)),
            )
            .from_(table(level, "l"))
            .where(is_far_enough, exp.or_(leads_on, is_loop))
        )
