"""Mutations: type-checks inserts, updates and deletes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from omnigraph.model.names import TypeName
from omnigraph.model.tables import TableKey
from omnigraph.model.types import INTEGER_BOUNDS, EnumType, PropertyType, Scalar
from omnigraph.query import ast, ir
from omnigraph.query.blocks import resolve_block
from omnigraph.query.codes import QueryCode
from omnigraph.query.derived import (
    check_distinct,
    check_ends,
    matched_rows,
    resolve_match,
    row_clause,
)
from omnigraph.query.filters import conditions
from omnigraph.query.literals import assigned_constant
from omnigraph.query.operands import operand
from omnigraph.query.scope import ENDS, Scope, column, schema_type
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType, Property, SchemaType


def resolve_mutation(
    query: ast.QueryNode,
    statements: Sequence[ast.Statement],
    parameters: tuple[ir.Parameter, ...],
    scope: Scope,
) -> ir.MutationQuery:
    """Resolve a mutation; if an error was reported, the result serves only to find more."""
    resolved: list[ir.Statement] = []
    for syntax in statements:
        statement = _statement(syntax, parameters, scope)
        if isinstance(statement, ir.InsertMatched):
            _check_searches_committed(syntax, statement, resolved, scope)
        if statement is not None:
            resolved.append(statement)
    return ir.MutationQuery(
        query.name.text,
        query.description,
        query.instruction,
        parameters,
        tuple(resolved),
        reads=frozenset(key for statement in resolved for key in _reads(statement, scope.catalog)),
        writes=frozenset(
            key for statement in resolved for key in _writes(statement, scope.catalog)
        ),
    )


def _check_searches_committed(
    syntax: ast.Statement,
    statement: ir.InsertMatched,
    earlier: Iterable[ir.Statement],
    scope: Scope,
) -> None:
    """Refuse a search where something that the match reads is pending: indexes do not have it."""
    written = {key for each in earlier for key in _writes(each, scope.catalog)}
    names = sorted(key.type_name for key in written & statement.match.reads)
    if names and ast.contains(syntax, (ast.SearchCall,)):
        message = f"the match searches, and reads {', '.join(names)}, which an earlier statement"
        hint = "split it in two queries: a search finds what is committed"
        scope.report.add(QueryCode.WRITTEN_BEFORE, syntax.span, f"{message} writes", hint)


def _statement(
    syntax: ast.Statement, parameters: tuple[ir.Parameter, ...], scope: Scope
) -> ir.Statement | None:
    type_ = schema_type(syntax.type, scope.catalog, scope.report)
    if type_ is None:
        return None
    match syntax:
        case ast.Insert(clauses=None):
            return _insert(syntax, type_, scope)
        case ast.Insert():
            return _insert_matched(syntax, type_, parameters, scope)
        case ast.Update():
            return _update(syntax, type_, parameters, scope)
        case ast.Delete():
            return _delete(syntax, type_, parameters, scope)
        case _:
            assert_never(syntax)


def _update(
    syntax: ast.Update,
    type_: SchemaType,
    parameters: tuple[ir.Parameter, ...],
    scope: Scope,
) -> ir.Update | ir.UpdateMatched:
    row, block = _row_scope(syntax, type_, scope)
    tests = () if block else tuple(conditions(syntax.condition, row))
    values_by_name = _values(syntax.assignments, type_, row, frozenset())
    _check_key_unchanged(values_by_name, type_, scope)
    updates = tuple(
        _assignment(name, value) for name, (_, value) in values_by_name.items() if value
    )
    if block is None:
        return ir.Update(type_.table_key, updates, tests)
    values = {each.property: each.value for each in updates}
    match = matched_rows(_with_id(values, row), block, parameters, row, distinct=False)
    given = tuple(each for each in updates if isinstance(each, ir.Assignment))
    return ir.UpdateMatched(type_.table_key, match, given)


def _delete(
    syntax: ast.Delete,
    type_: SchemaType,
    parameters: tuple[ir.Parameter, ...],
    scope: Scope,
) -> ir.Delete | ir.DeleteMatched:
    row, block = _row_scope(syntax, type_, scope)
    if block is None:
        return ir.Delete(type_.table_key, tuple(conditions(syntax.condition, row)))
    match = matched_rows(_with_id({}, row), block, parameters, row, distinct=False)
    return ir.DeleteMatched(type_.table_key, match)


def _row_scope(
    syntax: ast.Update | ast.Delete, type_: SchemaType, scope: Scope
) -> tuple[Scope, ir.Block | None]:
    """The scope of a statement's row, and the match of its condition if other rows decide."""
    name = ir.ROW if syntax.row is None else syntax.row.name
    row = replace(scope.inner([syntax.condition]), row=type_, row_variable=name)
    if syntax.row is not None and (fault := _fault_of_name(syntax.row, scope)):
        scope.report.add(QueryCode.CONFLICTING_NAME, syntax.row.span, *fault)
        row.row_variable = ir.ROW
    elif ast.contains(syntax, (ast.Existence, ast.Subquery)):
        bound = row_clause(name, syntax.type, type_)
        return row, resolve_block([bound, syntax.condition], row)
    else:
        row.variables[name] = type_
    return row, None


