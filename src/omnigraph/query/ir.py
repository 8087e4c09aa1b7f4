"""The typed query: a `.gq` query with every name resolved and every value typed.

An engine needs nothing else to run a query: no catalog, no text, no inference. The docstring of
each node defines its meaning, and holds for every value that `query.compile` returns.

Rows. A read query first produces rows, one column per variable, by solving its `Block`; then it
computes its columns, groups, sorts and limits. Rows are a bag: the multiplicity that the block
defines is part of the answer.

Truth. A filter keeps a row only if it is true. A comparison with null on either side is unknown,
whatever its operator; `Inverse` and `Junction` say what becomes of it.

Values. `String` and enum: str. Integers: int. Floats: float. `Bool`: bool. `Date`: date.
`DateTime`: datetime in UTC. Lists and vectors: tuple. `Blob`: bytes. Null: None.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Final

from omnigraph.choices import Analyzer, Metric, TableKind
from omnigraph.model.names import TypeName
from omnigraph.model.tables import TableKey
from omnigraph.model.types import ObjectMember, PropertyType, Scalar, StructType
from omnigraph.query.functions import AggregateFunction, ValueFunction
from omnigraph.relational.searches import TextTest
from omnigraph.schema.embeds import EmbeddedVector

Value = (
    str
    | int
    | float
    | bool
    | bytes
    | date
    | datetime
    | tuple[str | int | float | bool | bytes | date | datetime, ...]
    | None
)
"""A constant or the value of a parameter, in the Python type of its property type."""

LOCAL_ID: Final = "id()"
TYPE: Final = "type()"
"""Columns of a variable of several types, which no property has the name of: the id of its row,
and the name of its type. Ids are unique within a type, so its `id` is `Type:id`."""

ROW: Final = "the row"
"""The variable of the row that a mutation tests, unless the query names it. None can be so."""

KEPT: Final = "with()"
"""The variable whose columns are the values that a stage kept. No query can bind this name."""

LENGTH: Final = "length"
NODES: Final = "nodes"
COST: Final = "cost"
"""The columns of a path."""


def path_variable(name: str) -> str:
    """The variable of a path that a query calls so, which no query can bind to anything else."""
    return f"{name}()"


def is_row(variable: str) -> bool:
    """Whether a variable is a node or an edge, so that its id identifies it.

    >>> is_row("p"), is_row(KEPT), is_row(path_variable("p"))
    (True, False, False)
    """
    return not variable.endswith("()")


@dataclass(frozen=True, slots=True)
class ColumnValue:
    """The value of a column of the row that a variable is bound to.

    A bare variable in the text is the value of the column `id`.

    Attributes:
        variable: The name without `$`; `ROW` in a mutation, if its row has none.
        column: A property, or `id`; for an edge also `src` and `dst`, which are ids of nodes. Of
            a variable of several types, a property that all of them share, or one of the columns
            `LOCAL_ID` and `TYPE`. Of `KEPT`, the name of a column of the stage before.
        magnitude: Of a whole number that a stage computed: the greatest distance from zero that it
            may have, which may exceed the range of its type. None for any other value.
    """

    variable: str
    column: str
    type: PropertyType
    nullable: bool
    magnitude: int | None = None


@dataclass(frozen=True, slots=True)
class ParameterValue:
    """The value that `parameters.bind` returns for a parameter."""

    name: str
    type: PropertyType
    nullable: bool


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal of the text, or the null or default of a property that an insert omits.

    The type is that of the other side of the comparison if it can hold the value exactly: a whole
    number compared with an F64 is an F64. Otherwise it is the literal's own (I64, or U64 above it;
    F64), and comparing must not round: `int = 2.7` is never true. A literal compared with an F32
    is the nearest F32.
    """

    value: Value
    type: PropertyType

    @property
    def nullable(self) -> bool:
        """Whether this is null."""
        return self.value is None


@dataclass(frozen=True, slots=True)
class Now:
    """The instant of the query: the same value everywhere in it."""

    @property
    def type(self) -> PropertyType:
        """An instant."""
        return Scalar.DATETIME

    @property
    def nullable(self) -> bool:
        """Never."""
        return False


