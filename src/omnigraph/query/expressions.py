"""Expressions: type-checks what is computed from the values of one row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import Final, assert_never

from omnigraph.model.types import INTEGER_BOUNDS, EnumType, ListType, PropertyType, Scalar
from omnigraph.query import ast, ir
from omnigraph.query.codes import QueryCode
from omnigraph.query.functions import AggregateFunction, ValueFunction
from omnigraph.query.scope import Scope

_MAGNITUDE_MAX: Final = 10**38 - 1
"""The greatest whole number that both engines compute with exactly."""

_NATIVE_MAX: Final = 2**63 - 1
"""The greatest whole number that both engines compute with natively."""

_PART_MAGNITUDES: Final = {
    # No text or list has more characters or items.
    ValueFunction.LENGTH: 2**40,
    ValueFunction.YEAR: 9999,
    ValueFunction.MONTH: 12,
    ValueFunction.DAY: 31,
}
"""How great the parts of values are that are numbers."""

_DAYS_MAX: Final = (date.max - date.min).days

_FLOATABLE_MAX: Final = 2**64
"""Whole numbers up to this one become the nearest float on both engines."""

_ROWS_MAX: Final = 2**40
"""No sum has more summands."""

_SIGNS: Final = {
    ast.ArithmeticSign.PLUS: ValueFunction.ADD,
    ast.ArithmeticSign.MINUS: ValueFunction.SUBTRACT,
    ast.ArithmeticSign.TIMES: ValueFunction.MULTIPLY,
    ast.ArithmeticSign.OVER: ValueFunction.DIVIDE,
    ast.ArithmeticSign.MODULO: ValueFunction.REMAINDER,
}
_TAKES: Final = {
    ValueFunction.ABS: "abs(number)",
    ValueFunction.ROUND: "round(float)",
    ValueFunction.FLOOR: "floor(float)",
    ValueFunction.CEIL: "ceil(float)",
    ValueFunction.LENGTH: "length(text), or length(list)",
    ValueFunction.LOWER: "lower(text)",
    ValueFunction.UPPER: "upper(text)",
    ValueFunction.TRIM: "trim(text)",
    ValueFunction.SUBSTRING: "substring(text, first, length), the first character being 1",
    ValueFunction.CONCAT: "concat(text, text, …)",
    ValueFunction.REPLACE: "replace(text, text, by text)",
    ValueFunction.YEAR: "year(date)",
    ValueFunction.MONTH: "month(date)",
    ValueFunction.DAY: "day(date)",
    ValueFunction.COALESCE: "coalesce(value, value, …), all of one type",
}

_TEXT_COUNTS: Final = {
    ValueFunction.LOWER: 1,
    ValueFunction.UPPER: 1,
    ValueFunction.TRIM: 1,
    ValueFunction.REPLACE: 3,
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
        case ast.FunctionCall(ValueFunction.COALESCE, arguments):
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
    syntax: ast.Arithmetic, function: ValueFunction, sides: Sequence[ir.Operand], scope: Scope
) -> ir.Call | None:
    left, right = sides
    arguments = (left, right)
    nullable = left.nullable or right.nullable
    if _is_number(left.type) and _is_number(right.type):
        are_whole = is_whole(left.type) and is_whole(right.type)
        if function is ValueFunction.DIVIDE or not are_whole:
            if function is ValueFunction.REMAINDER:
                message = f"% takes whole numbers, not {left.type} and {right.type}"
                scope.report.add(QueryCode.MISMATCH, syntax.span, message)
                return None
            if not _can_be_floats(arguments, syntax, scope):
                return None
            nullable = nullable or (function is ValueFunction.DIVIDE and not _is_not_zero(right))
            return ir.Call(function, arguments, Scalar.F64, nullable)
        nullable = nullable or (function is ValueFunction.REMAINDER and not _is_not_zero(right))
        return ir.Call(function, arguments, _whole_type(function, arguments), nullable)
    if (moment := _moment(function, arguments, nullable=nullable)) is not None:
        return moment
    message = f"{left.type} {syntax.sign} {right.type} is not supported"
    hint = ""
    if _is_moment(left.type) or _is_moment(right.type):
        hint = "a Date or a DateTime takes whole days, and two of one type are subtracted"
    if _is_text(left.type) or _is_text(right.type):
        hint = "texts are joined by concat(…)"
    scope.report.add(QueryCode.MISMATCH, syntax.span, message, hint)
    return None


def _moment(
    function: ValueFunction, arguments: tuple[ir.Operand, ir.Operand], *, nullable: bool
) -> ir.Call | None:
    """A date or instant some days away, or the days between two; None for any other types."""
    if function is ValueFunction.ADD and not _is_moment(arguments[0].type):
        arguments = arguments[::-1]
    start, other = (each.type for each in arguments)
    if not isinstance(start, Scalar) or not start.is_temporal:
        return None
    is_difference = function is ValueFunction.SUBTRACT
    if is_whole(other) and (is_difference or function is ValueFunction.ADD):
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
        case ValueFunction.ABS, [Scalar() as number] if number.is_numeric:
            type_ = number if number in (Scalar.U32, Scalar.U64) else Scalar.I64
            type_ = Scalar.F64 if number.is_float else type_
        case (
            (ValueFunction.ROUND | ValueFunction.FLOOR | ValueFunction.CEIL),
            [Scalar.F32 | Scalar.F64],
        ):
            type_ = Scalar.F64
        case ValueFunction.LENGTH, [text] if _is_text(text) or isinstance(text, ListType):
            type_ = Scalar.I64
        case ValueFunction.CONCAT, [_, _, *_] if all(map(_is_text, types)):
            type_ = Scalar.STRING
        case _, [*_] if len(types) == _TEXT_COUNTS.get(function) and all(map(_is_text, types)):
            type_ = Scalar.STRING
        case ValueFunction.SUBSTRING, [text, *numbers] if _is_text(text) and len(numbers) in (
            1,
            2,
        ):
            type_ = Scalar.STRING if all(map(is_whole, numbers)) else None
            # There is no character before the first, and no text of less than none.
            nullable = nullable or not _are_from(operands[1:], (1, 0))
        case (
            (ValueFunction.YEAR | ValueFunction.MONTH | ValueFunction.DAY),
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
    return ir.Call(ValueFunction(function), tuple(operands), type_, nullable)


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
    return ir.Call(ValueFunction.COALESCE, values, type_, nullable)


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
    type_ = _common_type(found)
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


def _common_type(values: Sequence[ir.Operand]) -> Scalar | EnumType | None:
    types = [value.type for value in values]
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
    return Scalar.U64 if _are_unsigned(values) else Scalar.I64


def _whole_type(function: ValueFunction, arguments: Sequence[ir.Operand]) -> Scalar:
    """U64 where no result is negative, else I64; a result that does not fit cannot be returned."""
    can_be_less = function is ValueFunction.SUBTRACT or not _are_unsigned(arguments)
    return Scalar.I64 if can_be_less else Scalar.U64


def _are_unsigned(operands: Sequence[ir.Operand]) -> bool:
    """Whether none can be negative, and one has an unsigned type: literals have the others'."""
    has_type = any(each.type in (Scalar.U32, Scalar.U64) for each in operands)
    return has_type and all(map(_is_unsigned, operands))


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
        case ir.Aggregate(AggregateFunction.SUM, argument) if is_whole(expression.type):
            return min(_magnitude(argument) * _ROWS_MAX, _MAGNITUDE_MAX)
        case ir.Aggregate(AggregateFunction.MIN | AggregateFunction.MAX, argument):
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