def _fault_of_name(variable: ast.Variable, scope: Scope) -> tuple[str, str] | None:
    if variable.is_anonymous:
        return "$_ names nothing", "give the row a name, or leave $_: out"
    if variable.name in scope.parameters:
        return f"${variable.name} is a parameter", "give the row another name"
    return None


def _with_id(values: Mapping[str, ir.Operand], row: Scope) -> dict[str, ir.Operand | None]:
    return {"id": row.id_of(row.row_variable), **values}


def _assignment(name: str, value: ir.Operand) -> ir.Assignment | ir.ComputedAssignment:
    if isinstance(value, ir.GivenValue):
        return ir.Assignment(name, value)
    return ir.ComputedAssignment(name, value)


_ValuesByName = dict[str, tuple[ast.Name, ir.Operand | None]]
"""Assigned values by name; None if a value was refused."""


def _insert(syntax: ast.Insert, type_: SchemaType, scope: Scope) -> ir.Statement | None:
    values_by_name = _inserted_values(syntax, type_, scope)
    if values_by_name is None:
        return None
    values = tuple(_complete(values_by_name, type_.properties))
    id_ = _given(values_by_name, "id")
    match type_:
        case NodeType(name=type_name):
            return ir.InsertNode(TypeName(type_name), id_, values)
        case EdgeType(name=type_name):
            source, target = _given(values_by_name, "from"), _given(values_by_name, "to")
            if source is None or target is None:
                return None
            return ir.InsertEdge(TypeName(type_name), source, target, id_, values)
        case _:
            assert_never(type_)


def _insert_matched(
    syntax: ast.Insert,
    type_: SchemaType,
    parameters: tuple[ir.Parameter, ...],
    scope: Scope,
) -> ir.InsertMatched | None:
    assert syntax.clauses is not None, "it has a match"
    matched = scope.inner(syntax.clauses)
    block = resolve_match(syntax.clauses, syntax.span, matched)
    values_by_name = _inserted_values(syntax, type_, matched)
    if values_by_name is None:
        return None
    if isinstance(type_, EdgeType):
        check_ends(syntax, type_, matched)
    values = {ENDS.get(name, name): value for name, (_, value) in values_by_name.items()}
    match = matched_rows(values, block, parameters, matched, distinct=True)
    check_distinct(syntax, match, matched)
    rest = [
        *_complete(values_by_name, type_.properties),
        *(
            ir.Assignment(name, value)
            for name, value in values.items()
            if name in ("id", *ENDS.values()) and isinstance(value, ir.GivenValue)
        ),
    ]
    return ir.InsertMatched(TypeName(type_.name), match, tuple(rest))


def _inserted_values(syntax: ast.Insert, type_: SchemaType, scope: Scope) -> _ValuesByName | None:
    """The values of an insert; None if one is missing, which is reported."""
    extra = frozenset({"id", *ENDS}) if isinstance(type_, EdgeType) else frozenset({"id"})
    values_by_name = _values(syntax.assignments, type_, scope, extra)
    if "id" in values_by_name and type_.key:
        message = f"the id of {type_.name} is made from its key"
        name, _ = values_by_name["id"]
        scope.report.add(QueryCode.FIXED, name.span, message, f"give {', '.join(type_.key)}")
    needed = [*(ENDS if isinstance(type_, EdgeType) else ()), *_required_names(type_.properties)]
    if missing := [name for name in needed if name not in values_by_name]:
        message = f"{type_.name} needs {', '.join(missing)}"
        scope.report.add(QueryCode.MISSING, syntax.type.span, message)
        return None
    return values_by_name


def _given(values_by_name: _ValuesByName, name: str) -> ir.GivenValue | None:
    """A value of an insert; None if it does not exist, or was refused."""
    _, value = values_by_name.get(name, (None, None))
    assert value is None or isinstance(value, ir.GivenValue), "the parser refuses what is computed"
    return value


def _required_names(properties: Iterable[Property]) -> Iterator[str]:
    return (
        property_.name
        for property_ in properties
        if not property_.nullable and property_.default is None
    )


def _complete(
    values_by_name: _ValuesByName, properties: Iterable[Property]
) -> Iterator[ir.Assignment]:
    for property_ in properties:
        _, value = values_by_name.get(
            property_.name, (None, ir.Constant(property_.default, property_.type))
        )
        if isinstance(value, ir.GivenValue):
            yield ir.Assignment(property_.name, value)


def _values(
    assignments: Iterable[ast.Assignment],
    type_: SchemaType,
    scope: Scope,
    extra: frozenset[str],
) -> _ValuesByName:
    """The assigned values, each name once; `extra` are names beside the properties."""
    values_by_name: _ValuesByName = {}
    for assignment in assignments:
        name = assignment.property
        if name.text in values_by_name:
            message = f"{name.text[:200]} is assigned twice"
            scope.report.add(QueryCode.DUPLICATE_NAME, name.span, message)
        elif name.text in extra:
            values_by_name[name.text] = (
                name,
                _value(assignment.value, name, Scalar.STRING, scope, nullable=False),
            )
        elif target := _assignable_column(name, type_, scope):
            value = _value(assignment.value, name, target.type, scope, nullable=target.nullable)
            values_by_name[name.text] = name, value
    return values_by_name