@dataclass(frozen=True, slots=True)
class Call:
    """A function of values of one row."""

    function: ValueFunction
    arguments: tuple[Operand, ...]
    type: PropertyType
    nullable: bool


@dataclass(frozen=True, slots=True)
class Case:
    """The value of the first branch whose condition is true, or else of none of them.

    No TextMatch is in the conditions.
    """

    branches: tuple[tuple[Filter, Operand], ...]
    otherwise: Operand
    type: PropertyType
    nullable: bool


VALUE: Final = "value"
"""The column of the value of a subquery, among the columns of variables."""


@dataclass(frozen=True, slots=True)
class SubqueryValue:
    """The value that a subquery of this row's block has for the row.

    Attributes:
        name: That of the `Subquery` in `Block.subqueries`.
        magnitude: As of a `ColumnValue`: a sum is exact, and need not fit its type.
    """

    name: str
    type: PropertyType
    nullable: bool
    magnitude: int | None = None

    @property
    def column(self) -> ColumnValue:
        """The value as a column of the row that the subquery's name is bound to."""
        return ColumnValue(self.name, VALUE, self.type, self.nullable)


Computed = Call | Case | SubqueryValue

Operand = ColumnValue | ParameterValue | Constant | Now | Computed
"""A value that is defined for one row."""

GivenValue = ParameterValue | Constant | Now
"""A value that is known before any row is read."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A function over the values of the argument in one group of rows; nulls are ignored.

    Attributes:
        distinct: Equal values count once.
    """

    function: AggregateFunction
    argument: Operand
    distinct: bool
    type: PropertyType
    nullable: bool


@dataclass(frozen=True, slots=True)
class Nearest:
    """The distance of a vector from the query's vector: smaller is better.

    Null for no vector, and under COSINE for a vector that is zero.

    Attributes:
        vector: Of type `Vector(n)`.
        query: Of the same type. If a text is looked for, a parameter that has its vector.
        table: The type whose vectors they are.
        embedded: How the vector is kept in step with texts; None if it is not.
        text: The text that is looked for, if it is one.
    """

    vector: ColumnValue
    query: GivenValue
    table: TableKey
    metric: Metric
    embedded: EmbeddedVector | None = None
    text: GivenValue | None = None

    @property
    def type(self) -> PropertyType:
        """A distance."""
        return Scalar.F64

    @property
    def nullable(self) -> bool:
        """Whether there may be no distance."""
        return True


@dataclass(frozen=True, slots=True)
class Bm25:
    """How well a text matches the query's text: larger is better; null if no word matches.

    Attributes:
        table: The type whose texts they are; all of them together make a word rare or common.
    """

    text: ColumnValue
    query: GivenValue
    table: TableKey
    analyzer: Analyzer

    @property
    def type(self) -> PropertyType:
        """A score."""
        return Scalar.F64

    @property
    def nullable(self) -> bool:
        """Whether there may be no match."""
        return True


@dataclass(frozen=True, slots=True)
class Rrf:
    """Rankings of the matching rows combined: the sum of 1 / (k + rank); larger is better.

    The rank of a row in one of the rankings is its place among the rows of its variable that match
    and have a score, from 1 on; equal scores are ranked by id. Only the first of a
    ranking count: `RRF_WINDOW_MIN`, or as many as the query skips and returns, if these are more.
    Null for a row that none of them counts.

    Attributes:
        rankings: Two or more.
        k: A whole number above 0, or a parameter that `parameters.bind` has checked to be one.
    """

    rankings: tuple[Nearest | Bm25, ...]
    k: ParameterValue | Constant

    @property
    def type(self) -> PropertyType:
        """A score."""
        return Scalar.F64

    @property
    def nullable(self) -> bool:
        """Whether a row may be missing from all rankings."""
        return True


Ranking = Nearest | Bm25 | Rrf


@dataclass(frozen=True, slots=True)
class ObjectValue:
    """Values of one row by name: a column of a result that is neither grouped nor sorted by.

    Attributes:
        of: The id of what it is an object of: without one, the object is null.
    """

    of: Operand
    values: tuple[tuple[str, Operand], ...]

    @property
    def type(self) -> StructType:
        """The types of its values."""
        return StructType(
            tuple(
                ObjectMember(name, value.type, value.nullable or self.nullable)
                for name, value in self.values
            )
        )

    @property
    def nullable(self) -> bool:
        """Whether there may be none."""
        return self.of.nullable