def is_native(call: ir.Call) -> bool:
    """Whether a whole number is computed in 64 bits: it and its operands are always I64s."""
    wholes = [each for each in call.arguments if is_whole(each.type)]
    if call.type is not Scalar.I64 or not all(map(_is_i64, wholes)):
        return False
    if call.function is ValueFunction.REMAINDER:
        # Of the least I64 and -1, neither engine has one.
        first, second = call.arguments
        is_safe = isinstance(second, ir.Constant) and second.value != -1
        return is_safe or _magnitude(first) <= _NATIVE_MAX
    return _magnitude(call) <= _NATIVE_MAX


def _is_i64(operand: ir.Operand) -> bool:
    """Whether a whole number is always an I64."""
    if _magnitude(operand) <= _NATIVE_MAX:
        return True
    is_stored = isinstance(operand, ir.ColumnValue | ir.ParameterValue) and not is_wide(operand)
    return is_stored and operand.type is Scalar.I64


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
                case ValueFunction.ADD | ValueFunction.SUBTRACT if is_whole(arguments[0].type):
                    return sum(sizes)
                case ValueFunction.MULTIPLY:
                    return sizes[0] * sizes[1]
                case ValueFunction.SUBTRACT if arguments[0].type is Scalar.DATE:
                    return _DAYS_MAX
                case ValueFunction.REMAINDER:
                    return min(sizes)
                case ValueFunction.ABS | ValueFunction.COALESCE:
                    return max(sizes)
                case _:
                    return _PART_MAGNITUDES.get(function, _type_magnitude(Scalar.I64))
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
