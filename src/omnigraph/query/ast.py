"""The syntax tree of a query text, before any check.

Equality ignores spans, and therefore layout and comments.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum

from omnigraph.lang.source import Span
from omnigraph.query.functions import AggregateFunction, ValueFunction


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
    """A bare word in the place of a value: a column of the result, or of a mutation's row."""

    name: Name

    @property
    def span(self) -> Span:
        """The span of the word."""
        return self.name.span


@dataclass(frozen=True, slots=True)
class Now:
    """`now()`."""

    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class TypeOf:
    """`type($x)`: the name of the type of a node or an edge."""

    variable: Variable
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Star:
    """The `*` of `count(*)`: each row."""

    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """A call of an aggregate function: `count(distinct $x.p)`, `count(*)`."""

    function: AggregateFunction
    distinct: bool
    argument: Expression | Star
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


class ArithmeticSign(StrEnum):
    """The signs of arithmetic, as written; the last three bind more closely."""

    PLUS = "+"
    MINUS = "-"
    TIMES = "*"
    OVER = "/"
    MODULO = "%"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`left sign right`; `-$x.p` is `0 - $x.p`."""

    left: Expression
    sign: ArithmeticSign
    right: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function and its arguments, whose number is not checked yet."""

    function: ValueFunction
    arguments: tuple[Expression, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Case:
    """`case when condition then value … else value end`."""

    branches: tuple[tuple[Condition, Expression], ...]
    otherwise: Expression | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Existence:
    """`exists { … }`: a clause, a condition, or a value."""

    clauses: tuple[Clause, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Subquery:
    """`sum { … value }`: an aggregate over what its clauses match for one row.

    Attributes:
        value: What is aggregated; None if matches are counted.
    """

    function: AggregateFunction
    clauses: tuple[Clause, ...]
    value: Expression | None
    span: Span = field(compare=False)


class PathFunction(StrEnum):
    """The functions of paths alone; `length` is one of texts and lists, too."""

    NODES = "nodes"
    COST = "cost"


@dataclass(frozen=True, slots=True)
class PathCall:
    """`nodes($path)` or `cost($path)`."""

    function: PathFunction
    variable: Variable
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
    | TypeOf
    | AggregateCall
    | SearchCall
    | Arithmetic
    | FunctionCall
    | PathCall
    | Case
    | Existence
    | Subquery
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
    IN = "in"


@dataclass(frozen=True, slots=True)
class PropertyMatch:
    """`name: value` inside the braces of a binding."""

    property: Name
    value: Expression


@dataclass(frozen=True, slots=True)
class Binding:
    """`$x: Type {…}`, or `$x: Type | Other {…}`."""

    variable: Variable
    type: Name
    matches: tuple[PropertyMatch, ...]
    other_types: tuple[Name, ...] = ()

    @property
    def types(self) -> tuple[Name, ...]:
        """All of its types, as written."""
        return self.type, *self.other_types


@dataclass(frozen=True, slots=True)
class Hops:
    """`{m,n}`; a missing number is None, and the type checker refuses it."""

    low: Integer | None
    high: Integer | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class PathNode:
    """`as $path`, or `as $path by weight`."""

    variable: Variable
    weight: Name | None


@dataclass(frozen=True, slots=True)
class Traversal:
    """`$a edge $b`, `$a $w:edge $b`, `$a <edge> {1,3} $b as $path`, `$a edge|other $b`."""

    source: Variable
    edge_variable: Variable | None
    edge: Name
    undirected: bool
    hops: Hops | None
    destination: Variable
    other_edges: tuple[Name, ...] = ()
    path: PathNode | None = None

    @property
    def edges(self) -> tuple[Name, ...]:
        """All of its edge words."""
        return self.edge, *self.other_edges


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left sign right`.

    `$a contains $b` and `$a in $b` are parsed as comparisons even if the schema has an edge of that
    name; `query.blocks` reinterprets them, because the scope knows which names are parameters.
    """

    left: Expression
    sign: Sign
    right: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class NullTest:
    """`value is null`, or `is not null`."""

    operand: Expression
    negated: bool


@dataclass(frozen=True, slots=True)
class Inverse:
    """`not condition`."""

    condition: Condition
    span: Span = field(compare=False)


class Connective(StrEnum):
    """The words between conditions; `and` binds more closely."""

    AND = "and"
    OR = "or"


@dataclass(frozen=True, slots=True)
class Junction:
    """Two or more conditions with one word between them; others among them are in parentheses."""

    connective: Connective
    conditions: tuple[Condition, ...]


Condition = Comparison | NullTest | SearchCall | Existence | Inverse | Junction


@dataclass(frozen=True, slots=True)
class Negation:
    """`not { … }`, or `not exists { … }`, as a clause; within a condition it is an `Inverse`."""

    clauses: tuple[Clause, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class OptionalPart:
    """`optional { … }`."""

    clauses: tuple[Clause, ...]
    span: Span = field(compare=False)


Clause = Binding | Traversal | Negation | OptionalPart | Condition


@dataclass(frozen=True, slots=True)
class AllOf:
    """`$x.*`: a column for each property."""

    variable: Variable
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class NamedValue:
    """`name: value` of an object; `.name` is a property of its variable."""

    name: Name
    value: Expression


@dataclass(frozen=True, slots=True)
class ObjectOf:
    """`$x { .name, .*, name: value }`: values by name in one column."""

    variable: Variable
    values: tuple[NamedValue | AllOf, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Projection:
    """One column of `return`, or several."""

    expression: Expression | AllOf | ObjectOf
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
class Stage:
    """`match { … } with distinct { … } order { … } skip … limit … where …`.

    Attributes:
        clauses: Those of the match before it; none if it follows another stage directly.
        condition: That of `where`, on what the stage keeps.
    """

    clauses: tuple[Clause, ...]
    projections: tuple[Projection, ...]
    orderings: tuple[Ordering, ...]
    limit: Integer | Variable | None
    skip: Integer | Variable | None
    distinct: bool
    condition: Condition | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Read:
    """`match { … } return distinct { … } order { … } skip … limit …`, perhaps after stages.

    Attributes:
        clauses: Those of the last match; none if `return` follows a stage directly.
    """

    clauses: tuple[Clause, ...]
    projections: tuple[Projection, ...]
    orderings: tuple[Ordering, ...]
    limit: Integer | Variable | None
    skip: Integer | Variable | None = None
    distinct: bool = False
    stages: tuple[Stage, ...] = ()


@dataclass(frozen=True, slots=True)
class Assignment:
    """`name: value` of an insert or an update."""

    property: Name
    value: Expression


@dataclass(frozen=True, slots=True)
class Insert:
    """`insert Type { … }`, or `insert Type { … } from match { … }`.

    Attributes:
        clauses: Those of the match whose rows the values are of; None without one.
    """

    type: Name
    assignments: tuple[Assignment, ...]
    span: Span = field(compare=False)
    clauses: tuple[Clause, ...] | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """`update Type set { … } where …`, or `update $x: Type …`.

    A bare word in a condition or a value is a property of the row.

    Attributes:
        row: The variable that the row has in blocks of its conditions and values.
    """

    type: Name
    assignments: tuple[Assignment, ...]
    condition: Condition
    span: Span = field(compare=False)
    row: Variable | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """`delete Type where …`, or `delete $x: Type where …`; as for an update."""

    type: Name
    condition: Condition
    span: Span = field(compare=False)
    row: Variable | None = None


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


def contains(part: object, kinds: tuple[type, ...]) -> bool:
    """Whether a part of a syntax tree is a node of one of these kinds, or has one in it."""
    if isinstance(part, kinds):
        return True
    if isinstance(part, tuple):
        return any(contains(each, kinds) for each in part)
    return is_dataclass(part) and any(
        contains(getattr(part, member.name), kinds) for member in fields(part)
    )