Expression = Operand | Aggregate | Ranking | ObjectValue
"""Anything a column or an order key may be. Every member has `type` and `nullable`."""


class Operator(StrEnum):
    """How two values are compared.

    Numbers compare by value, whatever their types; texts by code point; nothing is rounded,
    truncated or folded. The operands of LT, LE, GT and GE are numbers, texts, dates or instants.

    CONTAINS_ITEM: the left is a list, the right a value that equals one of its items.
    CONTAINS_TEXT, STARTS_WITH: both are texts, without wildcards.
    """

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    CONTAINS_ITEM = "contains item"
    CONTAINS_TEXT = "contains text"
    STARTS_WITH = "starts with"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Unknown if a side is null, else whether the operator holds.

    `{p: v}` of a binding is EQ, or CONTAINS_ITEM where `p` is a list.
    """

    left: Operand
    operator: Operator
    right: Operand


@dataclass(frozen=True, slots=True)
class NullTest:
    """True if the operand is null; with `negated`, if it is not; never unknown."""

    operand: Operand
    negated: bool


@dataclass(frozen=True, slots=True)
class TextMatch:
    """True if the text matches the query's text.

    Attributes:
        edits_max: For FUZZY, how many characters a word may differ by; None lets the length of
            the word decide. A parameter has been checked to be between 0 and 2.
        table: The type whose texts they are.
    """

    test: TextTest
    text: ColumnValue
    query: GivenValue
    edits_max: ParameterValue | Constant | None
    table: TableKey
    analyzer: Analyzer


class Connective(StrEnum):
    """How conditions are joined.

    AND is false if one is false, true if all are true; OR is true if one is true, false if all are
    false. Any other outcome is unknown.
    """

    AND = "and"
    OR = "or"


@dataclass(frozen=True, slots=True)
class Junction:
    """Two or more conditions, joined. An AND that is a whole filter is one filter for each."""

    connective: Connective
    conditions: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Inverse:
    """True if the condition is false, false if it is true, unknown if it is unknown.

    No TextMatch is in the condition.
    """

    condition: Filter


Filter = Comparison | NullTest | TextMatch | Junction | Inverse
"""A condition on one row."""


@dataclass(frozen=True, slots=True)
class NodeBinding:
    """A variable that ranges over all nodes of one type, or of several."""

    variable: str
    type_name: TypeName
    other_types: tuple[TypeName, ...] = ()

    @property
    def type_names(self) -> tuple[TypeName, ...]:
        """All of its types."""
        return self.type_name, *self.other_types


@dataclass(frozen=True, slots=True)
class Anonymous:
    """An end of a traversal that the query does not name: a node of this type, or of several.

    It multiplies rows as a named one would, and nothing else can refer to it.
    """

    type_name: TypeName
    other_types: tuple[TypeName, ...] = ()

    @property
    def type_names(self) -> tuple[TypeName, ...]:
        """All of its types."""
        return self.type_name, *self.other_types


class Direction(StrEnum):
    """How edges are walked from the traversal's source.

    OUT: the source is the edge's `src`. IN: it is the edge's `dst`. BOTH: either; only where the
    edge's two ends have one type.
    """

    OUT = "out"
    IN = "in"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class EdgeStep:
    """How one edge type is walked.

    Attributes:
        source: The type of the node it is walked from, if that end has several types.
        destination: Likewise.
    """

    edge_type: TypeName
    direction: Direction
    source: TypeName | None = None
    destination: TypeName | None = None


@dataclass(frozen=True, slots=True)
class Path:
    """The best walk of a traversal from its source to its destination, as a variable.

    Its columns: `LENGTH` is the number of its edges, an I64; `NODES` the ids of its nodes, from the
    source on; `COST` the sum of the weights of its edges, added from the source on.

    Without a weight, the best walk has the fewest edges; of several, the one whose list of node ids
    is the least, compared id by id. With a weight, the best walk has the least cost among those of
    at most `hops_max` edges, then the fewest edges, then the least list of node ids. It is defined
    by steps: the best walk of at most `n` edges to a node is the best one of at most `n - 1` edges,
    or a better one that extends such a best one to another node by an edge. An edge whose weight is
    null, negative or not finite is not there. Of parallel edges, that of the least weight counts.

    Attributes:
        variable: `path_variable` of its name.
        weight: A property of all edge types of the traversal, a number.
        type: That of the weight; None without one.
    """

    variable: str
    weight: str | None = None
    type: Scalar | None = None


@dataclass(frozen=True, slots=True)
class Traversal:
    """Pairs of a source and a destination that edges of one type, or of several, connect.

    Without an edge variable: the set of pairs, so parallel edges give one. A destination belongs
    to a source if the least number of hops that leads to it is between `hops_min` and `hops_max`;
    a source reaches itself only by a self-loop, at one hop. With an edge variable: one row per
    edge (walked BOTH ways, one per edge and way, a self-loop once), and exactly one hop.

    An end that is a variable is bound in this block or in an enclosing one, perhaps by other
    clauses too; the same variable at both ends is a condition on one node. Nothing but edges
    restricts the nodes in between.

    Attributes:
        hops_min: At least 1.
        hops_max: At least `hops_min`; 1 where the edge's two ends have different types.
        steps: How edges are walked, one for each type, all in alternation; with more than one hop,
            all join nodes of one type.
        edge_variable: Bound by this traversal and no other.
        path: Likewise. Both ends are variables then, there is no edge variable, and with a weight
            `hops_min` is 1. With one, a destination belongs to a source if there is a best walk,
            to the source itself by a loop only.
    """

    source: str | Anonymous
    destination: str | Anonymous
    steps: tuple[EdgeStep, ...]
    hops_min: int
    hops_max: int
    edge_variable: str | None
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """Rows over the variables bound here, for each row of the variables bound outside.

    A row has a node for each of `nodes` and an edge for each edge variable of `traversals`, such
    that all traversals connect; one after the other, `optionals` extend it; and then all filters
    are true, and no negation has a row. Nodes that no traversal connects form their cross product.

    Attributes:
        nodes: Every node variable first bound here, in the order of the text: named in a binding,
            or only at an end of a traversal, which then ranges over the whole type.
        subqueries: Those whose values filters, the arguments of an aggregate or results use.
    """

    nodes: tuple[NodeBinding, ...]
    traversals: tuple[Traversal, ...]
    filters: tuple[Filter, ...]
    negations: tuple[Negation, ...]
    optionals: tuple[OptionalPart, ...] = ()
    subqueries: tuple[Subquery, ...] = ()

    @property
    def parts(self) -> tuple[Negation | OptionalPart | Subquery, ...]:
        """All that has a block of its own."""
        return (*self.negations, *self.optionals, *self.subqueries)


@dataclass(frozen=True, slots=True)
class OptionalPart:
    """Extends a row by each row of the block for it; if there is none, once, by nulls.

    Then every column of every variable of the block is null, and a traversal, here or in a later
    block, has no row where one of its ends is null.

    Attributes:
        outer: As for a negation.
    """

    block: Block
    outer: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Negation:
    """Keeps an outer row if the block has no row for it.

    Attributes:
        outer: The variables of enclosing blocks that this one uses, itself or in a negation of its
            own, in the order of their names; never empty.
    """

    block: Block
    outer: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Subquery:
    """A value for each row, made of the rows that a block has for it.

    Attributes:
        name: Unique among those of the block and of all that enclose it; no query can bind it.
        function: The aggregate of the argument over those rows; None for whether there are any.
        argument: None to count rows.
        outer: As for a negation, but perhaps empty: then the value is the same for all rows.
    """

    name: str
    function: AggregateFunction | None
    argument: Operand | None
    block: Block
    outer: tuple[str, ...]
    type: Scalar
    nullable: bool


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter as declared; if nullable, it may be omitted.

    Attributes:
        minimum: The least value that its uses allow: 0 for a limit. `parameters.bind` checks it.
        maximum: The greatest, likewise.
    """

    name: str
    type: PropertyType
    nullable: bool
    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the result: a unique name, and its value."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class OrderKey:
    """Sort by this, nulls first ascending and last descending; of a Ranking, last in any case.

    A Ranking without a direction starts with the best.

    An alias of the text is replaced by the expression that it names. Enums sort as text, false
    before true. In a grouped query the expression equals a column's, or is an Aggregate.
    """

    expression: Expression
    descending: bool


