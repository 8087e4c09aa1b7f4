"""Objects: resolves `$x { … }`, values of a row by name, and the properties that `*` stands for."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.model.types import EnumType, ListType, Scalar
from omnigraph.query import ast, ir
from omnigraph.query.codes import QueryCode
from omnigraph.query.operands import operand
from omnigraph.query.scope import Scope
from omnigraph.query.several import SeveralTypes


def object_of(syntax: ast.ObjectOf, scope: Scope) -> ir.ObjectValue | None:
    """The typed object; None if an error was reported."""
    type_ = scope.read(syntax.variable)
    if isinstance(type_, ir.Parameter):
        message = f"${syntax.variable.name} is a parameter, and an object is of a node or an edge"
        scope.report.add(QueryCode.UNKNOWN_PROPERTY, syntax.variable.span, message)
        return None
    if type_ is None:
        return None
    of = operand(syntax.variable, scope)
    values: dict[str, ir.Operand] = {}
    is_sound = True
    for name, value in _values(syntax, scope):
        if name.text in values:
            message = f"two values are called {name.text[:200]}"
            scope.report.add(QueryCode.DUPLICATE_NAME, name.span, message)
        resolved = _value(value, scope)
        if resolved is None:
            is_sound = False
        else:
            values[name.text] = resolved
    return ir.ObjectValue(of, tuple(values.items())) if is_sound and values and of else None


def properties_of(syntax: ast.AllOf, scope: Scope) -> Iterator[ast.PropertyOf | ast.TypeOf]:
    """What `$x.*` stands for: every property but vectors and blobs.

    Of several types, those that they share, after the type.
    """
    variable, span = syntax.variable, syntax.span
    type_ = scope.read(variable)
    if isinstance(type_, ir.Parameter):
        message = f"${variable.name} is a parameter, and has no properties"
        scope.report.add(QueryCode.UNKNOWN_PROPERTY, span, message)
    elif type_ is not None:
        if isinstance(type_, SeveralTypes):
            yield ast.TypeOf(variable, span)
        for property_ in type_.properties:
            if isinstance(property_.type, Scalar | EnumType | ListType):
                yield ast.PropertyOf(variable, ast.Name(property_.name, span), span)


def _values(syntax: ast.ObjectOf, scope: Scope) -> Iterator[tuple[ast.Name, ast.Expression]]:
    for part in syntax.values:
        if isinstance(part, ast.NamedValue):
            yield part.name, part.value
        else:
            values = list(properties_of(part, scope))
            names = {value.property.text for value in values if isinstance(value, ast.PropertyOf)}
            for value in values:
                if isinstance(value, ast.PropertyOf):
                    yield value.property, value
                else:
                    # A property may have the name.
                    yield ast.Name("type()" if "type" in names else "type", value.span), value


def _value(syntax: ast.Expression, scope: Scope) -> ir.Operand | None:
    if isinstance(syntax, ast.Null):
        message = "a value of an object cannot be null and nothing else"
        scope.report.add(QueryCode.NULL_VALUE, syntax.span, message)
        return None
    return operand(syntax, scope)
