"""Hypothesis strategies: random well-typed read queries over a catalog, with their parameters.

Values come from small pools (`values`), so that data drawn from the same pools has rows for filters
to keep and rows for them to drop.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Final, TypeVar

from hypothesis import strategies as st

from omnigraph.lang.source import Span
from omnigraph.model.types import BlobType, EnumType, ListType, PropertyType, Scalar, VectorType
from omnigraph.query import ast
from omnigraph.query.functions import AggregateFunction, ValueFunction
from omnigraph.query.operands import are_comparable, can_be_sorted, has_order
from omnigraph.query.printer import print_expression, print_queries
from omnigraph.query.several import BoundType, SeveralTypes, is_node, members_of, together
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType, Property

_ValueT = TypeVar("_ValueT")

_NOWHERE: Final = Span(0, 0)
_DEPTH_MAX: Final = 2
_STAGES_MAX: Final = 2
_EQUALITY: Final = (ast.Sign.EQ, ast.Sign.NE)
_ORDER_SIGNS: Final = (ast.Sign.LT, ast.Sign.LE, ast.Sign.GT, ast.Sign.GE)
_TOO_WIDE: Final = ({Scalar.U64}, {Scalar.U64, Scalar.I64})
"""The types of which products may have more than 38 digits."""

_PARTS: Final = (ValueFunction.YEAR, ValueFunction.MONTH, ValueFunction.DAY)
_ROUNDING: Final = (ValueFunction.ROUND, ValueFunction.FLOOR, ValueFunction.CEIL)
_TEXT_FUNCTIONS: Final = (
    ValueFunction.LENGTH,
    ValueFunction.LOWER,
    ValueFunction.UPPER,
    ValueFunction.TRIM,
    ValueFunction.SUBSTRING,
    ValueFunction.CONCAT,
    ValueFunction.REPLACE,
)
_SORTABLE_AGGREGATES: Final = tuple(
    each for each in AggregateFunction if each is not AggregateFunction.COLLECT
)
_CONSTANTS: Final = (Scalar.I64, Scalar.F64, Scalar.STRING, Scalar.DATE, Scalar.DATETIME)
_ALIASES: Final = ("n", "total", "order", "limit", "count", "as", "from", "desc", "true_")

_POOLS: Final[Mapping[Scalar, tuple[str | int | float | bool | date, ...]]] = {
    Scalar.STRING: (
        "",
        "a",
        "b",
        "ab",
        "abc",
        "A",
        "%",
        "a_",
        "é",
        "\u00df\u0130",
        "x\ny",
        '"q"',
        "\\",
        "\U0001f40d",
    ),
    Scalar.BOOL: (True, False),
    Scalar.I32: (-1, 0, 1, 2, 3, -(2**31), 2**31 - 1),
    Scalar.I64: (-1, 0, 1, 2, 3, -(2**63), 2**63 - 1, 2**53 + 1),
    Scalar.U32: (0, 1, 2, 3, 2**32 - 1),
    Scalar.U64: (0, 1, 2, 3, 2**63, 2**64 - 1),
    Scalar.F32: (-1.5, 0.0, 0.5, 1.0, 2.0, 0.10000000149011612),
    Scalar.F64: (-1.5, 0.0, 0.1, 0.5, 1.0, 2.0, 1e300, -1e-300),
    Scalar.DATE: (date(1969, 12, 31), date(2024, 2, 29), date(2024, 3, 1)),
    Scalar.DATETIME: (
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(2024, 2, 29, 12, tzinfo=UTC),
        datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=UTC),
    ),
}


class Construct(StrEnum):
    """What a small query may be about: the constructs of the language, each by itself."""

    CONDITION = "condition"
    EXPRESSION = "expression"
    OPTIONAL = "optional"
    NEGATION = "negation"
    SUBQUERY = "subquery"
    TYPES = "several types"
    STAGE = "stage"
    WALK = "walk"
    EDGE = "edge variable"
    PATH = "path"
    GROUP = "group"
    CONSTANT = "constant"
    DISTINCT = "distinct"
    OBJECT = "object"


@dataclass(frozen=True, slots=True)
class QueryCase:
    """A query and values for its parameters."""

    query: ast.QueryNode
    values: Mapping[str, object]

    @property
    def text(self) -> str:
        """The query as a user would write it."""
        return print_queries([self.query])


def values(type_: PropertyType) -> st.SearchStrategy[object]:
    """A value of this type from a small pool; never null."""
    match type_:
        case Scalar():
            return st.sampled_from(_POOLS[type_])
        case EnumType(members):
            return st.sampled_from(members)
        case ListType(item):
            return st.lists(values(item), max_size=3)
        case VectorType(dimension):
            numbers = st.sampled_from((-1.0, 0.0, 0.5, 1.0))
            return st.lists(numbers, min_size=dimension, max_size=dimension)
        case BlobType():
            return st.sampled_from((b"", b"a", b"\x00\xff"))


def read_queries(catalog: Catalog) -> st.SearchStrategy[QueryCase]:
    """Read queries that compile against the catalog, which must have a node type.

    They bind one type or several, walk in every form, negate, have optional parts, filter by every
    operator, group, order and limit, but use no search functions, whose scores may differ between
    engines.
    """
    return _cases(catalog)


def small_queries(
    catalog: Catalog, about: frozenset[Construct] = frozenset()
) -> st.SearchStrategy[QueryCase]:
    """Read queries of a few clauses, each about one construct of the language or two.

    Engines answer thousands of them in minutes, so every pair of constructs meets.

    Args:
        about: The constructs of every query; if empty, each draws its own.
    """
    if about:
        return _cases(catalog, about)
    constructs = st.lists(st.sampled_from(Construct), min_size=1, max_size=2, unique=True)
    return constructs.flatmap(lambda drawn: _cases(catalog, frozenset(drawn)))


@st.composite
def _cases(
    draw: st.DrawFn, catalog: Catalog, constructs: frozenset[Construct] | None = None
) -> QueryCase:
    builder = _Query(draw, catalog, constructs)
    clauses = builder.block({}, depth=0)
    stages: list[ast.Stage] = []
    while len(stages) < builder.stages_max and builder.takes(Construct.STAGE, 25):
        stages.append(builder.stage(clauses))
        clauses = builder.block(builder.scope, depth=0) if builder.chance(80) else ()
        if not builder.scope:
            clauses = builder.block({}, depth=0)
    is_grouped = builder.takes(Construct.GROUP, 50)
    distinct = builder.takes(Construct.DISTINCT, 15)
    projections = builder.grouped_columns() if is_grouped else builder.columns(distinct=distinct)
    orderings = builder.orderings(projections, grouped=is_grouped, distinct=distinct)
    limit, skip = builder.limit(), builder.skip()
    query = ast.QueryNode(
        ast.Name(draw(st.sampled_from(("q", "query", "match", "limit"))), _NOWHERE),
        tuple(builder.parameters),
        draw(st.none() | st.sampled_from(("", 'say "hi"\n'))),
        None,
        ast.Read(clauses, projections, orderings, limit, skip, distinct, tuple(stages)),
    )
    return QueryCase(query, builder.values)


_Scope = Mapping[str, BoundType]


@dataclass(slots=True)
class _Query:
    """One query under construction.

    Attributes:
        constructs: What a small query is about; None for a query of everything.
        scope: The types of the variables of the outermost block, once it is complete.
        optional: The variables that optional parts bind.
        kept: The types of the values that the stage before kept.
        nesting: How many subqueries are around what is being drawn.
        paths: The paths that can be read outside of negations, and whether each has a cost.
    """

    draw: st.DrawFn
    catalog: Catalog
    constructs: frozenset[Construct] | None = None
    parameters: list[ast.ParameterNode] = field(default_factory=list)
    values: dict[str, object] = field(default_factory=dict)
    scope: dict[str, BoundType] = field(default_factory=dict)
    optional: set[str] = field(default_factory=set)
    kept: dict[str, PropertyType] = field(default_factory=dict)
    paths: dict[str, bool] = field(default_factory=dict)
    names: int = 0
    nesting: int = 0

    def chance(self, percent: int) -> bool:
        """True with about this probability."""
        return self.draw(st.integers(1, 100)) <= percent

    def takes(self, construct: Construct, percent: int) -> bool:
        """Whether to draw a construct: often if a small query is about it, never if about others.

        Args:
            percent: How often a query of everything does.
        """
        if self.constructs is not None:
            percent = max(percent, 65) if construct in self.constructs else 0
        # Without is the simplest, which is what true is for Hypothesis.
        return not self.chance(100 - percent)

    def is_about(self, construct: Construct) -> bool:
        """Whether it is a small query about this construct."""
        return self.constructs is not None and construct in self.constructs

    def some(self, count: int) -> range:
        """At most so many, or at most one in a small query."""
        return range(self.draw(st.integers(0, count if self.constructs is None else 1)))

    @property
    def stages_max(self) -> int:
        """How many stages it may have."""
        return _STAGES_MAX if self.constructs is None else 1

    @property
    def depth_max(self) -> int:
        """How many blocks may be around one."""
        return _DEPTH_MAX if self.constructs is None else 1

    def choose(self, options: Sequence[_ValueT]) -> _ValueT:
        """One of these."""
        return self.draw(st.sampled_from(options))

    def block(self, outer: _Scope, *, depth: int) -> tuple[ast.Clause, ...]:
        """Clauses that use a variable of `outer`, if there is one."""
        clauses, scope = self._scoped_block(outer, depth=depth)
        if depth == 0:
            self.scope = scope
        return clauses

    def _scoped_block(
        self, outer: _Scope, *, depth: int
    ) -> tuple[tuple[ast.Clause, ...], dict[str, BoundType]]:
        """The clauses, and all variables that are known after them."""
        scope: dict[str, BoundType] = dict(outer)
        known_paths = dict(self.paths)
        clauses: list[ast.Clause] = []
        if _nodes(outer):
            name = self.choose(_nodes(outer))
            known = {name: outer[name]}
            if self.chance(35 if self.constructs is None else 70):
                # It depends on nothing else of the row, so engines answer it for all rows at once.
                return (self._walk(known, scope),), scope
            clauses.append(self._condition(known) or self._walk(known, scope))
        else:
            clauses.append(self._start(scope))
        clauses += [self._walk(scope, scope) for _ in self.some(3)]
        if self.constructs is None and self.chance(20):
            name = self._name()
            scope[name] = node = self._node_type()
            clauses.append(self._binding(name, node))
        for likely in (25, 15) if depth < self.depth_max else ():
            if self.takes(Construct.OPTIONAL, likely):
                clauses.append(self._optional(scope, depth=depth + 1))
        for name in sorted(self.paths.keys() - known_paths.keys()):
            if self.chance(30):
                clauses.append(self._path_condition(name))
        filters = [self._condition(scope) for _ in self.some(3)]
        if self.takes(Construct.CONSTANT, 10):
            filters.append(self._constant_condition())
        clauses += [filter_ for filter_ in filters if filter_ is not None]
        if depth < self.depth_max and self.takes(Construct.NEGATION, 35):
            kind = ast.Existence if self.chance(30) else ast.Negation
            paths = dict(self.paths)
            clauses.append(kind(self.block(scope, depth=depth + 1), _NOWHERE))
            self.paths = paths
        return tuple(clauses), scope

    def _optional(self, scope: dict[str, BoundType], *, depth: int) -> ast.OptionalPart:
        """An optional part, whose variables the scope then has."""
        clauses, inner = self._scoped_block(scope, depth=depth)
        if inner.keys() == scope.keys():
            name = self._name()
            inner[name] = node = self.choose(self.catalog.node_types)
            clauses = (*clauses, self._binding(name, node))
        self.optional |= inner.keys() - scope.keys()
        scope.update(inner)
        return ast.OptionalPart(clauses, _NOWHERE)

    def columns(self, *, distinct: bool = False) -> tuple[ast.Projection, ...]:
        """Columns of an ungrouped query; no blobs, which engines read on demand.

        Args:
            distinct: Only what rows can be made distinct by.
        """
        if not distinct and not self.chance(95) and (names := _expandable(self.scope)):
            every = ast.AllOf(_variable(self.choose(names)), _NOWHERE)
            return (ast.Projection(every, None),)
        expressions: list[ast.Expression] = [_variable(self.choose(sorted(self.scope)))]
        readable: list[ast.Expression] = [
            column
            for column, type_, _ in _columns(self.scope)
            if type_ not in (BlobType(), ListType(BlobType()))
            and (can_be_sorted(type_) or not distinct)
        ]
        if self.kept and self.chance(60):
            readable = self.kept_words(sortable=distinct) or readable
        if distinct and self.chance(70):
            expressions = [self.choose(readable)]
        # A subquery that is not returned mostly makes no difference.
        for _ in range(1) if self.is_about(Construct.SUBQUERY) else self.some(3):
            if self.takes(Construct.EXPRESSION, 25):
                value, type_ = self._computed(self.scope)
                expressions.append(value if isinstance(type_, Scalar) else self.choose(readable))
                continue
            if not distinct and self.takes(Construct.SUBQUERY, 10):
                outer = self.scope if self.chance(80) else {}
                expressions.append(self._subquery(outer, is_returned=True)[0])
                continue
            is_constant = self.chance(20)
            expressions.append(self.value(Scalar.I64) if is_constant else self.choose(readable))
        for name, has_cost in sorted(self.paths.items()) if not distinct else ():
            expressions.append(_length(name))
            for function in ast.PathFunction:
                if function is ast.PathFunction.NODES or has_cost:
                    expressions.append(ast.PathCall(function, _variable(name), _NOWHERE))
        projections = self._with_aliases(expressions)
        if distinct or not self.takes(Construct.OBJECT, 20):
            return projections
        return *projections, ast.Projection(self._object(), ast.Name("an_object", _NOWHERE))

    def _object(self) -> ast.ObjectOf:
        """Values of a variable by name: all properties, or one of them, and what is computed."""
        variable = _variable(self.choose(sorted(self.scope)))
        values: list[ast.NamedValue | ast.AllOf] = [
            ast.NamedValue(ast.Name("an_id", _NOWHERE), _property(variable.name, "id"))
        ]
        if self.chance(50):
            values.append(ast.AllOf(variable, _NOWHERE))
        if self.chance(50):
            value, type_ = self._computed(self.scope)
            if isinstance(type_, Scalar):
                values.append(ast.NamedValue(ast.Name("computed_value", _NOWHERE), value))
        return ast.ObjectOf(variable, tuple(values), _NOWHERE)

    def grouped_columns(self) -> tuple[ast.Projection, ...]:
        """Columns of which at least one is an aggregate."""
        keys: list[ast.Expression] = [
            column for column, type_, _ in _columns(self.scope) if can_be_sorted(type_)
        ]
        keys += self.kept_words(sortable=True)
        keys += [_length(name) for name in sorted(self.paths)]
        chosen: list[ast.Expression] = []
        for _ in range(self.draw(st.integers(0, 2))):
            value, type_ = self._computed(self.scope)
            is_key = self.chance(25) and can_be_sorted(type_)
            chosen.append(value if is_key else self.choose(keys))
        if self.takes(Construct.CONSTANT, 15):
            chosen.append(self.value(self.choose(_CONSTANTS)))
        aggregates = [self._aggregate() for _ in range(self.draw(st.integers(1, 3)))]
        return self._with_aliases(self.draw(st.permutations([*chosen, *aggregates])))

    def skip(self) -> ast.Integer | ast.Variable | None:
        """A few rows to leave out, as a number or a parameter; or none."""
        return self.limit() if self.chance(25) else None

    def orderings(
        self, projections: Sequence[ast.Projection], *, grouped: bool, distinct: bool = False
    ) -> tuple[ast.Ordering, ...]:
        """Order keys: columns by name or by value, other values of the rows, other aggregates."""
        sortable: list[ast.Expression] = [
            column for column, type_, _ in _columns(self.scope) if can_be_sorted(type_)
        ]
        sortable += self.kept_words(sortable=True)
        candidates = [
            projection
            for projection in projections
            if (grouped or projection.expression in sortable)
            and not _has_no_order(projection)
            and not _is_bare_constant(projection)
        ]
        orderings: list[ast.Ordering] = []
        for _ in range(self.draw(st.integers(0, 2))):
            if distinct and not grouped:
                if candidates:
                    orderings.append(ast.Ordering(self._column_key(self.choose(candidates)), None))
                continue
            expression: ast.Expression = (
                self._aggregate(_SORTABLE_AGGREGATES) if grouped else self.choose(sortable)
            )
            if not grouped and self.chance(20):
                value, type_ = self._computed(self.scope)
                expression = value if can_be_sorted(type_) else expression
            if candidates and self.chance(60):
                expression = self._column_key(self.choose(candidates))
            direction = self.choose((None, ast.SortDirection.ASC, ast.SortDirection.DESC))
            orderings.append(ast.Ordering(expression, direction))
        return tuple(orderings)

    def _column_key(self, column: ast.Projection) -> ast.Expression:
        assert not isinstance(column.expression, ast.AllOf | ast.ObjectOf), "it is no key"
        return ast.Alias(column.alias) if column.alias else column.expression

    def limit(self) -> ast.Integer | ast.Variable | None:
        """A small limit, as a number or a parameter; or none."""
        if self.chance(50):
            return None
        count = self.draw(st.integers(0, 5))
        if self.chance(70):
            return ast.Integer(count, _NOWHERE)
        return self._parameter(self.choose((Scalar.I32, Scalar.I64, Scalar.U64)), count)

    def value(self, type_: PropertyType, *, null: bool = False) -> ast.Expression:
        """A literal or a parameter of this type."""
        if type_ is Scalar.DATETIME and self.chance(10):
            return ast.Now(_NOWHERE)
        drawn = self.draw(values(type_))
        if self.chance(60):
            return _literal(drawn)
        if type_ in (Scalar.F32, Scalar.F64) and self.chance(25):
            # No literal has such a value.
            drawn = self.choose((math.nan, math.inf, -math.inf))
        parameter_type = Scalar.STRING if isinstance(type_, EnumType) else type_
        missing = null and self.chance(15)
        return self._parameter(parameter_type, None if missing else drawn, nullable=missing)

    def _start(self, scope: dict[str, BoundType]) -> ast.Clause:
        """A binding, or a walk between unbound ends."""
        edges = _walkable(self.catalog.edge_types)
        # Such a walk binds nothing of several types.
        if edges and self.chance(5 if self.is_about(Construct.TYPES) else 25):
            edge = self.choose(edges)
            source, destination = self._name(), self._name()
            scope[source] = self.catalog.node_type(edge.source)
            scope[destination] = self.catalog.node_type(edge.target)
            return self._traversal([edge], _variable(source), _variable(destination), scope)
        name = self._name()
        scope[name] = node = self._node_type()
        return self._binding(name, node)

    def _node_type(self) -> NodeType | SeveralTypes:
        """A node type, or several."""
        types = [self.choose(self.catalog.node_types)]
        others = [each for each in self.catalog.node_types if each not in types]
        if others and self.takes(Construct.TYPES, 20):
            types.append(self.choose(others))
        bound = together(types)
        assert not isinstance(bound, EdgeType), "they are types of nodes"
        return bound

    def _binding(self, name: str, node: NodeType | SeveralTypes) -> ast.Binding:
        matchable = [
            property_
            for property_ in node.properties
            if isinstance(property_.type, Scalar | EnumType)
            or (isinstance(property_.type, ListType) and isinstance(property_.type.item, Scalar))
        ]
        properties: list[Property] = []
        if isinstance(node, NodeType) and node.key and self.chance(40):
            # Engines have a separate path that looks up a key instead of reading the table.
            properties = [node.property_named(name) for name in node.key]
        elif matchable and self.chance(10 if self.is_about(Construct.TYPES) else 30):
            properties = [self.choose(matchable)]
        matches: list[ast.PropertyMatch] = []
        for property_ in properties:
            type_ = property_.type.item if isinstance(property_.type, ListType) else property_.type
            value = self.value(type_, null=True)
            matches.append(ast.PropertyMatch(ast.Name(property_.name, _NOWHERE), value))
        first, *others = (ast.Name(member.name, _NOWHERE) for member in members_of(node))
        return ast.Binding(_variable(name), first, tuple(matches), tuple(others))

    def _walk(self, origins: _Scope, scope: dict[str, BoundType]) -> ast.Clause:
        """A walk from or to a node of `origins`; a binding of it if its type has no edges."""
        origin = self.choose(_nodes(origins))
        node = origins[origin]
        assert not isinstance(node, EdgeType), "_nodes omits edges"
        names = {member.name for member in members_of(node)}
        touching = [
            edge_type
            for edge_type in _walkable(self.catalog.edge_types)
            if names & {edge_type.source, edge_type.target}
        ]
        if not touching:
            return self._binding(origin, node)
        edges = [self.choose(touching)]
        if self.takes(Construct.TYPES, 25):
            edges.append(self.choose(touching))
        # Read from left to right, the types decide: forwards, if they allow it.
        ways = [(edge.source, edge.target, edge.source in names) for edge in edges]
        others = [target if is_source else source for source, target, is_source in ways]
        known = [
            name
            for name in _nodes(scope)
            if {member.name for member in members_of(scope[name])} == set(others)
            # One node is both ends only of edges between nodes of one type.
            and (name != origin or all(edge.source == edge.target for edge in edges))
        ]
        end = _variable("_")
        if known and self.chance(30):
            end = _variable(self.choose(known))
        elif self.chance(75):
            end = _variable(self._name())
            scope[end.name] = together(map(self.catalog.node_type, others))
        source, destination = _variable(origin), end
        if len(edges) == 1 and isinstance(node, NodeType):
            source, destination = self.draw(st.permutations([source, destination]))
        return self._traversal(edges, source, destination, scope)

    def _traversal(
        self,
        edges: Sequence[EdgeType],
        source: ast.Variable,
        destination: ast.Variable,
        scope: dict[str, BoundType],
    ) -> ast.Traversal:
        ends = {end for edge in edges for end in (edge.source, edge.target)}
        chains = len(ends) == 1
        hops: ast.Hops | None = None
        edge_variable: ast.Variable | None = None
        if self.takes(Construct.WALK, 30) or (
            self.constructs is not None and self.takes(Construct.PATH, 0)
        ):
            low = self.draw(st.integers(1, 3)) if chains else 1
            high = self.draw(st.integers(low, 4)) if chains or len(set(edges)) == 1 else 1
            hops = ast.Hops(ast.Integer(low, _NOWHERE), ast.Integer(high, _NOWHERE), _NOWHERE)
        elif self.takes(Construct.EDGE, 30):
            edge_variable = _variable(self._name())
            scope[edge_variable.name] = together(edges)
        first, *others = (
            ast.Name(self.choose((edge.word, edge.word.lower())), _NOWHERE) for edge in edges
        )
        path: ast.PathNode | None = None
        are_named = not (source.is_anonymous or destination.is_anonymous)
        if edge_variable is None and are_named and (chains or len(set(edges)) == 1):
            path = self._path(edges, hops)
        return ast.Traversal(
            source,
            edge_variable,
            first,
            undirected=chains and self.chance(25),
            hops=hops,
            destination=destination,
            other_edges=tuple(others),
            path=path,
        )

    def _path(self, edges: Sequence[EdgeType], hops: ast.Hops | None) -> ast.PathNode | None:
        """A path of a walk along these edges, or none."""
        if not self.takes(Construct.PATH, 20 if hops is None else 50):
            return None
        weights = [
            each.name
            for each in together(edges).properties
            if isinstance(each.type, Scalar) and each.type.is_numeric
        ]
        can_be_weighted = hops is None or (hops.low is not None and hops.low.value == 1)
        weight: ast.Name | None = None
        if weights and can_be_weighted and self.chance(50):
            weight = ast.Name(self.choose(weights), _NOWHERE)
        name = self._name()
        self.paths[name] = weight is not None
        return ast.PathNode(_variable(name), weight)

    def _path_condition(self, name: str) -> ast.Condition:
        count = ast.Integer(self.draw(st.integers(0, 3)), _NOWHERE)
        sign = self.choose((*_EQUALITY, *_ORDER_SIGNS))
        return _comparison(_length(name), sign, count)

    def _condition(self, scope: _Scope, *, depth: int = 0) -> ast.Condition | None:
        """A condition of conditions, or one on a column; None if no operator fits what is drawn."""
        if depth > self.depth_max or not self.takes(Construct.CONDITION, 30):
            return self._filter(scope)
        if self.chance(35):
            inner = self._condition(scope, depth=depth + 1)
            if inner is None or (depth == 0 and isinstance(inner, ast.Existence)):
                # A clause that says what does not exist is no condition.
                return inner
            return ast.Inverse(inner, _NOWHERE)
        drawn = [self._condition(scope, depth=depth + 1) for _ in range(self.choose((2, 2, 3)))]
        parts = tuple(part for part in drawn if part is not None)
        if len(parts) < 2:
            return parts[0] if parts else None
        return ast.Junction(self.choose(list(ast.Connective)), parts)

    def _constant_condition(self) -> ast.Condition:
        """A comparison of two values that are known before any row is read."""
        # Mostly numbers, which have NaN and several widths.
        type_ = self.choose((*_CONSTANTS, Scalar.F64, Scalar.F32))
        sign = self.choose((*_EQUALITY, *_ORDER_SIGNS))
        left, right = self.value(type_, null=True), self.value(type_, null=True)
        # A literal must fit the type of the parameter beside it.
        if type_.is_numeric and isinstance(left, ast.Variable) and self.chance(30):
            right = self._foreign_number(type_)
        if type_.is_float and self.chance(40):
            left = self._parameter(type_, math.nan)
        sides = (left, right) if self.chance(50) else (right, left)
        return ast.Comparison(sides[0], sign, sides[1], _NOWHERE)

    def _filter(self, scope: _Scope) -> ast.Condition | None:
        """A condition on a column of the scope; None if no operator fits the drawn column."""
        if self.kept and self.chance(30):
            return self._kept_condition(scope)
        if self.nesting < self.depth_max and self.takes(Construct.SUBQUERY, 5):
            return ast.Existence(self._inner_block(scope)[0], _NOWHERE)
        if self.takes(Construct.EXPRESSION, 20):
            return self._compared(scope)
        if not self.chance(92):
            return self._identity(scope)
        column, type_, nullable = self.choose(_columns(scope))
        if (nullable or column.variable.name in self.optional) and self.chance(15):
            return ast.NullTest(column, negated=self.draw(st.booleans()))
        match type_:
            case ListType(Scalar() as item):
                value = self.value(item, null=True)
                if self.chance(50):
                    return _comparison(value, ast.Sign.IN, column)
                return _comparison(column, ast.Sign.CONTAINS, value)
            case Scalar() | EnumType():
                return self._comparison(column, type_, scope)
            case _:
                return None

    def stage(self, clauses: tuple[ast.Clause, ...]) -> ast.Stage:
        """A stage after the block of these clauses; the scope is then what it keeps."""
        before, is_grouped = dict(self.scope), self.draw(st.booleans())
        distinct = self.takes(Construct.DISTINCT, 15)
        names = [name for name in sorted(before) if self.chance(60)]
        values: dict[str, tuple[ast.Expression, PropertyType]] = {}
        for _ in range(self.draw(st.integers(0 if names and not is_grouped else 1, 2))):
            drawn = self._kept_value(sortable=is_grouped or distinct)
            values[self._name()] = drawn
        if is_grouped:
            values[self._name()] = self._kept_aggregate()
        projections = [ast.Projection(_variable(name), None) for name in names]
        projections += [
            ast.Projection(value, ast.Name(name, _NOWHERE)) for name, (value, _) in values.items()
        ]
        sortable = [name for name, (_, type_) in values.items() if can_be_sorted(type_)]
        orderings = [
            ast.Ordering(_word(name), self.choose((None, ast.SortDirection.DESC)))
            for name in sortable
            if self.chance(40)
        ]
        limit, skip = self.limit(), self.skip()
        self.scope = {name: before[name] for name in names}
        self.kept = {name: type_ for name, (_, type_) in values.items()}
        self.paths = {}
        condition = None
        if self.kept and self.chance(30):
            condition = self._kept_condition(self.scope)
        ordered = tuple(orderings)
        kept = tuple(projections)
        return ast.Stage(clauses, kept, ordered, limit, skip, distinct, condition, _NOWHERE)

    def _kept_value(self, *, sortable: bool) -> tuple[ast.Expression, PropertyType]:
        """A value that a stage can keep, and its type."""
        options: list[tuple[ast.Expression, PropertyType]] = [
            (column, type_)
            for column, type_, _ in _columns(self.scope)
            if can_be_sorted(type_)
            or (isinstance(type_, ListType) and type_.item is not BlobType() and not sortable)
        ]
        options += [
            (_word(name), type_)
            for name, type_ in self.kept.items()
            if can_be_sorted(type_) or not sortable
        ]
        if options and self.chance(30):
            value, type_ = self._computed(self.scope)
            if isinstance(type_, Scalar):
                return value, type_
        options.append((_literal(self.draw(values(Scalar.I64))), Scalar.I64))
        options += [(_length(name), Scalar.I64) for name in sorted(self.paths)]
        if not sortable:
            options += [
                (
                    ast.PathCall(ast.PathFunction.NODES, _variable(name), _NOWHERE),
                    ListType(Scalar.STRING),
                )
                for name in sorted(self.paths)
            ]
        return self.choose(options)

    def _kept_aggregate(self) -> tuple[ast.Expression, PropertyType]:
        """An aggregate that a stage can keep, and its type; none that rounds."""
        function = self.choose((*_SORTABLE_AGGREGATES, AggregateFunction.COLLECT))
        options: list[tuple[ast.Expression, PropertyType]] = [
            *((column, type_) for column, type_, _ in _columns(self.scope)),
            *((_word(name), type_) for name, type_ in self.kept.items()),
        ]
        fitting = [option for option in options if _accepts_exactly(function, option[1])]
        if not fitting:
            star = ast.Star(_NOWHERE)
            count = AggregateFunction.COUNT
            return ast.AggregateCall(count, False, star, _NOWHERE), Scalar.I64  # noqa: FBT003
        argument, type_ = self.choose(fitting)
        distinct = can_be_sorted(type_) and self.chance(30)
        call = ast.AggregateCall(function, distinct, argument, _NOWHERE)
        return call, _aggregated_type(function, type_)

    def kept_words(self, *, sortable: bool) -> list[ast.Expression]:
        """The values that the stage before kept; on demand, those that rows are sorted by."""
        return [
            _word(name) for name, type_ in self.kept.items() if can_be_sorted(type_) or not sortable
        ]

    def _kept_condition(self, scope: _Scope) -> ast.Condition:
        """A condition on a value that the stage before kept."""
        name = self.choose(sorted(self.kept))
        type_, word = self.kept[name], _word(name)
        if not isinstance(type_, Scalar | EnumType) or not self.chance(85):
            return ast.NullTest(word, negated=self.draw(st.booleans()))
        sign = self.choose((*_EQUALITY, *_ORDER_SIGNS) if has_order(type_) else _EQUALITY)
        others = [
            column
            for column, other, _ in _columns(scope)
            if are_comparable(type_, other) and (sign in _EQUALITY or has_order(other))
        ]
        if others and self.chance(60):
            return _comparison(word, sign, self.choose(others))
        return _comparison(word, sign, self.value(type_, null=True))

    def _identity(self, scope: _Scope) -> ast.Comparison:
        """A comparison of two variables that may be the same, or of the type of one."""
        sign, name = self.choose(_EQUALITY), self.choose(sorted(scope))
        names = {member.name for member in members_of(scope[name])}
        others = [
            other
            for other, type_ in scope.items()
            if names & {member.name for member in members_of(type_)}
        ]
        if self.chance(70):
            return _comparison(_variable(name), sign, _variable(self.choose(others)))
        type_ = self.choose([*sorted(names), "Person"])
        return _comparison(ast.TypeOf(_variable(name), _NOWHERE), sign, _literal(type_))

    def _computed(self, scope: _Scope, *, depth: int = 0) -> tuple[ast.Expression, PropertyType]:
        """A value that is computed from columns of the scope, and its type."""
        if self.nesting < self.depth_max and self.takes(Construct.SUBQUERY, 10):
            return self._subquery(scope)
        column, type_, _ = self.choose(_columns(scope))
        choice = self.draw(st.integers(1, 100))
        match type_:
            case Scalar() if type_.is_numeric and choice <= 80:
                return self._number(column, type_, scope, depth)
            case Scalar.DATE | Scalar.DATETIME if choice <= 80:
                return self._moment(column, type_)
            case Scalar.STRING | EnumType() if choice <= 80:
                return self._text(column)
            case ListType() if choice <= 80:
                call = ast.FunctionCall(ValueFunction.LENGTH, (column,), _NOWHERE)
                return call, Scalar.I64
            case Scalar() | EnumType():
                return self._choice(column, type_, scope)
            case _:
                return column, type_

    def _subquery(
        self, scope: _Scope, *, is_returned: bool = False
    ) -> tuple[ast.Expression, PropertyType]:
        """An aggregate of what is matched for a row of the scope, and its type.

        Args:
            is_returned: Whether nothing is made of it, so that it may depend on rounding.
        """
        clauses, inner = self._inner_block(scope)
        function = self.choose(_SORTABLE_AGGREGATES)
        arguments = [
            (column, type_)
            for column, type_, _ in _columns(inner)
            if (_accepts if is_returned else _accepts_exactly)(function, type_)
        ]
        if not arguments or (function is AggregateFunction.COUNT and self.chance(70)):
            function = AggregateFunction.COUNT
            return ast.Subquery(function, clauses, None, _NOWHERE), Scalar.I64
        argument, type_ = self.choose(arguments)
        value = ast.Subquery(function, clauses, argument, _NOWHERE)
        is_typed = function in (AggregateFunction.MIN, AggregateFunction.MAX)
        return value, type_ if is_typed else Scalar.I64

    def _inner_block(self, scope: _Scope) -> tuple[tuple[ast.Clause, ...], dict[str, BoundType]]:
        self.nesting += 1
        paths = dict(self.paths)
        depth = self.depth_max if self.chance(70) else self.depth_max - 1
        clauses, inner = self._scoped_block(scope, depth=depth)
        self.nesting -= 1
        self.paths = paths
        return clauses, inner

    def _number(
        self, column: ast.Expression, type_: Scalar, scope: _Scope, depth: int
    ) -> tuple[ast.Expression, PropertyType]:
        others: list[tuple[ast.Expression, Scalar]] = [
            (other, kind)
            for other, kind, _ in _columns(scope)
            if isinstance(kind, Scalar) and kind.is_numeric
        ]
        others += [(_literal(value), Scalar.I64) for value in (-2, 0, 1, 3)]
        others += [(_literal(value), Scalar.F64) for value in (0.0, 0.5, -2.5)]
        if type_.is_float and self.chance(40):
            function = self.choose(_ROUNDING)
            return ast.FunctionCall(function, (column,), _NOWHERE), Scalar.F64
        other, kind = self.choose(others)
        sign = self.choose(list(ast.ArithmeticSign))
        is_whole = type_.is_integer and kind.is_integer
        if sign is ast.ArithmeticSign.MODULO and not is_whole:
            sign = ast.ArithmeticSign.OVER
        if {type_, kind} in _TOO_WIDE and sign is ast.ArithmeticSign.TIMES:
            sign = ast.ArithmeticSign.PLUS
        value: ast.Expression = ast.Arithmetic(column, sign, other, _NOWHERE)
        result = Scalar.I64 if is_whole and sign is not ast.ArithmeticSign.OVER else Scalar.F64
        if self.chance(20):
            value = ast.FunctionCall(ValueFunction.ABS, (value,), _NOWHERE)
        if depth < 1 and result is Scalar.F64 and self.chance(30):
            return self._number(value, result, scope, depth + 1)
        return value, result

    def _moment(
        self, column: ast.Expression, type_: PropertyType
    ) -> tuple[ast.Expression, PropertyType]:
        if self.chance(30):
            return ast.FunctionCall(self.choose(_PARTS), (column,), _NOWHERE), Scalar.I64
        if self.chance(30):
            other = _literal(self.draw(values(type_)))
            between = Scalar.I64 if type_ is Scalar.DATE else Scalar.F64
            return ast.Arithmetic(column, ast.ArithmeticSign.MINUS, other, _NOWHERE), between
        sign = self.choose((ast.ArithmeticSign.PLUS, ast.ArithmeticSign.MINUS))
        days = _literal(self.choose((-1, 0, 30, 400, 3_000_000, 2**62)))
        return ast.Arithmetic(column, sign, days, _NOWHERE), type_

    def _text(self, column: ast.Expression) -> tuple[ast.Expression, PropertyType]:
        function = self.choose(_TEXT_FUNCTIONS)
        arguments: list[ast.Expression] = [column]
        match function:
            case ValueFunction.SUBSTRING:
                numbers = st.sampled_from((-(2**40), -1, 0, 1, 2, 3, 2**40))
                count = self.choose((1, 2))
                arguments += [_literal(self.draw(numbers)) for _ in range(count)]
            case ValueFunction.CONCAT:
                arguments.append(_literal(self.draw(values(Scalar.STRING))))
            case ValueFunction.REPLACE:
                arguments += [_literal(self.draw(values(Scalar.STRING))) for _ in range(2)]
            case _:
                pass
        is_number = function is ValueFunction.LENGTH
        type_ = Scalar.I64 if is_number else Scalar.STRING
        return ast.FunctionCall(function, tuple(arguments), _NOWHERE), type_

    def _choice(
        self, column: ast.Expression, type_: Scalar | EnumType, scope: _Scope
    ) -> tuple[ast.Expression, PropertyType]:
        other = _literal(self.draw(values(type_)))
        result: PropertyType = type_
        if isinstance(type_, EnumType):
            result = Scalar.STRING
        elif type_.is_integer:
            result = Scalar.U64 if type_ in (Scalar.U32, Scalar.U64) else Scalar.I64
        elif type_.is_float:
            result = Scalar.F64
        condition = self._filter(scope)
        if condition is None or self.chance(40):
            call = ast.FunctionCall(ValueFunction.COALESCE, (column, other), _NOWHERE)
            return call, result
        otherwise = self.choose((None, other, ast.Null(_NOWHERE)))
        if otherwise is not other and result not in (Scalar.I64, Scalar.U64):
            # Without a literal beside it, an enum or a float remains what it is.
            result = type_
        return ast.Case(((condition, column),), otherwise, _NOWHERE), result

    def _compared(self, scope: _Scope) -> ast.Condition | None:
        """A comparison of computed values."""
        value, type_ = self._computed(scope)
        if not isinstance(type_, Scalar | EnumType):
            return None
        if self.chance(15):
            return ast.NullTest(value, self.draw(st.booleans()))
        sign = self.choose((*_EQUALITY, *_ORDER_SIGNS) if has_order(type_) else _EQUALITY)
        other: ast.Expression = _literal(self.draw(values(type_)))
        if isinstance(type_, Scalar) and type_.is_numeric and self.chance(60):
            number, kind = self._computed(scope)
            is_number = isinstance(kind, Scalar) and kind.is_numeric
            other = number if is_number else self._foreign_number(type_)
        return ast.Comparison(value, sign, other, _NOWHERE)

    def _comparison(
        self, column: ast.PropertyOf, type_: Scalar | EnumType, scope: _Scope
    ) -> ast.Comparison:
        if type_ is Scalar.STRING and self.chance(30):
            sign = self.choose((ast.Sign.CONTAINS, ast.Sign.STARTS_WITH))
            return _comparison(column, sign, self.value(type_, null=True))
        if self.chance(15):
            items = _literal(self.draw(st.lists(values(type_), min_size=1, max_size=3)))
            if self.chance(50):
                return _comparison(column, ast.Sign.IN, items)
            return _comparison(items, ast.Sign.CONTAINS, column)
        if type_ is not Scalar.BOOL and isinstance(type_, Scalar) and self.chance(10):
            drawn = self.draw(values(ListType(type_)))
            return _comparison(column, ast.Sign.IN, self._parameter(ListType(type_), drawn))
        sign = self.choose((*_EQUALITY, *_ORDER_SIGNS) if has_order(type_) else _EQUALITY)
        others = [
            other
            for other, other_type, _ in _columns(scope)
            if other != column
            and are_comparable(type_, other_type)
            and (sign in _EQUALITY or has_order(other_type))
        ]
        if others and self.chance(20):
            return _comparison(column, sign, self.choose(others))
        value = self.value(type_, null=True)
        if isinstance(type_, Scalar) and type_.is_numeric and self.chance(30):
            value = self._foreign_number(type_)
        sides = (column, value) if self.chance(85) else (value, column)
        return ast.Comparison(sides[0], sign, sides[1], _NOWHERE)

    def _foreign_number(self, type_: Scalar) -> ast.Expression:
        """A number of another type than the one it is compared with."""
        if type_.is_integer and self.chance(50):
            return _literal(self.draw(values(Scalar.F64)))
        if type_.is_float and self.chance(50):
            return _literal(self.draw(values(Scalar.I64)))
        other = self.choose(
            [scalar for scalar in Scalar if scalar.is_numeric and scalar is not type_]
        )
        return self._parameter(other, self.draw(values(other)))

    def _aggregate(
        self, functions: Sequence[AggregateFunction] = tuple(AggregateFunction)
    ) -> ast.AggregateCall:
        # It adds up everything that optional parts have, on every way of matching them.
        if self.chance(40 if self.is_about(Construct.OPTIONAL) else 10):
            star = ast.Star(_NOWHERE)
            return ast.AggregateCall(AggregateFunction.COUNT, False, star, _NOWHERE)  # noqa: FBT003
        function = self.choose(functions)
        columns = [column for column in _columns(self.scope) if _accepts(function, column[1])]
        if not columns:
            function, columns = AggregateFunction.COUNT, _columns(self.scope)
        if self.chance(25):
            value, kind = self._computed(self.scope)
            if _accepts(function, kind) and can_be_sorted(kind):
                return ast.AggregateCall(function, self.chance(30), value, _NOWHERE)
        words = [name for name, type_ in self.kept.items() if _accepts(function, type_)]
        if words and self.chance(40):
            return ast.AggregateCall(function, False, _word(self.choose(words)), _NOWHERE)  # noqa: FBT003
        argument, type_, _ = self.choose(columns)
        distinct = can_be_sorted(type_) and self.chance(30)
        bare = argument.property.text == "id" and self.chance(70)
        return ast.AggregateCall(
            function, distinct, argument.variable if bare else argument, _NOWHERE
        )

    def _with_aliases(self, expressions: Sequence[ast.Expression]) -> tuple[ast.Projection, ...]:
        """Columns of these, with an alias where names collide, and sometimes elsewhere."""
        taken: set[str] = set()
        projections: list[ast.Projection] = []
        for expression in expressions:
            name = print_expression(expression, sigil="")
            alias: ast.Name | None = None
            if name in taken or self.chance(40):
                name = self.choose(_ALIASES)
                while name in taken:
                    name = f"{name}{len(taken)}"
                alias = ast.Name(name, _NOWHERE)
            taken.add(name)
            projections.append(ast.Projection(expression, alias))
        return tuple(projections)

    def _parameter(
        self, type_: PropertyType, value: object, *, nullable: bool = False
    ) -> ast.Variable:
        name = self._name()
        self.parameters.append(ast.ParameterNode(_variable(name), _type(type_), nullable))
        if value is not None or self.chance(50):
            self.values[name] = value
        return _variable(name)

    def _name(self) -> str:
        self.names += 1
        return f"{self.choose(('p', 'order', 'not', 'x_'))}{self.names}"


def _has_no_order(projection: ast.Projection) -> bool:
    """Whether it is a list or an object."""
    match projection.expression:
        case ast.AggregateCall(AggregateFunction.COLLECT) | ast.ObjectOf():
            return True
        case _:
            return False


def _is_bare_constant(projection: ast.Projection) -> bool:
    """Whether it is a literal, a parameter or `now()` without a name to order by."""
    constant = ast.Literal | ast.Variable | ast.Now
    return projection.alias is None and isinstance(projection.expression, constant)


def _nodes(scope: _Scope) -> list[str]:
    return [name for name, type_ in scope.items() if is_node(type_)]


def _expandable(scope: _Scope) -> list[str]:
    """The variables of which `.*` is a column or several, and none of blobs."""
    types = {name: [each.type for each in type_.properties] for name, type_ in scope.items()}
    return [
        name
        for name in sorted(scope)
        if any(isinstance(type_, Scalar | EnumType) for type_ in types[name])
        and ListType(BlobType()) not in types[name]
    ]


def _walkable(edges: Sequence[EdgeType]) -> list[EdgeType]:
    """The edges whose words are never parsed as an operator."""
    return [edge for edge in edges if edge.word.lower() not in set(ast.Sign)]


def _columns(scope: _Scope) -> list[tuple[ast.PropertyOf, PropertyType, bool]]:
    """Every column that can be read, its type, and whether it may be null."""
    columns: list[tuple[ast.PropertyOf, PropertyType, bool]] = []
    for name, type_ in scope.items():
        system_columns = ("id",) if is_node(type_) else ("id", "src", "dst")
        columns += [(_property(name, column), Scalar.STRING, False) for column in system_columns]
        columns += [
            (_property(name, property_.name), property_.type, property_.nullable)
            for property_ in type_.properties
        ]
    return columns


def _accepts(function: AggregateFunction, type_: PropertyType) -> bool:
    match function:
        case AggregateFunction.COUNT:
            return True
        case AggregateFunction.COLLECT:
            return can_be_sorted(type_)
        case AggregateFunction.MIN | AggregateFunction.MAX:
            return has_order(type_)
        case AggregateFunction.SUM | AggregateFunction.AVG:
            return isinstance(type_, Scalar) and type_.is_numeric


def _accepts_exactly(function: AggregateFunction, type_: PropertyType) -> bool:
    """Whether an aggregate of such values is the same in whichever order they are added."""
    is_float = isinstance(type_, Scalar) and type_.is_float
    if function is AggregateFunction.AVG or (function is AggregateFunction.SUM and is_float):
        return False
    if function is AggregateFunction.COLLECT and is_float:
        return False
    return _accepts(function, type_)


def _aggregated_type(function: AggregateFunction, type_: PropertyType) -> PropertyType:
    match function:
        case AggregateFunction.COUNT:
            return Scalar.I64
        case AggregateFunction.COLLECT:
            return ListType(type_ if isinstance(type_, Scalar) else Scalar.STRING)
        case AggregateFunction.SUM:
            return Scalar.U64 if type_ in (Scalar.U32, Scalar.U64) else Scalar.I64
        case _:
            return type_


def _property(variable: str, name: str) -> ast.PropertyOf:
    return ast.PropertyOf(_variable(variable), ast.Name(name, _NOWHERE), _NOWHERE)


def _length(path: str) -> ast.FunctionCall:
    return ast.FunctionCall(ValueFunction.LENGTH, (_variable(path),), _NOWHERE)


def _word(name: str) -> ast.Alias:
    return ast.Alias(ast.Name(name, _NOWHERE))


def _variable(name: str) -> ast.Variable:
    return ast.Variable(name, _NOWHERE)


def _comparison(left: ast.Expression, sign: ast.Sign, right: ast.Expression) -> ast.Comparison:
    return ast.Comparison(left, sign, right, _NOWHERE)


def _literal(value: object) -> ast.Literal:
    match value:
        case bool():
            return ast.Boolean(value, _NOWHERE)
        case int():
            return ast.Integer(value, _NOWHERE)
        case float():
            return ast.Decimal(value, _NOWHERE)
        case str():
            return ast.Text(value, _NOWHERE)
        case datetime():
            return ast.Moment(ast.MomentKind.DATETIME, value.isoformat(), _NOWHERE)
        case date():
            return ast.Moment(ast.MomentKind.DATE, value.isoformat(), _NOWHERE)
        case list():
            return ast.ListLiteral(tuple(map(_literal, value)), _NOWHERE)
        case _:
            raise AssertionError(value)


def _type(type_: PropertyType) -> ast.ParameterTypeNode:
    match type_:
        case ListType(item):
            return ast.ListOf(ast.Name(str(item), _NOWHERE))
        case VectorType(dimension):
            return ast.VectorOf(ast.Integer(dimension, _NOWHERE))
        case _:
            return ast.NamedType(ast.Name(str(type_), _NOWHERE))
