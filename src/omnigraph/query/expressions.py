"""Expressions: type-checks what is computed from the values of one row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, assert_never

from omnigraph.model.types import INTEGER_BOUNDS, EnumType, ListType, PropertyType, Scalar
from omnigraph.query import ast, ir
from omnigraph.query.codes import QueryCode
from omnigraph.query.scope import Scope

_MAGNITUDE_MAX: Final = 10**38 - 1
"""The greatest whole number that both engines compute with exactly."""

_FLOATABLE_MAX: Final = 2**64
"""Whole numbers up to this one become the nearest float on both engines."""

_ROWS_MAX: Final = 2**40
"""No sum has more summands."""

_SIGNS: Final = {
    ast.ArithmeticSign.PLUS: ir.ValueFunction.ADD,
    ast.ArithmeticSign.MINUS: ir.ValueFunction.SUBTRACT,
    ast.ArithmeticSign.TIMES: ir.ValueFunction.MULTIPLY,
    ast.ArithmeticSign.OVER: ir.ValueFunction.DIVIDE,
    ast.ArithmeticSign.MODULO: ir.ValueFunction.REMAINDER,
}
_TAKES: Final = {
    ast.FunctionName.ABS: "abs(number)",
    ast.FunctionName.ROUND: "round(float)",
    ast.FunctionName.FLOOR: "floor(float)",
    ast.FunctionName.CEIL: "ceil(float)",
    ast.FunctionName.LENGTH: "length(text), or length(list)",
    ast.FunctionName.LOWER: "lower(text)",
    ast.FunctionName.UPPER: "upper(text)",
    ast.FunctionName.TRIM: "trim(text)",
    ast.FunctionName.SUBSTRING: "substring(text, first, length), the first character being 1",
    ast.FunctionName.CONCAT: "concat(text, text, …)",
    ast.FunctionName.REPLACE: "replace(text, text, by text)",
    ast.FunctionName.YEAR: "year(date)",
    ast.FunctionName.MONTH: "month(date)",
    ast.FunctionName.DAY: "day(date)",
    ast.FunctionName.COALESCE: "coalesce(value, value, …), all of one type",
}

_TEXT_COUNTS: Final = {
    ast.FunctionName.LOWER: 1,
    ast.FunctionName.UPPER: 1,
    ast.FunctionName.TRIM: 1,
    ast.FunctionName.REPLACE: 3,
}
"""How many texts make another one."""

Resolve = Callable[[ast.Expression, Scope], ir.Operand | None]
"""Resolves an operand of an expression; None if an error was reported."""


def computed(
    syntax: ast.Arithmetic | ast.FunctionCall | ast.Case, scope: Scope, resolve: Resolve
) -> ir.Computed | None:
    """The typed expression; None if an error was reported."""
    value: ir.Computed | None
    match syntax:
        case ast.Arithmetic(left, sign, right):
            sides = [resolve(left, scope), resolve(right, scope)]
            found = [side for side in sides if side is not None]
            value = _arithmetic(syntax, _SIGNS[sign], found, scope) if len(found) == 2 else None
        case ast.FunctionCall(ast.FunctionName.COALESCE, arguments):
            value = _coalesce(syntax, arguments, scope, resolve)
        case ast.FunctionCall(_, arguments):
            resolved = [resolve(argument, scope) for argument in arguments]
            operands = [each for each in resolved if each is not None]
            value = _call(syntax, operands, scope) if len(operands) == len(arguments) else None
        case ast.Case():
            value = _case(syntax, scope, resolve)
        case _:
            assert_never(syntax)
    if value is None or _magnitude(value) <= _MAGNITUDE_MAX:
        return value
    message = "the result may have more than 38 digits"
    hint = "compute with numbers of narrower types, or with floats"
    scope.report.add(QueryCode.NUMBER_RANGE, syntax.span, message, hint)
    return None


def _arithmetic(
    syntax: ast.Arithmetic, function: ir.ValueFunction, sides: Sequence[ir.Operand], scope: Scope
) -> ir.Call | None:
    left, right = sides
    arguments = (left, right)
    nullable = left.nullable or right.nullable
    if _is_number(left.type) and _is_number(right.type):
        are_whole = is_whole(left.type) and is_whole(right.type)
        if function is ir.ValueFunction.DIVIDE or not are_whole:
            if function is ir.ValueFunction.REMAINDER:
                message = f"% takes whole numbers, not {left.type} and {right.type}"
                scope.report.add(QueryCode.MISMATCH, syntax.span, message)
                return None
            if not _can_be_floats(arguments, syntax, scope):
                return None
            nullable = nullable or (function is ir.ValueFunction.DIVIDE and not _is_not_zero(right))
            return ir.Call(function, arguments, Scalar.F64, nullable)
        nullable = nullable or (function is ir.ValueFunction.REMAINDER and not _is_not_zero(right))
        return ir.Call(function, arguments, _whole_type(function, arguments), nullable)
    if (moment := _moment(function, arguments, nullable=nullable)) is not None:
        return moment
    message = f"there is no {left.type} {syntax.sign} {right.type}"
    hint = ""
    if _is_moment(left.type) or _is_moment(right.type):
        hint = "a Date or a DateTime takes whole days, and two of one type are subtracted"
    if _is_text(left.type) or _is_text(right.type):
        hint = "texts are joined by concat(…)"
    scope.report.add(QueryCode.MISMATCH, syntax.span, message, hint)
    return None


def _moment(
    function: ir.ValueFunction, arguments: tuple[ir.Operand, ir.Operand], *, nullable: bool
) -> ir.Call | None:
    """A date or instant some days away, or the days between two; None for any other types."""
    if function is ir.ValueFunction.ADD and not _is_moment(arguments[0].type):
        arguments = arguments[::-1]
    start, other = (each.type for each in arguments)
    if not isinstance(start, Scalar) or not start.is_temporal:
        return None
    is_difference = function is ir.ValueFunction.SUBTRACT
    if is_whole(other) and (is_difference or function is ir.ValueFunction.ADD):
        # Beyond the years 1 to 9999 there is none.
        return ir.Call(function, arguments, start, nullable=True)
    if is_difference and other is start:
        days = Scalar.I64 if start is Scalar.DATE else Scalar.F64
        return ir.Call(function, arguments, days, nullable)
    return None


def _call(syntax: ast.FunctionCall, operands: Sequence[ir.Operand], scope: Scope) -> ir.Call | None:
    function, types = syntax.function, [each.type for each in operands]
    nullable = any(each.nullable for each in operands)
    type_: Scalar | None = None
    match function, types:
        case ast.FunctionName.ABS, [Scalar() as number] if number.is_numeric:
            type_ = number if number in (Scalar.U32, Scalar.U64) else Scalar.I64
            type_ = Scalar.F64 if number.is_float else type_
        case (
            (ast.FunctionName.ROUND | ast.FunctionName.FLOOR | ast.FunctionName.CEIL),
            [Scalar.F32 | Scalar.F64],
        ):
            type_ = Scalar.F64
        case ast.FunctionName.LENGTH, [text] if _is_text(text) or isinstance(text, ListType):
            type_ = Scalar.I64
        case ast.FunctionName.CONCAT, [_, _, *_] if all(map(_is_text, types)):
            type_ = Scalar.STRING
        case _, [*_] if len(types) == _TEXT_COUNTS.get(function) and all(map(_is_text, types)):
            type_ = Scalar.STRING
        case ast.FunctionName.SUBSTRING, [text, *numbers] if _is_text(text) and len(numbers) in (
            1,
            2,
        ):
            type_ = Scalar.STRING if all(map(is_whole, numbers)) else None
            # There is no character before the first, and no text of less than none.
            nullable = nullable or not _are_from(operands[1:], (1, 0))
        case (
            (ast.FunctionName.YEAR | ast.FunctionName.MONTH | ast.FunctionName.DAY),
            [Scalar.DATE | Scalar.DATETIME],
        ):
            type_ = Scalar.I64
        case _:
            pass
    if type_ is None:
        given = ", ".join(map(str, types))
        message = f"{function}(…) does not take ({given})"
        scope.report.add(QueryCode.ARGUMENTS, syntax.span, message, f"write {_TAKES[function]}")
        return None
    return ir.Call(ir.ValueFunction(function), tuple(operands), type_, nullable)


def _coalesce(
    syntax: ast.FunctionCall, arguments: Sequence[ast.Expression], scope: Scope, resolve: Resolve
) -> ir.Call | None:
    operands = _of_one_type(arguments, syntax, scope, resolve)
    if operands is None:
        return None
    values, type_ = operands
    if len(values) < 2:
        message = "coalesce(…) takes two values or more"
        hint = f"write {_TAKES[syntax.function]}"
        scope.report.add(QueryCode.ARGUMENTS, syntax.span, message, hint)
        return None
    nullable = all(value.nullable for value in values)
    return ir.Call(ir.ValueFunction.COALESCE, values, type_, nullable)


def _case(syntax: ast.Case, scope: Scope, resolve: Resolve) -> ir.Case | None:
    assert scope.condition is not None, "it is set where conditions are compiled"
    conditions = [scope.condition(condition, scope) for condition, _ in syntax.branches]
    results = [value for _, value in syntax.branches]
    results += [] if syntax.otherwise is None else [syntax.otherwise]
    operands = _of_one_type(results, syntax, scope, resolve)
    known = [condition for condition in conditions if condition is not None]
    if operands is None or len(known) < len(conditions):
        return None
    values, type_ = operands
    otherwise = ir.Constant(None, type_) if syntax.otherwise is None else values[-1]
    branches = tuple(zip(known, values, strict=False))
    nullable = otherwise.nullable or any(value.nullable for _, value in branches)
    return ir.Case(branches, otherwise, type_, nullable)


def _of_one_type(
    arguments: Sequence[ast.Expression],
    syntax: ast.FunctionCall | ast.Case,
    scope: Scope,
    resolve: Resolve,
) -> tuple[tuple[ir.Operand, ...], Scalar | EnumType] | None:
    """Values of one type, a null being of any; None if an error was reported."""
    given = [each for each in arguments if not isinstance(each, ast.Null)]
    values = [resolve(each, scope) for each in given]
    found = [value for value in values if value is not None]
    if len(found) < len(given):
        return None
    type_ = _common_type([value.type for value in found])
    if type_ is None:
        types = ", ".join(str(value.type) for value in found) or "null"
        message = f"these values have no type in common: {types}"
        scope.report.add(QueryCode.MISMATCH, syntax.span, message)
        return None
    if type_ is Scalar.F64 and not _can_be_floats(found, syntax, scope):
        return None
    rest = iter(found)
    return (
        tuple(
            ir.Constant(None, type_) if isinstance(each, ast.Null) else next(rest)
            for each in arguments
        ),
        type_,
    )


def _common_type(types: Sequence[PropertyType]) -> Scalar | EnumType | None:
    scalars = [type_ for type_ in types if isinstance(type_, Scalar)]
    first = types[0] if types else None
    is_one = all(type_ == first for type_ in types)
    if isinstance(first, Scalar | EnumType) and is_one and not is_whole(first):
        return first
    if types and all(map(_is_text, types)):
        return Scalar.STRING
    if len(scalars) < len(types) or not all(scalar.is_numeric for scalar in scalars):
        return None
    if any(scalar.is_float for scalar in scalars):
        return Scalar.F64
    return Scalar.U64 if {Scalar.U32, Scalar.U64}.issuperset(scalars) else Scalar.I64


def _whole_type(function: ir.ValueFunction, arguments: Sequence[ir.Operand]) -> Scalar:
    """U64 where no result is negative, else I64; a result that does not fit cannot be returned."""
    can_be_less = function is ir.ValueFunction.SUBTRACT or not all(map(_is_unsigned, arguments))
    has_unsigned = any(each.type in (Scalar.U32, Scalar.U64) for each in arguments)
    return Scalar.I64 if can_be_less or not has_unsigned else Scalar.U64


def _is_unsigned(operand: ir.Operand) -> bool:
    if isinstance(operand, ir.Constant) and isinstance(operand.value, int):
        return operand.value >= 0
    return operand.type in (Scalar.U32, Scalar.U64)


def _can_be_floats(
    operands: Sequence[ir.Operand],
    syntax: ast.Arithmetic | ast.FunctionCall | ast.Case,
    scope: Scope,
) -> bool:
    if all(_magnitude(each) <= _FLOATABLE_MAX for each in operands if is_whole(each.type)):
        return True
    message = "a whole number that may exceed 64 bits meets a float"
    hint = "compute with floats before: write 1.0 * …"
    scope.report.add(QueryCode.NUMBER_RANGE, syntax.span, message, hint)
    return False


def kept_magnitude(expression: ir.Expression) -> int | None:
    """The magnitude of a value that a stage keeps (`ir.ColumnValue`)."""
    match expression:
        case ir.Aggregate(ir.AggregateFunction.SUM, argument) if is_whole(expression.type):
            return min(_magnitude(argument) * _ROWS_MAX, _MAGNITUDE_MAX)
        case ir.Aggregate(ir.AggregateFunction.MIN | ir.AggregateFunction.MAX, argument):
            return _magnitude(argument) if is_wide(argument) else None
        case ir.ColumnValue() | ir.Call() | ir.Case() | ir.SubqueryValue():
            return _magnitude(expression) if is_wide(expression) else None
        case _:
            return None


def is_wide(operand: ir.Operand) -> bool:
    """Whether it is a whole number that was computed, and may exceed the range of its type."""
    if isinstance(operand, ir.ColumnValue):
        return operand.magnitude is not None
    return isinstance(operand, ir.Computed) and is_whole(operand.type)


def _magnitude(operand: ir.Operand) -> int:
    """The greatest distance from zero that a whole number may have; 0 for other values."""
    match operand:
        case (
            ir.ColumnValue(magnitude=int() as magnitude)
            | ir.SubqueryValue(magnitude=int() as magnitude)
        ):
            return magnitude
        case ir.Constant(int() as value):
            return abs(value)
        case ir.Call(function, arguments, type_) if is_whole(type_):
            sizes = [_magnitude(each) for each in arguments]
            match function:
                case ir.ValueFunction.ADD | ir.ValueFunction.SUBTRACT if is_whole(
                    arguments[0].type
                ):
                    return sum(sizes)
                case ir.ValueFunction.MULTIPLY:
                    return sizes[0] * sizes[1]
                case ir.ValueFunction.REMAINDER:
                    return sizes[1]
                case ir.ValueFunction.ABS | ir.ValueFunction.COALESCE:
                    return max(sizes)
                case _:
                    return _type_magnitude(Scalar.I64)
        case ir.Case(branches, otherwise, type_) if is_whole(type_):
            return max(_magnitude(each) for each in (*(value for _, value in branches), otherwise))
        case _:
            return _type_magnitude(operand.type)


def can_be_summed(operand: ir.Operand) -> bool:
    """Whether both engines compute a sum of such values exactly, or it is one of floats."""
    return _magnitude(operand) * _ROWS_MAX <= _MAGNITUDE_MAX


def _type_magnitude(type_: PropertyType) -> int:
    if isinstance(type_, Scalar) and type_.is_integer:
        return max(map(abs, INTEGER_BOUNDS[type_]))
    return 0


def _are_from(numbers: Sequence[ir.Operand], least: Sequence[int]) -> bool:
    """Whether numbers are known to be at least these."""
    return all(
        isinstance(number, ir.Constant) and isinstance(number.value, int) and number.value >= low
        for number, low in zip(numbers, least, strict=False)
    )


def _is_not_zero(operand: ir.Operand) -> bool:
    return isinstance(operand, ir.Constant) and operand.value not in (0, None)


def _is_number(type_: PropertyType) -> bool:
    return isinstance(type_, Scalar) and type_.is_numeric


def is_whole(type_: PropertyType) -> bool:
    """Whether values of the type are whole numbers."""
    return isinstance(type_, Scalar) and type_.is_integer


def _is_moment(type_: PropertyType) -> bool:
    return isinstance(type_, Scalar) and type_.is_temporal


def _is_text(type_: PropertyType) -> bool:
    return type_ is Scalar.STRING or isinstance(type_, EnumType)
