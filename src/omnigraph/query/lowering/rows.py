"""Blocks as tables of rows: joins bindings and traversals, filters, and subtracts negations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from omnigraph.choices import TableKind
from omnigraph.model.tables import TableKey
from omnigraph.query import ir
from omnigraph.query.lowering.elimination import ColumnSum, Elimination, Message, variables_in
from omnigraph.query.lowering.keys import seeds_of
from omnigraph.query.lowering.operands import Scope, filter_tree
from omnigraph.query.lowering.searching import passes, search_of
from omnigraph.query.lowering.state import LoweringState
from omnigraph.query.lowering.usage import Use, uses_of_block
from omnigraph.query.lowering.walks import (
    FROM,
    TO,
    Ends,
    Start,
    edge_ends,
    pair_ends,
    walk_ends,
)
from omnigraph.query.lowering.weights import WEIGHT, own, passed_on, product, sum_weights
from omnigraph.relational.plans import Place
from omnigraph.relational.trees import column, named, subquery, table


@dataclass(frozen=True, slots=True)
class Rows:
    """A table of rows: the column of each used value, and the places its ids were read from.

    Attributes:
        weight: The column with the number of rows that each row stands for; None for 1.
        carried: The columns with sums over those rows.
        scores: The columns with the scores of rankings.
    """

    table: str
    columns: Mapping[Use, str]
    places: Mapping[str, tuple[Place, ...]]
    weight: str | None = None
    carried: Mapping[ColumnSum, str] = field(default_factory=dict)
    scores: Mapping[ir.Ranking, str] = field(default_factory=dict)

    def scope(self, alias: str) -> Scope:
        """The values of variables as columns of this table under an alias."""
        return {use: column(name, alias) for use, name in self.columns.items()}

    def distinct_columns(self, uses: Iterable[Use], state: LoweringState) -> Rows:
        """The distinct values of a few columns."""
        columns = {use: self.columns[use] for use in sorted(uses)}
        values = [column(name, "o") for name in columns.values()]
        query = exp.select(*values).from_(table(self.table, "o")).distinct()
        variables = {variable for variable, _ in columns}
        places = {name: self.places.get(name, ()) for name in variables}
        return Rows(state.builder.define(query, reused=True), columns, places)


def block_rows(
    state: LoweringState,
    block: ir.Block,
    uses: frozenset[Use],
    *,
    outer: Rows | None = None,
    elimination: Elimination | None = None,
) -> Rows:
    """The rows of a block, for each row of the variables outside it.

    Args:
        uses: The columns that the block and later steps use of the variables bound here.
        elimination: Of this block: which variables are left, and the messages for the others.
    """
    joins = _Joins(state, block, uses, outer, elimination)
    joins.run()
    rows = joins.rows()
    for negation in block.negations:
        rows = _subtract(state, rows, negation)
    return rows


def _subtract(state: LoweringState, rows: Rows, negation: ir.Negation) -> Rows:
    """The rows for which the negated block has none."""
    inner_uses = frozenset(uses_of_block(negation.block))
    ids = [(variable, "id") for variable in negation.outer]
    needed_uses = {use for use in inner_uses if use[0] in negation.outer} | set(ids)
    outer = rows.distinct_columns(needed_uses, state)
    inner_rows = block_rows(state, negation.block, inner_uses, outer=outer)
    ids_found = [named(column(inner_rows.columns[use], "f"), rows.columns[use]) for use in ids]
    hits = exp.select(*ids_found).from_(table(inner_rows.table, "f")).distinct()
    on = exp.and_(
        *(
            exp.EQ(this=column(rows.columns[use], "k"), expression=column(rows.columns[use], "x"))
            for use in ids
        )
    )
    weights = () if rows.weight is None else (rows.weight, *rows.carried.values())
    columns = [column(name, "k") for name in (*rows.columns.values(), *weights)]
    query = exp.select(*columns).from_(table(rows.table, "k"))
    query = query.join(subquery(hits, "x"), on=on, join_type="anti")
    return replace(rows, table=state.builder.define(query))


@dataclass(frozen=True, slots=True)
class _Weighing:
    """A table of messages: the ids of the parent, their weights, and what is carried for them."""

    table: str
    carried: Mapping[ColumnSum, str]

    def joined_as(self, alias: str) -> _Factor:
        """The columns of the table under an alias."""
        carried = {what: column(name, alias) for what, name in self.carried.items()}
        return _Factor(column(WEIGHT, alias), carried)


@dataclass(frozen=True, slots=True)
class _Factor:
    """What one message multiplies a row by."""

    weight: exp.Expr
    carried: Mapping[ColumnSum, exp.Expr]


@dataclass(slots=True)
class _Joins:
    """Joins the tables of one block, connected ones first."""

    state: LoweringState
    block: ir.Block
    uses: frozenset[Use]
    outer: Rows | None
    elimination: Elimination | None
    query: exp.Select = field(default_factory=exp.Select)
    scope: dict[Use, exp.Expr] = field(default_factory=dict)
    places: dict[str, list[Place]] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)
    """The tables of node variables, filtered, by variable."""
    joined_variables: set[str] = field(default_factory=set)
    conditions: list[exp.Expr] = field(default_factory=list)
    far_ends: list[tuple[str, Place]] = field(default_factory=list)
    """Variables at the far end of a walk, and the places that contain their ids among others."""
    weighings: dict[str | None, list[_Weighing]] = field(default_factory=dict)
    """The messages to each variable, and to none."""
    factors: list[_Factor] = field(default_factory=list)
    aliases: int = 0

    def run(self) -> None:
        if self.outer is not None:
            self._join(self.outer.table, [])
            self.scope.update(self.outer.scope("j0"))
            self.joined_variables.update(variable for variable, _ in self.outer.columns)
        local = self._define_nodes()
        traversals = list(self.block.traversals)
        nodes = [node.variable for node in self.block.nodes if node.variable in self.nodes]
        if self.elimination is not None:
            local += self._define_messages(self.elimination)
            traversals = list(self.elimination.traversals)
            nodes = [node.variable for node in self.block.nodes]
            nodes = [node for node in nodes if self._is_joined_by_itself(node, traversals)]
        while traversals or any(node not in self.joined_variables for node in nodes):
            connected = [traversal for traversal in traversals if self._touches(traversal)]
            waiting = [node for node in nodes if node not in self.joined_variables]
            if connected or not waiting:
                traversal = (connected or traversals)[0]
                traversals.remove(traversal)
                self._join_traversal(traversal)
            else:
                self._join_unconnected(waiting[0])
        self._join_messages(None)
        self._link_places()
        for condition in self.block.filters:
            if condition not in local:
                self.conditions.append(self._filter(condition, self.scope))

    def rows(self) -> Rows:
        """The joined rows, every used column under a generated name."""
        if self.conditions:
            self.query = self.query.where(*self.conditions)
        columns = {use: f"v{place}" for place, use in enumerate(self.scope)}
        values = [named(self.scope[use].copy(), name) for use, name in columns.items()]
        weight, carried = None, {}
        if self.elimination is not None:
            weight = WEIGHT
            carried = {what: f"s{place}" for place, what in enumerate(self.elimination.carried)}
            values += _weigh(self.factors, carried)
        if not values:
            values = [named(exp.Literal.number(1), "v0")]
        places = {name: tuple(columns) for name, columns in self.places.items()}
        outer_places = dict(self.outer.places) if self.outer else {}
        table_ = self.state.builder.define(self.query.select(*values))
        return Rows(table_, columns, outer_places | places, weight, carried)

    def _define_messages(self, elimination: Elimination) -> list[ir.Filter]:
        """Define the table of each message; return the filters of edges that are in them."""
        local: list[ir.Filter] = []
        for message in elimination.messages:
            traversal = message.traversal
            if traversal is not None and traversal.edge_variable is not None:
                alone = {traversal.edge_variable}
                local += [each for each in self.block.filters if variables_in(each) == alone]
            weighing = self._define_message(message, elimination)
            self.weighings.setdefault(message.parent, []).append(weighing)
        return local

    def _define_message(self, message: Message, elimination: Elimination) -> _Weighing:
        """For each node of the parent: the rows that the leaf adds, and what they carry."""
        query = exp.Select()
        scope: dict[Use, exp.Expr] = {}
        key: exp.Expr | None = None
        leaf_id: exp.Expr | None = None
        if message.traversal is not None:
            ends = self._ends(message.traversal)
            sides = ((FROM, ends.source_places), (TO, ends.destination_places))
            is_forward = message.traversal.destination == message.leaf
            (parent_end, parent_places), (leaf_end, leaf_places) = sides[:: 1 if is_forward else -1]
            assert message.parent is not None, "a traversal leads to it"
            self.places.setdefault(message.parent, []).extend(parent_places)
            self.places.setdefault(message.leaf, []).extend(leaf_places)
            query = query.from_(table(ends.table, "l"))
            key, leaf_id = column(parent_end, "l"), column(leaf_end, "l")
            for place, name in enumerate(ends.edge_columns):
                scope[message.traversal.edge_variable or "", name] = column(f"c{place}", "l")
        tables = [(self.nodes[message.leaf], "n", "id")] if message.leaf in self.nodes else []
        factors = []
        for place, weighing in enumerate(self.weighings.get(message.leaf, ())):
            tables.append((weighing.table, f"m{place}", FROM))
            factors.append(weighing.joined_as(f"m{place}"))
        for name, alias, id_column in tables:
            same_id = column(id_column, alias)
            if leaf_id is None:
                query, leaf_id = query.from_(table(name, alias)), same_id
            else:
                on = exp.EQ(this=leaf_id.copy(), expression=same_id)
                query = query.join(table(name, alias), on=on)
        assert leaf_id is not None, "a variable is bound by something"
        for variable, name in self.uses:
            if variable == message.leaf:
                scope[variable, name] = leaf_id if name == "id" else column(name, "n")
        return self._group_message(message, elimination, query, key, scope, factors)

    def _group_message(
        self,
        message: Message,
        elimination: Elimination,
        query: exp.Select,
        key: exp.Expr | None,
        scope: dict[Use, exp.Expr],
        factors: Sequence[_Factor],
    ) -> _Weighing:
        edge = None if message.traversal is None else message.traversal.edge_variable
        for condition in self.block.filters:
            if edge is not None and variables_in(condition) == {edge}:
                query = query.where(self._filter(condition, scope))
        weight = product([factor.weight for factor in factors])
        sums: dict[ColumnSum, exp.Expr] = {}
        for carried in elimination.carried:
            use = carried.argument.variable, carried.argument.column
            if carried.argument.variable in (message.leaf, edge):
                sums[carried] = own(carried, scope[use], weight)
            elif (passed := _pass_on(carried, factors)) is not None:
                sums[carried] = passed
        columns = {what: f"s{place}" for place, what in enumerate(sums)}
        query = query.select(named(sum_weights(weight), WEIGHT))
        for what, name in columns.items():
            query = query.select(named(exp.Sum(this=sums[what]), name))
        if key is None:
            # Rows that all others are multiplied by: without any, there are no others either.
            some = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))
            query = query.having(some)
        else:
            query = query.select(named(key, FROM)).group_by(key.copy())
        return _Weighing(self.state.builder.define(query), columns)

    def _is_joined_by_itself(self, variable: str, traversals: Sequence[ir.Traversal]) -> bool:
        """Whether no traversal that is left binds a variable that is left."""
        assert self.elimination is not None, "every variable is left"
        if variable not in self.elimination.kept:
            return False
        return variable in self.nodes or not any(
            variable in (each.source, each.destination) for each in traversals
        )

    def _join_unconnected(self, variable: str) -> None:
        if variable in self.nodes:
            self._join_node(variable, [])
            return
        first, *_ = self.weighings[variable]
        self.scope[variable, "id"] = column(FROM, self._next_alias())
        self._join_message(first, [])
        self._join_messages(variable, start=1)
        self.joined_variables.add(variable)

    def _join_messages(self, variable: str | None, *, start: int = 0) -> None:
        """Join the messages to a variable that is joined; those to none multiply all rows."""
        for weighing in self.weighings.get(variable, [])[start:]:
            on: list[exp.Expr] = []
            if variable is not None:
                same = column(FROM, self._next_alias())
                on.append(exp.EQ(this=self.scope[variable, "id"].copy(), expression=same))
            self._join_message(weighing, on)

    def _join_message(self, weighing: _Weighing, on: list[exp.Expr]) -> None:
        self.factors.append(weighing.joined_as(self._next_alias()))
        self._join(weighing.table, on)

    def _define_nodes(self) -> list[ir.Filter]:
        """Define a filtered table for each node variable that needs one; return those filters."""
        ends = {
            end
            for traversal in self.block.traversals
            for end in (traversal.source, traversal.destination)
        }
        local = []
        for node in self.block.nodes:
            mine = [
                filter_
                for filter_ in self.block.filters
                if variables_in(filter_) == {node.variable}
            ]
            columns = [name for variable, name in sorted(self.uses) if variable == node.variable]
            if node.variable in ends and not mine and set(columns) <= {"id"}:
                # The ends of edges always exist, so the edge table's columns have the ids.
                continue
            self._define_node(node, ["id", *columns], mine)
            local += mine
        return local

    def _define_node(
        self, node: ir.NodeBinding, columns: list[str], filters: list[ir.Filter]
    ) -> None:
        relation = self.state.builder.scan(TableKey(TableKind.NODE, node.type_name), columns)
        scope = {(node.variable, name): column(name, "n") for name in columns}
        query = exp.select(*(column(name, "n") for name in dict.fromkeys(columns)))
        query = query.from_(table(relation, "n"))
        for condition in filters:
            query = query.where(self._filter(condition, scope))
        self.nodes[node.variable] = self.state.builder.define(query)
        self.places.setdefault(node.variable, []).append(Place(relation, "id"))
        type_ = self.state.catalog.node_type(node.type_name)
        self.state.seeds.extend(seeds_of(type_, relation, filters, self.state.given))
        for condition in filters:
            if isinstance(condition, ir.TextMatch):
                search = search_of(condition, self.state.given)
                if search is not None:
                    found = Place(self.state.search(search), "id")
                    self.state.builder.link([found], [Place(relation, "id")])

    def _join_traversal(self, traversal: ir.Traversal) -> None:
        ends = self._ends(traversal)
        alias = self._next_alias()
        on: list[exp.Expr] = []
        sides = (
            (traversal.source, FROM, ends.source_places),
            (traversal.destination, TO, ends.destination_places),
        )
        new_ends = []
        for end, name, places in sides:
            if not isinstance(end, str):
                continue
            self.places.setdefault(end, []).extend(places)
            value = column(name, alias)
            if (end, "id") in self.scope:
                on.append(exp.EQ(this=self.scope[end, "id"].copy(), expression=value))
            else:
                self.scope[end, "id"] = value
                new_ends.append(end)
        self._join(ends.table, on)
        if traversal.edge_variable is not None:
            for place, name in enumerate(ends.edge_columns):
                self.scope[traversal.edge_variable, name] = column(f"c{place}", alias)
        for end in new_ends:
            if end in self.nodes:
                same = exp.EQ(
                    this=self.scope[end, "id"].copy(), expression=column("id", self._next_alias())
                )
                self._join_node(end, [same])
            else:
                self._join_messages(end)
            self.joined_variables.add(end)

    def _ends(self, traversal: ir.Traversal) -> Ends:
        if traversal.edge_variable is not None:
            names = [
                name for variable, name in sorted(self.uses) if variable == traversal.edge_variable
            ]
            own = {traversal.edge_variable}
            filters = [each for each in self.block.filters if variables_in(each) == own]
            return edge_ends(self.state, traversal, names, filters)
        if traversal.hops_max == 1:
            return pair_ends(self.state, traversal)
        start, far = self._start(traversal.source), traversal.destination
        backward = start is None
        if backward:
            start, far = self._start(traversal.destination), traversal.source
        ends = walk_ends(self.state, traversal, start, backward=backward and start is not None)
        if ends.reached is not None and start is not None and isinstance(far, str):
            self.far_ends.append((far, ends.reached))
        return ends

    def _start(self, end: str | ir.Anonymous) -> Start | None:
        """The start of a walk from this end, if it is restricted to some nodes of its type."""
        if not isinstance(end, str):
            return None
        if self.outer is not None and (end, "id") in self.outer.columns:
            places = self.outer.places.get(end, ())
            return Start(self.outer.table, self.outer.columns[end, "id"], places)
        has_filter = any(variables_in(filter_) == {end} for filter_ in self.block.filters)
        if end in self.nodes and has_filter:
            return Start(self.nodes[end], "id", tuple(self.places[end][:1]))
        return None

    def _join_node(self, variable: str, on: list[exp.Expr]) -> None:
        alias = self._next_alias()
        self._join(self.nodes[variable], on)
        for owner, name in sorted(self.uses | {(variable, "id")}):
            if owner == variable:
                self.scope[variable, name] = column(name, alias)
        self.joined_variables.add(variable)
        self._join_messages(variable)

    def _join(self, name: str, on: list[exp.Expr]) -> None:
        table_ = table(name, self._next_alias())
        if self.aliases == 0:
            self.query = self.query.from_(table_)
            self.conditions += on
        elif on:
            self.query = self.query.join(table_, on=exp.and_(*on))
        else:
            self.query = self.query.join(table_, join_type="cross")
        self.aliases += 1

    def _next_alias(self) -> str:
        return f"j{self.aliases}"

    def _touches(self, traversal: ir.Traversal) -> bool:
        return (
            traversal.source in self.joined_variables
            or traversal.destination in self.joined_variables
        )

    def _filter(self, condition: ir.Filter, scope: Scope) -> exp.Expr:
        if isinstance(condition, ir.TextMatch):
            return passes(self.state, condition, scope[condition.text.variable, "id"])
        return filter_tree(condition, scope, self.state.given, self.state.builder.bindings)

    def _link_places(self) -> None:
        """Let the ids of a variable in one place reduce what is read from its other places."""
        for variable, place in self.far_ends:
            self.state.builder.link([place], self.places.get(variable, ()))
        for variable, places in self.places.items():
            for place in places:
                self.state.builder.link([place], [other for other in places if other != place])
            if self.outer is not None:
                self.state.builder.link(self.outer.places.get(variable, ()), places)


def _pass_on(carried: ColumnSum, factors: Sequence[_Factor]) -> exp.Expr | None:
    """What one of several messages carries, multiplied by the others; None if none does."""
    for place, factor in enumerate(factors):
        if carried in factor.carried:
            others = [other.weight for other in (*factors[:place], *factors[place + 1 :])]
            return passed_on(carried, factor.carried[carried], product(others))
    return None


def _weigh(factors: Sequence[_Factor], carried: Mapping[ColumnSum, str]) -> list[exp.Alias]:
    """The columns of the weight of a row, and of what its messages carry."""
    weight = product([factor.weight for factor in factors])
    assert weight is not None, "an elimination has messages"
    columns = [named(weight, WEIGHT)]
    for what, name in carried.items():
        total = _pass_on(what, factors)
        assert total is not None, "some message carries it"
        columns.append(named(total, name))
    return columns
