"""Blocks as tables of rows: joins bindings and traversals, filters, and subtracts negations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from sqlglot import exp

from omnigraph.choices import TableKind
from omnigraph.model.names import TypeName
from omnigraph.model.tables import TableKey
from omnigraph.query import ir
from omnigraph.query.lowering.elimination import (
    ColumnSum,
    Elimination,
    Message,
    Summary,
    eliminate,
    variables_in,
)
from omnigraph.query.lowering.expressions import filter_tree
from omnigraph.query.lowering.keys import seeds_of
from omnigraph.query.lowering.operands import Scope
from omnigraph.query.lowering.optional import (
    bound_in,
    is_only_summed,
    stands_alone,
    without_optionals,
)
from omnigraph.query.lowering.paths import given_path_ends, path_ends
from omnigraph.query.lowering.row_tables import Rows, place_key, places_of
from omnigraph.query.lowering.searching import passes, search_of
from omnigraph.query.lowering.state import LoweringState
from omnigraph.query.lowering.subqueries import (
    grouped_query,
    join_separate,
    join_value,
    separate_query,
    separate_sums,
)
from omnigraph.query.lowering.usage import Use, uses_of_argument, uses_of_block
from omnigraph.query.lowering.walks import (
    FROM,
    TO,
    EndPlace,
    Ends,
    Start,
    edge_ends,
    localized,
    pair_ends,
    stored_column,
    typed_column,
    union,
    walk_ends,
)
from omnigraph.query.lowering.weights import (
    WEIGHT,
    or_one,
    own,
    passed_on,
    product,
    sum_weights,
)
from omnigraph.relational.plans import Place
from omnigraph.relational.trees import column, named, named_column, subquery, table

Separate: TypeAlias = Callable[[ir.Stage], str | None]
"""The relation that has the rows of a stage, by place; None to find them here."""


def block_rows(
    state: LoweringState,
    block: ir.Block,
    uses: frozenset[Use],
    *,
    outer: Rows | None = None,
    around: Mapping[str, tuple[Place, ...]] | None = None,
    summary: Summary | None = None,
    separate: Separate | None = None,
) -> Rows:
    """The rows of a block, for each row of the variables outside it.

    Args:
        uses: The columns that the block and later steps use of the variables bound here.
        around: The places that the ids of variables outside are from, if not those of `outer`.
        summary: What later steps use of the rows; None if they need each by itself.
        separate: Finds the values of some subqueries elsewhere.
    """
    elimination = None if summary is None else eliminate(block, summary)
    block = block if elimination is None else elimination.block
    early, late = without_optionals(block)
    joins = _Joins(state, early, uses, outer, elimination, around or {})
    joins.run()
    rows = joins.rows()
    for negation in early.negations:
        rows = _subtract(state, rows, negation)
    for part in block.optionals:
        if summary is not None and is_only_summed(part, block, summary):
            rows = _weigh_by(state, rows, part, uses, summary, separate)
        else:
            rows = _extend(state, rows, part, uses)
    for each in block.subqueries:
        rows = _derive(state, rows, each, separate)
    if late.filters:
        rows = _keep(state, rows, late.filters)
    for negation in late.negations:
        rows = _subtract(state, rows, negation)
    return rows


def keys_of(part: ir.Negation | ir.OptionalPart | ir.Subquery, uses: Iterable[Use]) -> list[Use]:
    """The columns by which the rows of an inner block belong to those outside.

    Args:
        uses: What the inner block uses.
    """
    ids = [(variable, "id") for variable in part.outer if ir.is_row(variable)]
    others = {use for use in uses if use[0] in part.outer and not ir.is_row(use[0])}
    return [*ids, *sorted(others)]


def _subtract(state: LoweringState, rows: Rows, negation: ir.Negation) -> Rows:
    """The rows for which the negated block has none; what is negated twice is what exists."""
    twice = _only_negation(negation.block)
    join_type = "anti" if twice is None else "semi"
    negation = negation if twice is None else twice
    inner_uses = frozenset(uses_of_block(negation.block))
    ids = keys_of(negation, inner_uses)
    inner = _inner_rows(state, rows, negation, inner_uses)
    ids_found = [named(column(inner.columns[use], "f"), rows.columns[use]) for use in ids]
    hits = exp.select(*ids_found).from_(table(inner.table, "f")).distinct()
    query = exp.select(*(column(name, "k") for name in rows.values)).from_(table(rows.table, "k"))
    on = rows.same(ids, rows, ours="k", theirs="x")
    query = query.join(subquery(hits, "x"), on=on, join_type=join_type)
    return replace(rows, table=state.builder.define(query))


def _only_negation(block: ir.Block) -> ir.Negation | None:
    """The negation that a block consists of; None if there is more to it."""
    rest = replace(block, negations=())
    if len(block.negations) != 1 or rest != ir.Block((), (), (), ()):
        return None
    return block.negations[0]


def _extend(state: LoweringState, rows: Rows, part: ir.OptionalPart, uses: frozenset[Use]) -> Rows:
    """The rows, each with those of the optional block, or with nulls if there are none."""
    bound = bound_in(part.block)
    inner = _optional_rows(state, rows, part, uses, None)
    added = {use: name for use, name in inner.columns.items() if use[0] in bound}
    first = len(rows.columns)
    columns = {use: f"v{first + place}" for place, use in enumerate(added)}
    query = exp.select(
        *(column(name, "k") for name in rows.values),
        *(named(column(added[use], "x"), name) for use, name in columns.items()),
    ).from_(table(rows.table, "k"))
    on = rows.same(keys_of(part, uses_of_block(part.block)), inner, ours="k", theirs="x")
    query = query.join(table(inner.table, "x"), on=on, join_type="left")
    return replace(
        rows,
        table=state.builder.define(query),
        columns={**rows.columns, **columns},
        places={**places_of(bound, inner.places), **rows.places},
        optional=rows.optional | bound,
        is_distinct=False,
    )


def _weigh_by(
    state: LoweringState,
    rows: Rows,
    part: ir.OptionalPart,
    uses: frozenset[Use],
    summary: Summary,
    separate: Separate | None,
) -> Rows:
    """The rows, each with the number of those that the optional block adds, and their sums."""
    ids = keys_of(part, uses_of_block(part.block))
    sums = _sums_of(state, rows, part, uses, summary, separate)
    first = len(rows.carried)
    added = {what: f"s{first + place}" for place, what in enumerate(sums.carried)}
    weight = None if rows.weight is None else column(rows.weight, "k")
    # Without a row of the optional block, there is one of nulls.
    assert sums.weight is not None, "rows were counted"
    times = or_one(column(sums.weight, "x"))
    query = exp.select(
        *(column(name, "k") for name in rows.columns.values()),
        named(product([each for each in (weight, times) if each is not None]) or times, WEIGHT),
        *(
            named(passed_on(what, column(name, "k"), times), name)
            for what, name in rows.carried.items()
        ),
        *(
            named(passed_on(what, column(sums.carried[what], "x"), weight), name)
            for what, name in added.items()
        ),
    ).from_(table(rows.table, "k"))
    on = rows.same(ids, sums, ours="k", theirs="x")
    query = query.join(table(sums.table, "x"), on=on, join_type="left")
    return replace(
        rows,
        table=state.builder.define(query),
        weight=WEIGHT,
        carried={**rows.carried, **added},
    )


def _sums_of(
    state: LoweringState,
    rows: Rows,
    part: ir.OptionalPart,
    uses: frozenset[Use],
    summary: Summary,
    separate: Separate | None,
) -> Rows:
    """For each combination of what an optional part has from outside: its number, and sums."""
    keys = keys_of(part, uses_of_block(part.block))
    inner_summary = summary.within(bound_in(part.block), part.outer)
    sums = inner_summary.sums
    stage = None if separate is None else separate_sums(part, keys, sums, state.catalog)
    if separate is not None and stage is not None and (relation := separate(stage)) is not None:
        columns = {use: f"c{place}" for place, use in enumerate(keys)}
        first = len(keys) + 1
        carried = {what: f"c{first + place}" for place, what in enumerate(sums)}
        return Rows(relation, columns, {}, f"c{len(keys)}", carried)
    inner = _optional_rows(state, rows, part, uses, inner_summary)
    return group_sums(state, inner, keys, sums)


def _optional_rows(
    state: LoweringState,
    rows: Rows,
    part: ir.OptionalPart,
    uses: frozenset[Use],
    summary: Summary | None,
) -> Rows:
    """The rows of an optional block, by themselves or for the rows that it extends."""
    bound = bound_in(part.block)
    inner_uses = frozenset([*uses_of_block(part.block), *(use for use in uses if use[0] in bound)])
    if stands_alone(part, inner_uses):
        return block_rows(state, part.block, inner_uses, around=rows.places, summary=summary)
    return _inner_rows(state, rows, part, inner_uses, summary)


def _derive(state: LoweringState, rows: Rows, part: ir.Subquery, separate: Separate | None) -> Rows:
    """The rows, each with the value of a subquery."""
    uses = frozenset([*uses_of_block(part.block), *uses_of_argument(part)])
    keys = keys_of(part, uses)
    stage = None if separate is None else separate_query(part, keys, state.catalog)
    if separate is not None and stage is not None and (relation := separate(stage)) is not None:
        return join_separate(state, rows, relation, part, keys)
    summary = Summary.of(grouped_query(part, keys))
    if not part.outer:
        inner = block_rows(state, part.block, uses, summary=summary)
    elif stands_alone(part, uses):
        inner = block_rows(state, part.block, uses, around=rows.places, summary=summary)
    else:
        inner = _inner_rows(state, rows, part, uses, summary)
    return join_value(state, rows, inner, part, keys)


def group_sums(
    state: LoweringState, rows: Rows, keys: Sequence[Use], sums: Sequence[ColumnSum]
) -> Rows:
    """For each combination of keys: the number of rows, and sums over them."""
    if rows.is_distinct:
        return rows
    weight = None if rows.weight is None else column(rows.weight, "g")
    names = {use: f"v{place}" for place, use in enumerate(keys)}
    carried = {what: f"s{place}" for place, what in enumerate(sums)}
    query = exp.select(
        *(named(column(rows.columns[use], "g"), name) for use, name in names.items()),
        named(sum_weights(weight), WEIGHT),
    ).from_(table(rows.table, "g"))
    for what, name in carried.items():
        if what in rows.carried:
            value: exp.Expr = column(rows.carried[what], "g")
        else:
            use = what.argument.variable, what.argument.column
            value = own(what, column(rows.columns[use], "g"), weight)
        query = query.select(named(exp.Sum(this=value), name))
    query = query.group_by(*(column(rows.columns[use], "g") for use in keys))
    return Rows(state.builder.define(query), names, {}, WEIGHT, carried)


def _inner_rows(
    state: LoweringState,
    rows: Rows,
    part: ir.Negation | ir.OptionalPart | ir.Subquery,
    inner_uses: frozenset[Use],
    summary: Summary | None = None,
) -> Rows:
    """The rows of a block for the values that variables outside it have."""
    needed_uses = {use for use in inner_uses if use[0] in part.outer}
    needed_uses.update(keys_of(part, inner_uses))
    outer = rows.distinct_columns(needed_uses, state)
    return block_rows(state, part.block, inner_uses, outer=outer, summary=summary)


def _keep(state: LoweringState, rows: Rows, filters: Sequence[ir.Filter]) -> Rows:
    """The rows that pass filters."""
    query = exp.select(*(column(name, "k") for name in rows.values)).from_(table(rows.table, "k"))
    conditions = (filter_on(state, condition, rows.scope("k")) for condition in filters)
    return replace(rows, table=state.builder.define(query.where(*conditions)))


def filter_on(state: LoweringState, condition: ir.Filter, scope: Scope) -> exp.Expr:
    """A condition that is true for exactly the rows the filter keeps."""

    def find(test: ir.TextMatch) -> exp.Expr:
        return passes(state, test, scope[test.text.variable, "id"])

    return filter_tree(condition, scope, state.given, state.builder.bindings, find)


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
    around: Mapping[str, tuple[Place, ...]]
    query: exp.Select = field(default_factory=exp.Select)
    scope: dict[Use, exp.Expr] = field(default_factory=dict)
    places: dict[str, list[Place]] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)
    """The tables of node variables, filtered, by variable."""
    joined_variables: set[str] = field(default_factory=set)
    conditions: list[exp.Expr] = field(default_factory=list)
    far_ends: list[tuple[str, Place]] = field(default_factory=list)
    """Variables at the far end of a walk, and the places that contain their ids among others."""
    followers: dict[str, list[Place]] = field(default_factory=dict)
    """Places that hold only some ids of a variable: others reduce them."""
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
            nodes += self._join_outer_messages(traversals)
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
        optional = frozenset[str]() if self.outer is None else self.outer.optional
        table_ = self.state.builder.define(self.query.select(*values))
        # Each message has a variable's id once, and nothing else is joined with them.
        elimination = self.elimination
        has_messages_only = elimination is not None and not elimination.kept and not self.outer
        return Rows(
            table_,
            columns,
            outer_places | places,
            weight,
            carried,
            optional=optional,
            is_distinct=has_messages_only,
        )

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
            self._take_places(message.parent, parent_places)
            self._take_places(message.leaf, leaf_places)
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

    def _join_outer_messages(self, traversals: Sequence[ir.Traversal]) -> list[str]:
        """Join messages to variables from outside; return those that only messages bind."""
        bound = bound_in(self.block)
        others = [name for name in self.weighings if name is not None and name not in bound]
        for name in others:
            if name in self.joined_variables:
                self._join_messages(name)
        return [
            name
            for name in others
            if name not in self.joined_variables
            and not any(name in (each.source, each.destination) for each in traversals)
        ]

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
        parts = [self._nodes_of(node, name, columns, filters) for name in node.type_names]
        self.nodes[node.variable] = self.state.builder.define(union(parts, distinct=False))

    def _nodes_of(
        self,
        node: ir.NodeBinding,
        type_name: TypeName,
        columns: list[str],
        filters: list[ir.Filter],
    ) -> exp.Select:
        """The nodes of one type that a variable can be, as far as its own filters say."""
        label = type_name if node.other_types else None
        stored = [name for name in map(stored_column, columns) if name is not None]
        relation = self.state.builder.scan(TableKey(TableKind.NODE, type_name), stored)
        scope = {(node.variable, name): typed_column(name, "n", label) for name in columns}
        values = {name: scope[node.variable, name].copy() for name in columns}
        query = exp.select(
            *(
                value if label is None else named_column(value, name)
                for name, value in values.items()
            )
        )
        query = query.from_(table(relation, "n"))
        for condition in filters:
            query = query.where(self._filter(condition, scope))
        self.places.setdefault(place_key(node.variable, label), []).append(Place(relation, "id"))
        type_ = self.state.catalog.node_type(type_name)
        local = filters if label is None else [each for each in map(localized, filters) if each]
        self.state.seeds.extend(seeds_of(type_, relation, local, self.state.given))
        for condition in filters:
            if isinstance(condition, ir.TextMatch):
                search = search_of(condition, self.state.given)
                if search is not None:
                    found = Place(self.state.search(search), "id")
                    self.state.builder.link([found], [Place(relation, "id")])
        return query

    def _take_places(self, end: str, places: Sequence[EndPlace]) -> None:
        """Let the places of an end reduce others and be reduced by them."""
        for each in places:
            kept = self.places if each.decides else self.followers
            kept.setdefault(place_key(end, each.label), []).append(each.place)

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
            self._take_places(end, places)
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
        if traversal.path is not None:
            for place, name in enumerate(ends.edge_columns):
                self.scope[traversal.path.variable, name] = column(f"c{place}", alias)
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
        if traversal.path is not None:
            return self._path_ends(traversal, traversal.path)
        if traversal.edge_variable is not None:
            names = [
                name for variable, name in sorted(self.uses) if variable == traversal.edge_variable
            ]
            own = {traversal.edge_variable}
            filters = [each for each in self.block.filters if variables_in(each) == own]
            return edge_ends(self.state, traversal, names, filters)
        if traversal.hops_max == 1:
            return pair_ends(self.state, traversal)
        first = traversal.steps[0]
        forward = traversal.source, first.source
        backward = traversal.destination, first.destination
        start, far = self._start(*forward), backward
        is_backward = start is None
        if is_backward:
            start, far = self._start(*backward), forward
        ends = walk_ends(self.state, traversal, start, backward=is_backward and start is not None)
        if ends.reached is not None and start is not None and isinstance(far[0], str):
            self.far_ends.append((place_key(far[0], far[1]), ends.reached))
        return ends

    def _path_ends(self, traversal: ir.Traversal, path: ir.Path) -> Ends:
        names = [name for variable, name in sorted(self.uses) if variable == path.variable]
        if path.variable in self.state.given_paths:
            return given_path_ends(self.state, path, names)
        first = traversal.steps[0]
        start = self._start(traversal.source, first.source)
        is_backward = start is None and path.weight is None
        if is_backward:
            start = self._start(traversal.destination, first.destination)
        is_backward = is_backward and start is not None
        ends = path_ends(self.state, traversal, path, names, start, backward=is_backward)
        far = (
            (traversal.source, first.source)
            if is_backward
            else (traversal.destination, first.destination)
        )
        if ends.reached is not None and start is not None and isinstance(far[0], str):
            self.far_ends.append((place_key(far[0], far[1]), ends.reached))
        return ends

    def _start(self, end: str | ir.Anonymous, label: str | None) -> Start | None:
        """The start of a walk from this end, if it is restricted to some nodes of its type."""
        if not isinstance(end, str):
            return None
        if self.outer is not None and (end, "id") in self.outer.columns:
            places = self.outer.places.get(place_key(end, label), ())
            return Start(self.outer.table, self.outer.columns[end, "id"], places)
        has_filter = any(variables_in(filter_) == {end} for filter_ in self.block.filters)
        if end in self.nodes and has_filter:
            places = tuple(self.places.get(place_key(end, label), [])[:1])
            return Start(self.nodes[end], "id", places)
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
        return filter_on(self.state, condition, scope)

    def _link_places(self) -> None:
        """Let the ids of a variable in one place reduce what is read from its other places."""
        link = self.state.builder.link
        for key, place in self.far_ends:
            link([place], self.places.get(key, ()))
        outside = self.around if self.outer is None else self.outer.places
        for key in dict.fromkeys([*self.places, *self.followers]):
            places, followers = self.places.get(key, []), self.followers.get(key, [])
            for place in places:
                link([place], [other for other in (*places, *followers) if other != place])
            link(outside.get(key, ()), [*places, *followers])


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
