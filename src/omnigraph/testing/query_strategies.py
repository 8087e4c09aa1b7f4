"""Hypothesis strategies: random well-typed read queries over a catalog, with their parameters.

Values come from small pools (`values`), so that data drawn from the same pools has rows for filters
to keep and rows for them to drop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Final, TypeVar

from hypothesis import strategies as st

from omnigraph.lang.source import Span
from omnigraph.model.types import BlobType, EnumType, ListType, PropertyType, Scalar, VectorType
from omnigraph.query import ast
from omnigraph.query.operands import are_comparable, can_be_sorted, has_order
from omnigraph.query.printer import print_expression, print_queries
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType, Property, SchemaType

_ValueT = TypeVar("_ValueT")

_NOWHERE: Final = Span(0, 0)
_DEPTH_MAX: Final = 2
_EQUALITY: Final = (ast.Sign.EQ, ast.Sign.NE)
_ORDER_SIGNS: Final = (ast.Sign.LT, ast.Sign.LE, ast.Sign.GT, ast.Sign.GE)
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

    They bind, walk in every form, negate, filter by every operator, group, order and limit, but
    use no search functions, whose scores may differ between engines.
    """
    return _cases(catalog)


@st.composite
def _cases(draw: st.DrawFn, catalog: Catalog) -> QueryCase:
    builder = _Query(draw, catalog)
    clauses = builder.block({}, depth=0)
    is_grouped = draw(st.booleans())
    projections = builder.grouped_columns() if is_grouped else builder.columns()
    orderings = builder.orderings(projections, grouped=is_grouped)
    limit = builder.limit()
    query = ast.QueryNode(
        ast.Name(draw(st.sampled_from(("q", "query", "match", "limit"))), _NOWHERE),
        tuple(builder.parameters),
        draw(st.none() | st.sampled_from(("", 'say "hi"\n'))),
        None,
        ast.Read(clauses, projections, orderings, limit),
    )
    return QueryCase(query, builder.values)


_Scope = Mapping[str, SchemaType]


