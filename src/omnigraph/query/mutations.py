"""Mutations: inserts, updates and deletes, checked against what their types demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, assert_never

from omnigraph.model.names import TypeName
from omnigraph.model.tables import TableKey
from omnigraph.model.types import INTEGER_BOUNDS, EnumType, PropertyType, Scalar
from omnigraph.query import ast, ir
from omnigraph.query.codes import QueryCode
from omnigraph.query.filters import OPERATORS, compared, null_test
from omnigraph.query.literals import assigned, beside
from omnigraph.query.operands import operand
from omnigraph.query.scope import Scope, column, schema_type
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType, Property, SchemaType

_ENDS: Final = {"from": "src", "to": "dst"}
"""How a mutation spells the ends of an edge, and the columns that hold them."""


def resolve_mutation(
    query: ast.QueryNode,
    statements: Sequence[ast.Statement],
    parameters: tuple[ir.Parameter, ...],
    scope: Scope,
) -> ir.MutationQuery:
    """What a mutation means; if something was reported, only good for finding more."""
    found = [each for written in statements if (each := _statement(written, scope))]
    return ir.MutationQuery(
        query.name.text,
        query.description,
        query.instruction,
        parameters,
        tuple(found),
        reads=frozenset(key for each in found for key in _reads(each, scope.catalog)),
        writes=frozenset(key for each in found for key in _writes(each, scope.catalog)),
    )


def _statement(written: ast.Statement, scope: Scope) -> ir.Statement | None:
    type_ = schema_type(written.type, scope.catalog, scope.report)
    if type_ is None:
        return None
    match written:
        case ast.Insert():
            return _insert(written, type_, scope)
        case ast.Update(_, assignments, predicate):
            given = _values(assignments, type_, scope, frozenset())
            _check_updated(given, type_, scope)
            updates = tuple(
                ir.Assignment(name, value) for name, (_, value) in given.items() if value
            )
            return ir.Update(type_.table_key, updates, _tests(predicate, type_, scope))
        case ast.Delete(_, predicate):
            return ir.Delete(type_.table_key, _tests(predicate, type_, scope))
        case _:
            assert_never(written)


_Given = dict[str, tuple[ast.Name, ir.GivenValue | None]]
"""What is assigned, by name; a value is None if it was refused."""


def _insert(written: ast.Insert, type_: SchemaType, scope: Scope) -> ir.Statement | None:
    extra = frozenset({"id", *_ENDS}) if isinstance(type_, EdgeType) else frozenset({"id"})
    given = _values(written.assignments, type_, scope, extra)
    if "id" in given and type_.key:
        message = f"the id of {type_.name} is made from its key"
        name, _ = given["id"]
        scope.report.add(QueryCode.FIXED, name.span, message, f"give {', '.join(type_.key)}")
    values = tuple(_complete(given, type_.properties))
    needed = [*(_ENDS if isinstance(type_, EdgeType) else ()), *_required(type_.properties)]
    if missing := [name for name in needed if name not in given]:
        message = f"{type_.name} needs {', '.join(missing)}"
        scope.report.add(QueryCode.MISSING, written.type.span, message)
        return None
    _, id_ = given.get("id", (None, None))
    match type_:
        case NodeType(name=type_name):
            return ir.InsertNode(TypeName(type_name), id_, values)
        case EdgeType(name=type_name):
            (_, source), (_, target) = given["from"], given["to"]
            if source is None or target is None:
                return None
            return ir.InsertEdge(TypeName(type_name), source, target, id_, values)
        case _:
            assert_never(type_)


def _required(properties: Iterable[Property]) -> Iterator[str]:
    return (each.name for each in properties if not each.nullable and each.default is None)


def _complete(given: _Given, properties: Iterable[Property]) -> Iterator[ir.Assignment]:
    for each in properties:
        _, value = given.get(each.name, (None, ir.Constant(each.default, each.type)))
        if value is not None:
            yield ir.Assignment(each.name, value)


def _values(
    assignments: Iterable[ast.Assignment],
    type_: SchemaType,
    scope: Scope,
    extra: frozenset[str],
) -> _Given:
    """What is assigned, each name once; `extra` are names that are no properties."""
    given: _Given = {}
    for each in assignments:
        name = each.property
        if name.text in given:
            message = f"{name.text[:200]} is assigned twice"
            scope.report.add(QueryCode.DUPLICATE_NAME, name.span, message)
        elif name.text in extra:
            given[name.text] = name, _value(each.value, name, Scalar.STRING, scope, nullable=False)
        elif found := _assignable(name, type_, scope):
            value = _value(each.value, name, found.type, scope, nullable=found.nullable)
            given[name.text] = name, value
    return given


def _assignable(name: ast.Name, type_: SchemaType, scope: Scope) -> ir.ColumnValue | None:
    declared = {each.name for each in type_.properties}
    fixed = {"id", *_ENDS, *_ENDS.values()} if isinstance(type_, EdgeType) else {"id"}
    if name.text in fixed - declared or (isinstance(type_, EdgeType) and name.text in _ENDS):
        message = f"{name.text} of {type_.name} cannot be assigned"
        hint = "an edge takes from: and to: when it is inserted"
        if name.text == "id":
            hint = "delete the row, and insert another"
        scope.report.add(QueryCode.FIXED, name.span, message, hint)
        return None
    return column(ir.ROW, type_, name, scope.report)


def _check_updated(given: _Given, type_: SchemaType, scope: Scope) -> None:
    for name, (written, _) in given.items():
        if name in type_.key:
            message = f"{name} is in the key of {type_.name}"
            hint = "delete the row, and insert another"
            scope.report.add(QueryCode.FIXED, written.span, message, hint)


def _value(
    written: ast.Expression, name: ast.Name, type_: PropertyType, scope: Scope, *, nullable: bool
) -> ir.GivenValue | None:
    found: ir.Operand | None
    match written:
        case ast.Null() if nullable:
            return ir.Constant(None, type_)
        case ast.Null():
            message = f"{name.text} may not be null"
            scope.report.add(QueryCode.NULL_VALUE, written.span, message)
            return None
        case _ if isinstance(written, ast.Literal):
            return assigned(written, type_, scope.report)
        case _:
            found = operand(written, scope)
    if found is None:
        return None
    assert not isinstance(found, ir.ColumnValue), "a mutation binds no variables"
    if not _holds(type_, found.type):
        message = f"{name.text} is {type_}, not {found.type}"
        declarable = isinstance(found, ir.ParameterValue) and not isinstance(type_, EnumType)
        hint = f"declare the parameter as {type_}" if declarable else ""
        scope.report.add(QueryCode.MISMATCH, written.span, message, hint)
        return None
    if found.nullable and not nullable:
        message = f"{name.text} may not be null, and the parameter may be"
        hint = "declare the parameter without ?"
        scope.report.add(QueryCode.NULL_VALUE, written.span, message, hint)
        return None
    return found


def _holds(wanted: PropertyType, given: PropertyType) -> bool:
    """Whether a property of one type can hold every value of the other."""
    if wanted == given or (isinstance(wanted, EnumType) and given is Scalar.STRING):
        return True
    match wanted, given:
        case Scalar.F64, Scalar.F32 | Scalar.I32 | Scalar.U32:
            return True
        case Scalar(), Scalar() if wanted.is_integer and given.is_integer:
            (low, high), (least, greatest) = INTEGER_BOUNDS[wanted], INTEGER_BOUNDS[given]
            return low <= least and greatest <= high
        case _:
            return False


def _tests(predicate: ast.Predicate, type_: SchemaType, scope: Scope) -> tuple[ir.RowTest, ...]:
    return tuple(found for each in predicate if (found := _test(each, type_, scope)))


def _test(
    written: ast.Condition | ast.NullCondition, type_: SchemaType, scope: Scope
) -> ir.RowTest | None:
    found = _tested(written.property, type_, scope)
    if found is None:
        return None
    match written:
        case ast.NullCondition(name, negated):
            return null_test(found, name.span, scope, negated=negated)
        case ast.Condition(_, sign, value, span):
            if isinstance(value, ast.Literal):
                other: ir.Operand | None = beside(value, found.type, scope.report)
            else:
                other = operand(value, scope)
            return None if other is None else compared(found, OPERATORS[sign], other, span, scope)
        case _:
            assert_never(written)


def _tested(name: ast.Name, type_: SchemaType, scope: Scope) -> ir.ColumnValue | None:
    if isinstance(type_, EdgeType) and name.text in _ENDS:
        return ir.ColumnValue(ir.ROW, _ENDS[name.text], Scalar.STRING, nullable=False)
    return column(ir.ROW, type_, name, scope.report)


def _reads(statement: ir.Statement, catalog: Catalog) -> Iterator[TableKey]:
    match statement:
        case ir.InsertNode():
            return
        case ir.InsertEdge(type_name):
            edge = catalog.edge_type(type_name)
            for end in (edge.source, edge.target):
                yield catalog.node_type(end).table_key
        case ir.Update(table) | ir.Delete(table):
            yield table
        case _:
            assert_never(statement)


def _writes(statement: ir.Statement, catalog: Catalog) -> Iterator[TableKey]:
    match statement:
        case ir.InsertNode(type_name) | ir.InsertEdge(type_name):
            yield catalog.type_named(type_name).table_key
        case ir.Update(table):
            yield table
        case ir.Delete(table):
            yield table
            for edge in catalog.edge_types:
                if table == catalog.node_type(edge.source).table_key or (
                    table == catalog.node_type(edge.target).table_key
                ):
                    yield edge.table_key
        case _:
            assert_never(statement)
