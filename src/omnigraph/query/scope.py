"""Scopes: what each name of a query stands for, and where it may be read."""

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
    """What a query makes of its parameters, gathered while it is checked.

    Attributes:
        parameters: Those that are read.
        bounds: The least and greatest value that a parameter's uses allow.
    """

    parameters: set[str] = field(default_factory=set)
    bounds: dict[str, tuple[int, int | None]] = field(default_factory=dict)

    def bound(self, name: str, low: int, high: int | None = None) -> None:
        """Demand that a parameter lie between the two, beside what was demanded before."""
        least, greatest = self.bounds.get(name, (low, high))
        highs = [each for each in (greatest, high) if each is not None]
        self.bounds[name] = max(least, low), min(highs, default=None)


@dataclass(slots=True)
class Scope:
    """The names that one block of clauses can read: its own, then those of the blocks around it.

    Attributes:
        parameters: By name; None if the type is none that the language has.
        variables: What each variable bound in this block stands for; None if that could not be
            worked out, which has then been reported.
        enclosing: The scope of the block around this one.
        outer: The variables of enclosing blocks that this one has used so far.
        hidden: Names that only negations inside bind, for advice.
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
            hidden=names_hidden_in(clauses),
        )

    def binds(self, name: str) -> bool:
        """Whether this block, or one around it, binds the variable."""
        return any(name in scope.variables for scope in self._around())

    def bound_type(self, name: str) -> SchemaType | None:
        """What a variable stands for, noting its use; None if it is not bound, or not known."""
        passed: list[Scope] = []
        for scope in self._around():
            if name in scope.variables:
                for each in passed:
                    each.outer.add(name)
                return scope.variables[name]
            passed.append(scope)
        return None

    def read(self, variable: ast.Variable) -> SchemaType | ir.Parameter | None:
        """What a variable that is read stands for; None if that has been reported."""
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
            written = f"${variable.name}"
            self.report.add_misspelt(QueryCode.UNKNOWN_NAME, written, variable.span, message, known)

    def _visible(self) -> Iterator[str]:
        yield from self.parameters
        for scope in self._around():
            yield from scope.variables

    def _around(self) -> Iterator[Scope]:
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.enclosing


def names_hidden_in(clauses: Iterable[ast.Clause]) -> frozenset[str]:
    """Every name that negations among these clauses mention in order to bind it."""
    names: set[str] = set()
    for each in clauses:
        if isinstance(each, ast.Negation):
            names |= names_hidden_in(each.clauses)
            for inner in each.clauses:
                if isinstance(inner, ast.Binding):
                    names.add(inner.variable.name)
                elif isinstance(inner, ast.Traversal):
                    ends = (inner.source, inner.edge_variable, inner.destination)
                    names |= {end.name for end in ends if end is not None}
    return frozenset(names)


def node_type(name: ast.Name, catalog: Catalog, report: Report) -> NodeType | None:
    """The node type that a binding names; None if that has been reported."""
    found = schema_type(name, catalog, report)
    if isinstance(found, EdgeType):
        hint = f"an edge is bound where it is walked: $a $e:{found.word} $b"
        report.add(QueryCode.UNKNOWN_TYPE, name.span, f"{found.name} is an edge type", hint)
        return None
    return found


def schema_type(name: ast.Name, catalog: Catalog, report: Report) -> SchemaType | None:
    """The node or edge type of that name; None if that has been reported."""
    for each in catalog.types:
        if each.name == name.text:
            return each
    if any(each.name == name.text for each in catalog.interfaces):
        hint = "name one of the node types that implement it"
        message = f"{name.text} is an interface, which has no rows"
        report.add(QueryCode.UNKNOWN_TYPE, name.span, message, hint)
        return None
    message = f"the schema has no type {name.text[:200]}"
    known = (each.name for each in catalog.types)
    report.add_misspelt(QueryCode.UNKNOWN_TYPE, name.text, name.span, message, known)
    return None


def edge_type(word: ast.Name, catalog: Catalog, report: Report) -> EdgeType | None:
    """The edge type that a word means; None if that has been reported."""
    found = edge_named(word.text, catalog)
    if found is not None and word.text[0].isupper():
        message = f"{word.text} is a type, and an edge word starts lower-case"
        report.add(QueryCode.UNKNOWN_EDGE, word.span, message, f"write {found.word}")
    elif found is None:
        message = f"the schema has no edge {word.text[:200]}"
        known = (each.word for each in catalog.edge_types)
        report.add_misspelt(QueryCode.UNKNOWN_EDGE, word.text, word.span, message, known)
    return found


def edge_named(word: str, catalog: Catalog) -> EdgeType | None:
    """The edge type that a word means, whatever its case; no two differ only by case."""
    folded = word.casefold()
    return next((each for each in catalog.edge_types if each.name.casefold() == folded), None)


def column(
    variable: str, type_: SchemaType, name: ast.Name, report: Report
) -> ir.ColumnValue | None:
    """A column of what a variable stands for; None if that has been reported."""
    for each in type_.properties:
        if each.name == name.text:
            return ir.ColumnValue(variable, each.name, each.type, each.nullable)
    kept = ("id", *ENDPOINTS) if isinstance(type_, EdgeType) else ("id",)
    if name.text in kept:
        return ir.ColumnValue(variable, name.text, Scalar.STRING, nullable=False)
    message = f"{type_.name} has no property {name.text[:200]}"
    known = (*(each.name for each in type_.properties), *kept)
    report.add_misspelt(QueryCode.UNKNOWN_PROPERTY, name.text, name.span, message, known)
    return None