@dataclass(frozen=True, slots=True)
class KeptVariable:
    """A variable that a stage keeps, so that later blocks use it as one from outside.

    Attributes:
        is_optional: Whether it may be null.
    """

    name: str
    kind: TableKind
    type_names: tuple[TypeName, ...]
    is_optional: bool


@dataclass(frozen=True, slots=True)
class Stage:
    """A match whose rows are grouped, sorted and limited as those of a query are.

    The rows that it results in are those outside of the next block: of the variables in `kept`, and
    of `KEPT`, whose columns are the other columns. They are a bag, and have no order. Whole numbers
    among them are exact, whatever their type.

    Attributes:
        variables: As for a query.
        columns: Those of `kept` are ids under the names of the variables. Grouped as for a query.
        order: As for a query, with `tie_breakers`; it has a meaning with a limit or a skip only.
        follows_stage: Whether there is another before it: variables of the match may be from there.
    """

    match: Block
    variables: tuple[str, ...]
    columns: tuple[Column, ...]
    order: tuple[OrderKey, ...]
    tie_breakers: tuple[Operand, ...]
    limit: int | ParameterValue | None
    skip: int | ParameterValue | None
    is_distinct: bool
    kept: tuple[KeptVariable, ...]
    follows_stage: bool

    @property
    def is_grouped(self) -> bool:
        """Whether rows are grouped before they are kept."""
        return _is_grouped(self)

    @property
    def group_keys(self) -> tuple[Operand, ...]:
        """The columns that rows are grouped by, in order; empty if they are not grouped."""
        return _group_keys(self)

    @property
    def is_cut(self) -> bool:
        """Whether some rows may be left out."""
        return self.limit is not None or self.skip is not None