def _assignable_column(name: ast.Name, type_: SchemaType, scope: Scope) -> ir.ColumnValue | None:
    property_names = {property_.name for property_ in type_.properties}
    fixed_names = {"id", *ENDS, *ENDS.values()} if isinstance(type_, EdgeType) else {"id"}
    if name.text in fixed_names - property_names or (
        isinstance(type_, EdgeType) and name.text in ENDS
    ):
        message = f"{name.text} of {type_.name} cannot be assigned"
        hint = "an edge takes from: and to: when it is inserted"
        if name.text == "id":
            hint = "delete the row, and insert another"
        scope.report.add(QueryCode.FIXED, name.span, message, hint)
        return None
    return column(ir.ROW, type_, name, scope.report)


def _check_key_unchanged(values_by_name: _ValuesByName, type_: SchemaType, scope: Scope) -> None:
    for name, (syntax, _) in values_by_name.items():
        if name in type_.key:
            message = f"{name} is in the key of {type_.name}"
            hint = "delete the row, and insert another"
            scope.report.add(QueryCode.FIXED, syntax.span, message, hint)


def _value(
    syntax: ast.Expression, name: ast.Name, type_: PropertyType, scope: Scope, *, nullable: bool
) -> ir.Operand | None:
    value: ir.Operand | None
    match syntax:
        case ast.Null() if nullable:
            return ir.Constant(None, type_)
        case ast.Null():
            message = f"{name.text} may not be null"
            scope.report.add(QueryCode.NULL_VALUE, syntax.span, message)
            return None
        case _ if isinstance(syntax, ast.Literal):
            return assigned_constant(syntax, type_, scope.report)
        case _:
            value = operand(syntax, scope)
    if value is None:
        return None
    is_computed = not isinstance(value, ir.GivenValue)
    if not _holds(type_, value.type) and not (is_computed and _may_hold(type_, value.type)):
        message = f"{name.text} is {type_}, not {value.type}"
        declarable = isinstance(value, ir.ParameterValue) and not isinstance(type_, EnumType)
        hint = f"declare the parameter as {type_}" if declarable else ""
        scope.report.add(QueryCode.MISMATCH, syntax.span, message, hint)
        return None
    if value.nullable and not nullable:
        message = f"{name.text} may not be null, and the parameter may be"
        hint = "declare the parameter without ?"
        if is_computed:
            message = f"{name.text} may not be null, and this may be"
            hint = "write coalesce(…, …) around it"
        scope.report.add(QueryCode.NULL_VALUE, syntax.span, message, hint)
        return None
    return value


def _may_hold(expected: PropertyType, actual: PropertyType) -> bool:
    """Whether a property of one type can hold some values of the other, exactly or rounded."""
    match expected, actual:
        case Scalar(), Scalar():
            is_whole = expected.is_integer and actual.is_integer
            return is_whole or (expected.is_float and actual.is_numeric)
        case _:
            return False


def _holds(expected: PropertyType, actual: PropertyType) -> bool:
    """Whether a property of one type can hold every value of the other."""
    if expected == actual or (isinstance(expected, EnumType) and actual is Scalar.STRING):
        return True
    match expected, actual:
        case Scalar.F64, Scalar.F32 | Scalar.I32 | Scalar.U32:
            return True
        case Scalar(), Scalar() if expected.is_integer and actual.is_integer:
            (low, high), (least, greatest) = INTEGER_BOUNDS[expected], INTEGER_BOUNDS[actual]
            return low <= least and greatest <= high
        case _:
            return False


def _reads(statement: ir.Statement, catalog: Catalog) -> Iterator[TableKey]:
    match statement:
        case ir.InsertNode():
            return
        case ir.InsertEdge(type_name):
            edge = catalog.edge_type(type_name)
            for end in (edge.source, edge.target):
                yield catalog.node_type(end).table_key
        case ir.InsertMatched(type_name, match):
            yield from match.reads
            type_ = catalog.type_named(type_name)
            for end in (type_.source, type_.target) if isinstance(type_, EdgeType) else ():
                yield catalog.node_type(end).table_key
        case ir.UpdateMatched(_, match) | ir.DeleteMatched(_, match):
            yield from match.reads
        case ir.Update(table) | ir.Delete(table):
            yield table
        case _:
            assert_never(statement)


def _writes(statement: ir.Statement, catalog: Catalog) -> Iterator[TableKey]:
    match statement:
        case ir.InsertNode(type_name) | ir.InsertEdge(type_name) | ir.InsertMatched(type_name):
            yield catalog.type_named(type_name).table_key
        case ir.Update(table) | ir.UpdateMatched(table):
            yield table
        case ir.Delete(table) | ir.DeleteMatched(table):
            yield table
            for edge in catalog.edge_types:
                if table == catalog.node_type(edge.source).table_key or (
                    table == catalog.node_type(edge.target).table_key
                ):
                    yield edge.table_key
        case _:
            assert_never(statement)