@dataclass(slots=True)
class _Query:
    """One query under construction.

    Attributes:
        scope: The types of the variables of the outermost block, once it is complete.
    """

    draw: st.DrawFn
    catalog: Catalog
    parameters: list[ast.ParameterNode] = field(default_factory=list)
    values: dict[str, object] = field(default_factory=dict)
    scope: dict[str, SchemaType] = field(default_factory=dict)
    names: int = 0

    def chance(self, percent: int) -> bool:
        """True with about this probability."""
        return self.draw(st.integers(1, 100)) <= percent

    def choose(self, options: Sequence[_ValueT]) -> _ValueT:
        """One of these."""
        return self.draw(st.sampled_from(options))

    def block(self, outer: _Scope, *, depth: int) -> tuple[ast.Clause, ...]:
        """Clauses that use a variable of `outer`, if there is one."""
        scope: dict[str, SchemaType] = dict(outer)
        clauses: list[ast.Clause] = []
        if outer:
            name = self.choose(_nodes(outer))
            clauses.append(
                self._filter({name: outer[name]}) or self._walk({name: outer[name]}, scope)
            )
        else:
            clauses.append(self._start(scope))
        clauses += [self._walk(scope, scope) for _ in range(self.draw(st.integers(0, 3)))]
        if self.chance(20):
            name = self._name()
            scope[name] = node = self.choose(self.catalog.node_types)
            clauses.append(self._binding(name, node))
        filters = [self._filter(scope) for _ in range(self.draw(st.integers(0, 3)))]
        clauses += [filter_ for filter_ in filters if filter_ is not None]
        if depth < _DEPTH_MAX and self.chance(35):
            clauses.append(ast.Negation(self.block(scope, depth=depth + 1), _NOWHERE))
        if depth == 0:
            self.scope = scope
        return tuple(clauses)

    def columns(self) -> tuple[ast.Projection, ...]:
        """Columns of an ungrouped query; no blobs, which engines read on demand."""
        expressions: list[ast.Expression] = [_variable(self.choose(sorted(self.scope)))]
        readable = [
            column
            for column, type_, _ in _columns(self.scope)
            if type_ not in (BlobType(), ListType(BlobType()))
        ]
        for _ in range(self.draw(st.integers(0, 3))):
            is_constant = self.chance(20)
            expressions.append(self.value(Scalar.I64) if is_constant else self.choose(readable))
        return self._with_aliases(expressions)

    def grouped_columns(self) -> tuple[ast.Projection, ...]:
        """Columns of which at least one is an aggregate."""
        keys = [column for column, type_, _ in _columns(self.scope) if can_be_sorted(type_)]
        chosen = [self.choose(keys) for _ in range(self.draw(st.integers(0, 2)))]
        aggregates = [self._aggregate() for _ in range(self.draw(st.integers(1, 3)))]
        return self._with_aliases(self.draw(st.permutations([*chosen, *aggregates])))

    def orderings(
        self, projections: Sequence[ast.Projection], *, grouped: bool
    ) -> tuple[ast.Ordering, ...]:
        """Order keys: columns by name or by value, other values of the rows, other aggregates."""
        sortable = [column for column, type_, _ in _columns(self.scope) if can_be_sorted(type_)]
        candidates = [
            projection for projection in projections if grouped or projection.expression in sortable
        ]
        orderings: list[ast.Ordering] = []
        for _ in range(self.draw(st.integers(0, 2))):
            expression: ast.Expression = self._aggregate() if grouped else self.choose(sortable)
            if candidates and self.chance(60):
                column = self.choose(candidates)
                expression = ast.Alias(column.alias) if column.alias else column.expression
            direction = self.choose((None, ast.SortDirection.ASC, ast.SortDirection.DESC))
            orderings.append(ast.Ordering(expression, direction))
        return tuple(orderings)

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
        parameter_type = Scalar.STRING if isinstance(type_, EnumType) else type_
        missing = null and self.chance(15)
        return self._parameter(parameter_type, None if missing else drawn, nullable=missing)

    def _start(self, scope: dict[str, SchemaType]) -> ast.Clause:
        """A binding, or a walk between unbound ends."""
        edges = _walkable(self.catalog.edge_types)
        if edges and self.chance(25):
            edge = self.choose(edges)
            source, destination = self._name(), self._name()
            scope[source] = self.catalog.node_type(edge.source)
            scope[destination] = self.catalog.node_type(edge.target)
            return self._traversal(edge, _variable(source), _variable(destination), scope)
        name = self._name()
        scope[name] = node = self.choose(self.catalog.node_types)
        return self._binding(name, node)

    def _binding(self, name: str, node: NodeType) -> ast.Binding:
        matchable = [
            property_
            for property_ in node.properties
            if isinstance(property_.type, Scalar | EnumType)
            or (isinstance(property_.type, ListType) and isinstance(property_.type.item, Scalar))
        ]
        properties: list[Property] = []
        if node.key and self.chance(40):
            # Engines have a separate path that looks up a key instead of reading the table.
            properties = [node.property_named(name) for name in node.key]
        elif matchable and self.chance(30):
            properties = [self.choose(matchable)]
        matches: list[ast.PropertyMatch] = []
        for property_ in properties:
            type_ = property_.type.item if isinstance(property_.type, ListType) else property_.type
            value = self.value(type_, null=True)
            matches.append(ast.PropertyMatch(ast.Name(property_.name, _NOWHERE), value))
        return ast.Binding(_variable(name), ast.Name(node.name, _NOWHERE), tuple(matches))

    def _walk(self, origins: _Scope, scope: dict[str, SchemaType]) -> ast.Clause:
        """A walk from or to a node of `origins`; a binding of it if its type has no edges."""
        origin = self.choose(_nodes(origins))
        node = origins[origin]
        assert isinstance(node, NodeType), "_nodes omits edges"
        edges = [
            edge_type
            for edge_type in _walkable(self.catalog.edge_types)
            if node.name in (edge_type.source, edge_type.target)
        ]
        if not edges:
            return self._binding(origin, node)
        edge = self.choose(edges)
        other = edge.target if edge.source == node.name else edge.source
        known = [name for name in _nodes(scope) if scope[name].name == other]
        end = _variable("_")
        if known and self.chance(30):
            end = _variable(self.choose(known))
        elif self.chance(75):
            end = _variable(self._name())
            scope[end.name] = self.catalog.node_type(other)
        source, destination = self.draw(st.permutations([_variable(origin), end]))
        return self._traversal(edge, source, destination, scope)

    def _traversal(
        self,
        edge: EdgeType,
        source: ast.Variable,
        destination: ast.Variable,
        scope: dict[str, SchemaType],
    ) -> ast.Traversal:
        chains = edge.source == edge.target
        hops: ast.Hops | None = None
        edge_variable: ast.Variable | None = None
        if self.chance(30):
            low = self.draw(st.integers(1, 3)) if chains else 1
            high = self.draw(st.integers(low, 4))
            hops = ast.Hops(ast.Integer(low, _NOWHERE), ast.Integer(high, _NOWHERE), _NOWHERE)
        elif self.chance(30):
            edge_variable = _variable(self._name())
            scope[edge_variable.name] = edge
        return ast.Traversal(
            source,
            edge_variable,
            ast.Name(self.choose((edge.word, edge.word.lower())), _NOWHERE),
            undirected=chains and self.chance(25),
            hops=hops,
            destination=destination,
        )

    def _filter(self, scope: _Scope) -> ast.Clause | None:
        """A condition on a column of the scope; None if no operator fits the drawn column."""
        column, type_, nullable = self.choose(_columns(scope))
        if nullable and self.chance(15):
            return ast.NullTest(column, negated=self.draw(st.booleans()))
        match type_:
            case ListType(Scalar() as item):
                return _comparison(column, ast.Sign.CONTAINS, self.value(item, null=True))
            case Scalar() | EnumType():
                return self._comparison(column, type_, scope)
            case _:
                return None

    def _comparison(
        self, column: ast.PropertyOf, type_: Scalar | EnumType, scope: _Scope
    ) -> ast.Comparison:
        if type_ is Scalar.STRING and self.chance(30):
            sign = self.choose((ast.Sign.CONTAINS, ast.Sign.STARTS_WITH))
            return _comparison(column, sign, self.value(type_, null=True))
        if self.chance(15):
            items = self.draw(st.lists(values(type_), min_size=1, max_size=3))
            return _comparison(_literal(items), ast.Sign.CONTAINS, column)
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

    def _aggregate(self) -> ast.AggregateCall:
        function = self.choose(list(ast.AggregateName))
        columns = [column for column in _columns(self.scope) if _accepts(function, column[1])]
        if not columns:
            function, columns = ast.AggregateName.COUNT, _columns(self.scope)
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