@dataclass(frozen=True, slots=True)
class ReadQuery:
    """A query that returns rows and changes nothing.

    Attributes:
        match: That of the query, or the last one if it has stages.
        variables: Every variable that the match binds or the last stage keeps, nodes and edges, in
            the order of their names; those of negations are not among them.
        columns: If one is an Aggregate, rows are grouped by the others (`group_keys`), null being
            a value like any other; without others there is one group, even of no rows. The same
            if `is_distinct`: rows that are equal are one.
        order: Then `tie_breakers`, ascending: together they define a total order.
        tie_breakers: The ids of all `variables`, then the values of the last stage in the order of
            their names; in a grouped query, the group keys.
        limit: How many rows to keep, from the first; None for all.
        skip: How many rows to leave out before those; None for none.
        reads: The tables of all node variables and edges, negations, optionals and stages included.
        stages: What is matched and kept before `match`, in order.
    """

    name: str
    description: str | None
    instruction: str | None
    parameters: tuple[Parameter, ...]
    match: Block
    variables: tuple[str, ...]
    columns: tuple[Column, ...]
    order: tuple[OrderKey, ...]
    tie_breakers: tuple[Operand, ...]
    limit: int | ParameterValue | None
    reads: frozenset[TableKey]
    skip: int | ParameterValue | None = None
    is_distinct: bool = False
    stages: tuple[Stage, ...] = ()

    @property
    def is_grouped(self) -> bool:
        """Whether rows are grouped before they are returned."""
        return _is_grouped(self)

    @property
    def group_keys(self) -> tuple[Operand, ...]:
        """The columns that rows are grouped by, in order; empty if they are not grouped."""
        return _group_keys(self)

    @property
    def follows_stage(self) -> bool:
        """Whether there is a stage before the match."""
        return bool(self.stages)

    @property
    def selections(self) -> tuple[Selection, ...]:
        """Its stages and itself: everything that matches and has results."""
        return (*self.stages, self)


Selection = ReadQuery | Stage
"""A match, and what becomes of its rows."""


def _is_grouped(selection: Selection) -> bool:
    return selection.is_distinct or any(
        isinstance(column.expression, Aggregate) for column in selection.columns
    )


def _group_keys(selection: Selection) -> tuple[Operand, ...]:
    if not selection.is_grouped:
        return ()
    expressions = (column.expression for column in selection.columns)
    return tuple(expression for expression in expressions if isinstance(expression, Operand))


