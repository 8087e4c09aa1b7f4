"""Scopes: the meaning of each name of a query, and where it is visible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from omnigraph.model.types import Scalar
from omnigraph.query import ast, ir
from omnigraph.query.codes import QueryCode
from omnigraph.query.report import Report
from omnigraph.schema.catalog import ENDPOINTS, Catalog, EdgeType, NodeType, SchemaType


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


@dataclass(slots=True)
class Scope:
    """The names that one block of clauses can read: its own, then those of enclosing blocks.

    Attributes:
        parameters: By name; None if the type is unknown to the language.
        variables: The type of each variable bound in this block; None if it could not be resolved,
            which has then been reported.
        enclosing: The scope of the enclosing block.
        outer: The variables of enclosing blocks that this one has used so far.
        hidden: Names that only inner negations bind, for hints.
    """

    catalog: Catalog
    report: Report
    parameters: Mapping[str, ir.Parameter | None]
    uses: Uses
    variables: dict[str, SchemaType | None] = field(default_factory=dict)
    enclosing: Scope | None = None
    outer: set[str] = field(default_factory=set)
    hidden: frozenset[str] = frozenset()

    def inner(self, clauses: Iterable[ast.Clause]) -> Scope:
        """A scope for a negation inside this one."""
        return Scope(
            self.catalog,
            self.report,
            self.parameters,
            self.uses,
            enclosing=self,
            hidden=negated_names(clauses),
        )

    def binds(self, name: str) -> bool:
        """Whether this block, or an enclosing one, binds the variable."""
        return any(name in scope.variables for scope in self._outward())

    def bound_type(self, name: str) -> SchemaType | None:
        """The type of a variable, recording its use; None if it is not bound, or not known."""
        crossed: list[Scope] = []
        for scope in self._outward():
            if name in scope.variables:
                for inner in crossed:
                    inner.outer.add(name)
                return scope.variables[name]
            crossed.append(scope)
        return None

    def read(self, variable: ast.Variable) -> SchemaType | ir.Parameter | None:
        """The type or the parameter that a variable refers to; None if an error was reported."""
        name = variable.name
        if name in self.parameters:
            self.uses.parameters.add(name)
            return self.parameters[name]
        if variable.is_anonymous:
            message = "$_ stands for nothing that could be read"
            self.report.add(QueryCode.UNKNOWN_NAME, variable.span, message, "give it a name")
        elif not self.binds(name):
            self._report_unknown(variable)
        return self.bound_type(name)

    def _report_unknown(self, variable: ast.Variable) -> None:
        message = f"${variable.name} is neither a parameter nor bound here"
        if variable.name in self.hidden:
            hint = "a variable of a 'not' cannot be seen outside it"
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


def negated_names(clauses: Iterable[ast.Clause]) -> frozenset[str]:
    """Every name that negations among these clauses may bind."""
    names: set[str] = set()
    for clause in clauses:
        if isinstance(clause, ast.Negation):
            names |= negated_names(clause.clauses)
            for inner in clause.clauses:
                if isinstance(inner, ast.Binding):
                    names.add(inner.variable.name)
                elif isinstance(inner, ast.Traversal):
                    ends = (inner.source, inner.edge_variable, inner.destination)
                    names |= {end.name for end in ends if end is not None}
    return frozenset(names)


def node_type(name: ast.Name, catalog: Catalog, report: Report) -> NodeType | None:
    """The node type that a binding names; None if an error was reported."""
    type_ = schema_type(name, catalog, report)
    if isinstance(type_, EdgeType):
        hint = f"an edge is bound where it is walked: $a $e:{type_.word} $b"
        report.add(QueryCode.UNKNOWN_TYPE, name.span, f"{type_.name} is an edge type", hint)
        return None
    return type_


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


def column(
    variable: str, type_: SchemaType, name: ast.Name, report: Report
) -> ir.ColumnValue | None:
    """A column of a variable's type; None if an error was reported."""
    for property_ in type_.properties:
        if property_.name == name.text:
            return ir.ColumnValue(variable, property_.name, property_.type, property_.nullable)
    system_columns = ("id", *ENDPOINTS) if isinstance(type_, EdgeType) else ("id",)
    if name.text in system_columns:
        return ir.ColumnValue(variable, name.text, Scalar.STRING, nullable=False)
    message = f"{type_.name} has no property {name.text[:200]}"
    known = (*(property_.name for property_ in type_.properties), *system_columns)
    former = report.former.describe_property(type_.name, name.text)
    report.add_unknown_name(
        QueryCode.UNKNOWN_PROPERTY, name.text, name.span, message, known, former
    )
    return None
