"""The syntax tree of a query text, before any check.

Equality ignores spans, and therefore layout and comments.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from omnigraph.lang.source import Span


@dataclass(frozen=True, slots=True)
class Name:
    """A type, a property, an edge word or an alias."""

    text: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name`, stored without its `$`; whether it is a parameter is not known yet."""

    name: str
    span: Span = field(compare=False)

    @property
    def is_anonymous(self) -> bool:
        """Whether it is `$_`, which cannot be referred to."""
        return self.name == "_"


@dataclass(frozen=True, slots=True)
class Text:
    """A quoted text, its escapes resolved."""

    value: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number, of any size."""

    value: int
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Decimal:
    """A number with a point, finite."""

    value: float
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Boolean:
    """`true` or `false`."""

    value: bool
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Null:
    """`null`."""

    span: Span = field(compare=False)


class MomentKind(StrEnum):
    """The two literals with the syntax of a call."""

    DATE = "date"
    DATETIME = "datetime"


@dataclass(frozen=True, slots=True)
class Moment:
    """`date("…")` or `datetime("…")`; whether it is a valid date is not known yet."""

    kind: MomentKind
    text: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """`[…]` of literals."""

    items: tuple[Literal, ...]
    span: Span = field(compare=False)


Literal = Text | Integer | Decimal | Boolean | Null | Moment | ListLiteral


@dataclass(frozen=True, slots=True)
class PropertyOf:
    """`$x.name`."""

    variable: Variable
    property: Name
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Alias:
    """A bare word in the place of a value: the name of a column of the result."""

    name: Name

    @property
    def span(self) -> Span:
        """The span of the word."""
        return self.name.span


@dataclass(frozen=True, slots=True)
class Now:
    """`now()`."""

    span: Span = field(compare=False)


class AggregateName(StrEnum):
    """The functions over many rows."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """A call of an aggregate function: `count(distinct $x.p)`."""

    function: AggregateName
    distinct: bool
    argument: Expression
    span: Span = field(compare=False)


class SearchName(StrEnum):
    """The search functions: three that test, three that rank."""

    SEARCH = "search"
    FUZZY = "fuzzy"
    MATCH_TEXT = "match_text"
    NEAREST = "nearest"
    BM25 = "bm25"
    RRF = "rrf"


@dataclass(frozen=True, slots=True)
class SearchCall:
    """A search function and its arguments, whose number is not checked yet."""

    function: SearchName
    arguments: tuple[Expression, ...]
    span: Span = field(compare=False)


Expression = (
    Text
    | Integer
    | Decimal
    | Boolean
    | Null
    | Moment
    | ListLiteral
    | Variable
    | PropertyOf
    | Alias
    | Now
    | AggregateCall
    | SearchCall
)


class Sign(StrEnum):
    """The comparison operators, as written."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    CONTAINS = "contains"
    STARTS_WITH = "starts_with"


@dataclass(frozen=True, slots=True)
class PropertyMatch:
    """`name: value` inside the braces of a binding."""

    property: Name
    value: Expression


@dataclass(frozen=True, slots=True)
class Binding:
    """`$x: Type {…}`."""

    variable: Variable
    type: Name
    matches: tuple[PropertyMatch, ...]


@dataclass(frozen=True, slots=True)
class Hops:
    """`{m,n}`; a missing number is None, and the type checker refuses it."""

    low: Integer | None
    high: Integer | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Traversal:
    """`$a edge $b`, `$a $w:edge $b`, `$a <edge> {1,3} $b`."""

    source: Variable
    edge_variable: Variable | None
    edge: Name
    undirected: bool
    hops: Hops | None
    destination: Variable


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left sign right`.

    `$a contains $b` is parsed as a comparison even if the schema has an edge of that name;
    `query.blocks` reinterprets it, because the scope knows which names are parameters.
    """

    left: Expression
    sign: Sign
    right: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class NullTest:
    """`$x.p is null`, or `is not null`."""

    operand: PropertyOf
    negated: bool


@dataclass(frozen=True, slots=True)
class Negation:
    """`not { … }`."""

    clauses: tuple[Clause, ...]
    span: Span = field(compare=False)


Clause = Binding | Traversal | Comparison | NullTest | SearchCall | Negation


@dataclass(frozen=True, slots=True)
class Projection:
    """One column of `return`."""

    expression: Expression
    alias: Name | None


class SortDirection(StrEnum):
    """A direction, if one is written."""

    ASC = "asc"
    DESC = "desc"


@dataclass(frozen=True, slots=True)
class Ordering:
    """One key of `order`."""

    expression: Expression
    direction: SortDirection | None


@dataclass(frozen=True, slots=True)
class Read:
    """`match { … } return { … } order { … } limit …`."""

    clauses: tuple[Clause, ...]
    projections: tuple[Projection, ...]
    orderings: tuple[Ordering, ...]
    limit: Integer | Variable | None


@dataclass(frozen=True, slots=True)
class Assignment:
    """`name: value` of an insert or an update."""

    property: Name
    value: Expression


@dataclass(frozen=True, slots=True)
class Condition:
    """`name sign value` of a mutation's predicate."""

    property: Name
    sign: Sign
    value: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class NullCondition:
    """`name is null`, or `is not null`, of a mutation's predicate."""

    property: Name
    negated: bool


Predicate = tuple[Condition | NullCondition, ...]
"""All of them must hold."""


@dataclass(frozen=True, slots=True)
class Insert:
    """`insert Type { … }`."""

    type: Name
    assignments: tuple[Assignment, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Update:
    """`update Type set { … } where …`."""

    type: Name
    assignments: tuple[Assignment, ...]
    predicate: Predicate
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Delete:
    """`delete Type where …`."""

    type: Name
    predicate: Predicate
    span: Span = field(compare=False)


Statement = Insert | Update | Delete


@dataclass(frozen=True, slots=True)
class ParameterNode:
    """`$name: type`; nullable if a `?` follows."""

    variable: Variable
    type: ParameterTypeNode
    nullable: bool


@dataclass(frozen=True, slots=True)
class NamedType:
    """A type by name."""

    name: Name


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of a type by name."""

    item: Name


@dataclass(frozen=True, slots=True)
class VectorOf:
    """A vector and its dimension."""

    dimension: Integer


ParameterTypeNode = NamedType | ListOf | VectorOf


@dataclass(frozen=True, slots=True)
class QueryNode:
    """One query, as written."""

    name: Name
    parameters: tuple[ParameterNode, ...]
    description: str | None
    instruction: str | None
    body: Read | tuple[Statement, ...]