@dataclass(frozen=True, slots=True)
class Assignment:
    """A property and its new value.

    The types are equal, or the value's is a narrower number, or it is a String for an enum, whose
    values the writer checks.
    """

    property: str
    value: GivenValue


@dataclass(frozen=True, slots=True)
class ComputedAssignment:
    """A property and the value that it gets from the row as it was before the statement.

    The types are as for an `Assignment`, but any whole number may be assigned to a whole number,
    and any float to a float: it becomes the nearest, and a whole number has to fit.

    Attributes:
        value: A column of the row, or computed from its columns.
    """

    property: str
    value: ColumnValue | Computed


@dataclass(frozen=True, slots=True)
class InsertNode:
    """Write one node: replace the whole row of its key, or add a row if the type has no key.

    Attributes:
        id: The id of a node of a type without a key; None to mint one.
        values: One for every property of the type, in declared order: as assigned, or its default,
            or null.
    """

    type_name: TypeName
    id: GivenValue | None
    values: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class InsertEdge:
    """Write one edge: replace the whole row of its key, or add a row if the type has no key.

    Attributes:
        source: The id of the node it starts from, a String that is not null.
        target: The id of the node it leads to, likewise.
        id: As for a node.
        values: As for a node.
    """

    type_name: TypeName
    source: GivenValue
    target: GivenValue
    id: GivenValue | None
    values: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class InsertMatched:
    """Write one row for each distinct row of a match, each as `InsertNode` or `InsertEdge` would.

    Two rows with one id and different values are an error.

    Attributes:
        match: Grouped, with a column for each value that depends on the match, by the name of a
            column of the type's table: a property, `id`, `src` or `dst`.
        values: The same for all rows: by the names of the other properties, and perhaps of `id`,
            `src` and `dst`. Without any `id`, it is that of the key, or minted.
    """

    type_name: TypeName
    match: ReadQuery
    values: tuple[Assignment, ...]

    @property
    def is_minted(self) -> bool:
        """Whether no id is given: if the type has no key, each row gets one of its own."""
        names = {column.name for column in self.match.columns}
        return "id" not in names and all(each.property != "id" for each in self.values)


RowTest = Filter
"""A condition on a row of a mutation: all columns are of that row. It has no TextMatch."""


@dataclass(frozen=True, slots=True)
class Update:
    """Set properties of every row that passes all tests.

    No assignment names a member of the key.
    """

    table: TableKey
    assignments: tuple[Assignment | ComputedAssignment, ...]
    where: tuple[RowTest, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete every row that passes all tests; of a node, every edge that touches it too."""

    table: TableKey
    where: tuple[RowTest, ...]


@dataclass(frozen=True, slots=True)
class UpdateMatched:
    """Set properties of every row that a match finds: other rows decide about them.

    Attributes:
        match: Has each row once: its `id`, and the values that depend on it, by property. The
            types of values are as for a `ComputedAssignment`.
        values: The same for all rows.
    """

    table: TableKey
    match: ReadQuery
    values: tuple[Assignment, ...]

    @property
    def properties(self) -> tuple[str, ...]:
        """The properties that are set."""
        computed = (column.name for column in self.match.columns if column.name != "id")
        return (*computed, *(each.property for each in self.values))


@dataclass(frozen=True, slots=True)
class DeleteMatched:
    """Delete every row that a match finds, as `Delete` would.

    Attributes:
        match: Has each row once: its `id`.
    """

    table: TableKey
    match: ReadQuery


Statement = (
    InsertNode | InsertEdge | InsertMatched | Update | UpdateMatched | Delete | DeleteMatched
)


@dataclass(frozen=True, slots=True)
class MutationQuery:
    """A query that changes rows, in one commit; later statements see what earlier ones did.

    Attributes:
        statements: Inserts and updates only, or deletes only.
        reads: The tables that tests and endpoints are looked up in.
        writes: The tables that may change, those of edges deleted with a node included.
    """

    name: str
    description: str | None
    instruction: str | None
    parameters: tuple[Parameter, ...]
    statements: tuple[Statement, ...]
    reads: frozenset[TableKey]
    writes: frozenset[TableKey]


Query = ReadQuery | MutationQuery