def _nodes(scope: _Scope) -> list[str]:
    return [name for name, type_ in scope.items() if isinstance(type_, NodeType)]


def _walkable(edges: Sequence[EdgeType]) -> list[EdgeType]:
    """The edges whose words are never parsed as an operator."""
    return [edge for edge in edges if edge.word.lower() not in set(ast.Sign)]


def _columns(scope: _Scope) -> list[tuple[ast.PropertyOf, PropertyType, bool]]:
    """Every column that can be read, its type, and whether it may be null."""
    columns: list[tuple[ast.PropertyOf, PropertyType, bool]] = []
    for name, type_ in scope.items():
        system_columns = ("id",) if isinstance(type_, NodeType) else ("id", "src", "dst")
        columns += [(_property(name, column), Scalar.STRING, False) for column in system_columns]
        columns += [
            (_property(name, property_.name), property_.type, property_.nullable)
            for property_ in type_.properties
        ]
    return columns


def _accepts(function: ast.AggregateName, type_: PropertyType) -> bool:
    match function:
        case ast.AggregateName.COUNT:
            return True
        case ast.AggregateName.MIN | ast.AggregateName.MAX:
            return has_order(type_)
        case ast.AggregateName.SUM | ast.AggregateName.AVG:
            return isinstance(type_, Scalar) and type_.is_numeric


def _property(variable: str, name: str) -> ast.PropertyOf:
    return ast.PropertyOf(_variable(variable), ast.Name(name, _NOWHERE), _NOWHERE)


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
