"""Scopes: the meaning of each name of a query, and where it is visible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Final

from omnigraph.model.types import Scalar
from omnigraph.query import ast, ir
from omnigraph.query.codes import QueryCode
from omnigraph.query.report import Report
from omnigraph.query.several import BoundType, SeveralTypes, implementers, is_node, together
from omnigraph.schema.catalog import ENDPOINTS, Catalog, EdgeType, NodeType, SchemaType

ENDS: Final = {"from": "src", "to": "dst"}
"""The ends of an edge as a mutation writes them, and the columns that hold them."""


@dataclass(slots=True)
class Uses:
    """How a query uses its parameters, collected while it is checked.

    Attributes:
        parameters: Those that are read.
        bounds: The least and greatest value that a parameter's uses allow.
    """

    parameters: set[str] = field(default_factory=set)
    bounds: dict[str, tuple[int, int | None]] = field(default_factory=dict)

    def bound(self, name: str, low: int, high: int | None = None) -> None:
        """Require a parameter to be between the two, in addition to earlier bounds."""
        least, greatest = self.bounds.get(name, (low, high))
        highs = [bound for bound in (greatest, high) if bound is not None]
        self.bounds[name] = max(least, low), min(highs, default=None)


@dataclass(frozen=True, slots=True)
class BoundPath:
    """A path of a block; its cost is a number of this type, if it has a weight."""

    weight: Scalar | None
    nullable: bool = False


@dataclass(slots=True)
class Scope:
    """The names that one block of clauses can read: its own, then those of enclosing blocks.

    Attributes:
        parameters: By name; None if the type is unknown to the language.
        variables: The type of each variable bound in this block; None if it could not be resolved,
            which has then been reported.
        enclosing: The scope of the enclosing block.
        outer: The variables of enclosing blocks that this one has used so far.
        optional: Those of `variables` that an optional part binds, and that may so be null.
        hidden: Names that only blocks in this one bind, and what those are, for hints.
        row: The type of the row that a mutation tests: bare words are its columns.
        row_variable: The variable of that row.
        paths: The paths that this block binds, by name.
        values: The values that the stage before kept: bare words are their names.
        dropped: Names that the stage before could have kept, and did not, for hints.
        condition: Resolves the conditions inside values; None if an error was reported.
        subquery: Resolves the blocks inside values; None if an error was reported.
        subqueries: Those whose values have been used of a row of this block so far.
    """

    catalog: Catalog
    report: Report
    parameters: Mapping[str, ir.Parameter | None]
    uses: Uses
    variables: dict[str, BoundType | None] = field(default_factory=dict)
    enclosing: Scope | None = None
    outer: set[str] = field(default_factory=set)
    optional: set[str] = field(default_factory=set)
    hidden: Mapping[str, str] = field(default_factory=dict)
    row: SchemaType | None = None
    row_variable: str = ir.ROW
    paths: dict[str, BoundPath] = field(default_factory=dict)
    values: Mapping[str, ir.ColumnValue] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()
    condition: Callable[[ast.Condition, Scope], ir.Filter | None] | None = None
    subquery: Callable[[ast.Existence | ast.Subquery, Scope], ir.SubqueryValue | None] | None = None
    subqueries: list[ir.Subquery] = field(default_factory=list)

    def inner(self, clauses: Iterable[ast.Clause]) -> Scope:
        """A scope for a negation or an optional part inside this one."""
        return Scope(
            self.catalog,
            self.report,
            self.parameters,
            self.uses,
            enclosing=self,
            hidden=hidden_names(clauses),
            row=self.row,
            row_variable=self.row_variable,
            condition=self.condition,
            subquery=self.subquery,
        )

    def after_stage(
        self,
        variables: Iterable[str],
        values: Mapping[str, ir.ColumnValue],
        clauses: Iterable[ast.Clause],
    ) -> tuple[Scope, Scope]:
        """The scope of what a stage of this block keeps, and the one of the block after it."""
        kept = {name: self.bound_type(name) for name in variables}
        before = {*self._names(), *(f"${name}" for name in self.all_variables())}
        before |= {ir.path_variable(name) for name in self.paths}
        after = {*values, *(f"${name}" for name in kept)}
        outside = Scope(
            self.catalog,
            self.report,
            self.parameters,
            self.uses,
            kept,
            optional={name for name in kept if self.is_optional(name)},
            values=values,
            dropped=frozenset(before - after),
            condition=self.condition,
            subquery=self.subquery,
        )
        return outside, outside.inner(clauses)

    def outside_hint(self) -> str:
        """What to do about a block that uses nothing from around it."""
        if self.row is not None and self.row_variable == ir.ROW:
            return f"name the row, $x: {self.row.name}, and use $x"
        return "use a variable that the clauses around it bind"

    def all_variables(self) -> tuple[str, ...]:
        """The variables of this block and of those around it, in the order of their names."""
        return tuple(sorted({name for scope in self._outward() for name in scope.variables}))

    def kept_values(self) -> tuple[ir.ColumnValue, ...]:
        """The values that the stage before kept, in the order of their names."""
        values = {name: value for scope in self._outward() for name, value in scope.values.items()}
        return tuple(values[name] for name in sorted(values))

    def kept_value(self, name: ast.Name) -> ir.ColumnValue | None:
        """A value that the stage before kept, recording its use; None if an error was reported."""
        crossed: list[Scope] = []
        for scope in self._outward():
            if name.text in scope.values:
                for inner in crossed:
                    inner.outer.add(ir.KEPT)
                return scope.values[name.text]
            crossed.append(scope)
        shown = name.text[:200]
        if any(name.text in scope.dropped for scope in self._outward()):
            message = f"{shown} is not kept by the stage before"
            hint = f"add {shown} to its with {{ … }}"
            self.report.add(QueryCode.UNKNOWN_NAME, name.span, message, hint)
        elif known := self._names():
            message = f"the stage before keeps no value {shown}"
            self.report.add_unknown_name(
                QueryCode.UNKNOWN_NAME, name.text, name.span, message, known
            )
        else:
            hint = f"a property is written $x.{name.text[:100]}"
            message = f"{shown} is not a variable"
            self.report.add(QueryCode.UNKNOWN_NAME, name.span, message, hint)
        return None

    def _names(self) -> list[str]:
        return [value.column for value in self.kept_values()]

    @property
    def depth(self) -> int:
        """How many blocks are around this one."""
        return sum(1 for _ in self._outward()) - 1

    def binds(self, name: str) -> bool:
        """Whether this block, or an enclosing one, binds the variable."""
        return any(name in scope.variables or name in scope.paths for scope in self._outward())

    def path(self, name: str) -> BoundPath | None:
        """The path that a variable is, recording its use; None otherwise."""
        crossed: list[Scope] = []
        for scope in self._outward():
            if name in scope.variables:
                return None
            if name in scope.paths:
                for inner in crossed:
                    inner.outer.add(ir.path_variable(name))
                return scope.paths[name]
            crossed.append(scope)
        return None

    def bound_type(self, name: str) -> BoundType | None:
        """The type of a variable, recording its use; None if it is not bound, or not known."""
        crossed: list[Scope] = []
        for scope in self._outward():
            if name in scope.variables:
                for inner in crossed:
                    inner.outer.add(name)
                return scope.variables[name]
            crossed.append(scope)
        return None

    def is_optional(self, name: str) -> bool:
        """Whether a variable may be null, where this block sees it."""
        for scope in self._outward():
            if name in scope.variables:
                return name in scope.optional
        return False

    def take_optional(self, inner: Scope) -> None:
        """Make the variables of an optional part variables of this block."""
        self.variables |= inner.variables
        self.optional |= inner.variables.keys()
        self.paths |= {name: replace(path, nullable=True) for name, path in inner.paths.items()}

    def id_of(self, name: str) -> ir.ColumnValue:
        """The id of what a variable is bound to."""
        return ir.ColumnValue(name, "id", Scalar.STRING, nullable=self.is_optional(name))

    def column(self, variable: str, type_: BoundType, name: ast.Name) -> ir.ColumnValue | None:
        """A column of a variable; None if an error was reported."""
        value = column(variable, type_, name, self.report)
        if value is None or not self.is_optional(variable):
            return value
        return replace(value, nullable=True)

    def read(self, variable: ast.Variable) -> BoundType | ir.Parameter | None:
        """The type or the parameter that a variable refers to; None if an error was reported."""
        name = variable.name
        if name in self.parameters:
            self.uses.parameters.add(name)
            return self.parameters[name]
        if variable.is_anonymous:
            message = "$_ has no values to read"
            self.report.add(QueryCode.UNKNOWN_NAME, variable.span, message, "give it a name")
        elif not self.binds(name):
            self._report_unknown(variable)
        elif self.path(name) is not None:
            message = f"${name} is a path, and has no value of its own"
            hint = f"write length(${name}) or nodes(${name})"
            self.report.add(QueryCode.PATH, variable.span, message, hint)
        return self.bound_type(name)

    def _report_unknown(self, variable: ast.Variable) -> None:
        message = f"${variable.name} is neither a parameter nor bound here"
        if any(f"${variable.name}" in scope.dropped for scope in self._outward()):
            message = f"${variable.name} is not kept by the stage before"
            hint = f"add ${variable.name} to its with {{ … }}"
            self.report.add(QueryCode.UNKNOWN_NAME, variable.span, message, hint)
        elif any(ir.path_variable(variable.name) in each.dropped for each in self._outward()):
            message = f"${variable.name} is not kept by the stage before"
            hint = f"keep what is read of it: nodes(${variable.name}) as via"
            self.report.add(QueryCode.UNKNOWN_NAME, variable.span, message, hint)
        elif any(variable.name in scope.values for scope in self._outward()):
            hint = f"write {variable.name}, which is a value that the stage before kept"
            self.report.add(QueryCode.UNKNOWN_NAME, variable.span, message, hint)
        elif variable.name in self.hidden:
            hint = f"a variable of {self.hidden[variable.name]} cannot be seen outside it"
            self.report.add(QueryCode.UNKNOWN_NAME, variable.span, message, hint)
        else:
            known = [f"${name}" for name in self._visible()]
            name = f"${variable.name}"
            self.report.add_unknown_name(
                QueryCode.UNKNOWN_NAME, name, variable.span, message, known
            )

    def _visible(self) -> Iterator[str]:
        yield from self.parameters
        for scope in self._outward():
            yield from scope.variables

    def _outward(self) -> Iterator[Scope]:
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.enclosing


def hidden_names(clauses: Iterable[ast.Clause]) -> dict[str, str]:
    """Every name that blocks among these clauses may bind for themselves, and what they are."""
    return {name: where for clause in clauses for name, where in _hidden_names(clause)}


def _hidden_names(node: object) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Negation | ast.Existence | ast.Subquery):
        where = "a subquery" if isinstance(node, ast.Subquery) else "a 'not' or an 'exists'"
        yield from ((name, where) for name in _bound_names(node.clauses))
    if isinstance(node, tuple):
        for child in node:
            yield from _hidden_names(child)
    elif is_dataclass(node):
        for member in fields(node):
            yield from _hidden_names(getattr(node, member.name))


def _bound_names(clauses: Iterable[ast.Clause]) -> Iterator[str]:
    for clause in clauses:
        match clause:
            case ast.Binding(variable):
                yield variable.name
            case ast.Traversal():
                path = None if clause.path is None else clause.path.variable
                ends = (clause.source, clause.edge_variable, clause.destination, path)
                yield from (end.name for end in ends if end is not None)
            case ast.OptionalPart(inner):
                yield from _bound_names(inner)
            case _:
                pass


def node_types(names: Sequence[ast.Name], catalog: Catalog, report: Report) -> BoundType | None:
    """The node types that a binding names, by themselves or by an interface.

    None if an error was reported.
    """
    found: list[NodeType] = []
    for name in names:
        if any(interface.name == name.text for interface in catalog.interfaces):
            types = implementers(name.text, catalog)
            if not types:
                message = f"no node type implements {name.text}"
                report.add(QueryCode.UNKNOWN_TYPE, name.span, message)
                return None
            found += types
            continue
        type_ = schema_type(name, catalog, report)
        if isinstance(type_, EdgeType):
            hint = f"an edge is bound where it is walked: $a $e:{type_.word} $b"
            report.add(QueryCode.UNKNOWN_TYPE, name.span, f"{type_.name} is an edge type", hint)
        if not isinstance(type_, NodeType):
            return None
        found.append(type_)
    return together(found)


def schema_type(name: ast.Name, catalog: Catalog, report: Report) -> SchemaType | None:
    """The node or edge type of that name; None if an error was reported."""
    for type_ in catalog.types:
        if type_.name == name.text:
            return type_
    if any(interface.name == name.text for interface in catalog.interfaces):
        hint = "name one of the node types that implement it"
        message = f"{name.text} is an interface, which has no rows"
        report.add(QueryCode.UNKNOWN_TYPE, name.span, message, hint)
        return None
    message = f"the schema has no type {name.text[:200]}"
    known = (type_.name for type_ in catalog.types)
    former = report.former.describe_type(name.text)
    report.add_unknown_name(QueryCode.UNKNOWN_TYPE, name.text, name.span, message, known, former)
    return None


def edge_type(word: ast.Name, catalog: Catalog, report: Report) -> EdgeType | None:
    """The edge type that a word names; None if an error was reported."""
    type_ = find_edge_type(word.text, catalog)
    if type_ is not None and word.text[0].isupper():
        message = f"{word.text} is a type, and an edge word starts lower-case"
        report.add(QueryCode.UNKNOWN_EDGE, word.span, message, f"write {type_.word}")
    elif type_ is None:
        message = f"the schema has no edge {word.text[:200]}"
        known = (edge_type.word for edge_type in catalog.edge_types)
        former = report.former.describe_edge(word.text)
        report.add_unknown_name(
            QueryCode.UNKNOWN_EDGE, word.text, word.span, message, known, former
        )
    return type_


def find_edge_type(word: str, catalog: Catalog) -> EdgeType | None:
    """The edge type that a word names, ignoring case; no two differ only by case."""
    folded = word.casefold()
    return next(
        (edge_type for edge_type in catalog.edge_types if edge_type.name.casefold() == folded), None
    )


def row_column(type_: SchemaType, name: ast.Name, scope: Scope) -> ir.ColumnValue | None:
    """A column of the row that a mutation tests; None if an error was reported."""
    variable = scope.row_variable
    # The blocks between the word and the row use the row.
    scope.bound_type(variable)
    if isinstance(type_, EdgeType) and name.text in ENDS:
        return ir.ColumnValue(variable, ENDS[name.text], Scalar.STRING, nullable=False)
    return column(variable, type_, name, scope.report)


def column(
    variable: str, type_: BoundType, name: ast.Name, report: Report
) -> ir.ColumnValue | None:
    """A column of a variable's type; None if an error was reported."""
    for property_ in type_.properties:
        if property_.name == name.text:
            return ir.ColumnValue(variable, property_.name, property_.type, property_.nullable)
    system_columns = ("id",) if is_node(type_) else ("id", *ENDPOINTS)
    if name.text in system_columns:
        is_local = name.text == "id" and isinstance(type_, SeveralTypes)
        local = ir.LOCAL_ID if is_local else name.text
        return ir.ColumnValue(variable, local, Scalar.STRING, nullable=False)
    known = (*(property_.name for property_ in type_.properties), *system_columns)
    if isinstance(type_, SeveralTypes):
        message = f"{type_.name} do not share a property {name.text[:200]} of one type"
        report.add_unknown_name(
            QueryCode.UNKNOWN_PROPERTY, name.text, name.span, message, known, _owners(type_, name)
        )
        return None
    message = f"{type_.name} has no property {name.text[:200]}"
    former = report.former.describe_property(type_.name, name.text)
    report.add_unknown_name(
        QueryCode.UNKNOWN_PROPERTY, name.text, name.span, message, known, former
    )
    return None


def _owners(type_: SeveralTypes, name: ast.Name) -> str:
    """Which of several types have a property, for a hint."""
    owners = [
        f"{member.name} ({property_.type})"
        for member in type_.members
        for property_ in member.properties
        if property_.name == name.text
    ]
    return f"only these have it: {', '.join(owners)}" if owners else ""
