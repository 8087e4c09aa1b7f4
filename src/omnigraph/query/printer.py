"""Syntax to `.gq` text in one canonical layout that parses to equal syntax."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, assert_never

from omnigraph.lang.spelling import format_float, quote
from omnigraph.query import ast

_INDENT = "  "

_CONTINUING: Final = re.compile(
    r"(and|or|in|is|asc?|desc|contains|starts_with|when|then|else|end|match|return|with"
    r"|insert|update|delete)\b"
)
"""What goes on with the value before it, unless a comma or a parenthesis is between them."""

_BARE_WORD: Final = re.compile(r"(?<![$.\w])(?!(?:null|true|false)$)[a-z_]\w*$")
"""What would be a function if a parenthesis followed."""


def print_queries(queries: Iterable[ast.QueryNode]) -> str:
    """The text of queries, a blank line between them.

    >>> from omnigraph.lang.source import Source
    >>> from omnigraph.query.parser import read
    >>> text = "query all() {match {$p:Person} return {$p.name,} limit 3}"
    >>> print(print_queries(read(Source("all.gq", text)).queries), end="")
    query all() {
      match {
        $p: Person
      }
      return {
        $p.name
      }
      limit 3
    }
    """
    return "\n".join(_query(query) for query in queries)


def print_expression(expression: ast.Expression, *, sigil: str = "$") -> str:
    """The text of one expression; with an empty sigil, the default name of its column."""
    match expression:
        case ast.Text(value):
            return quote(value)
        case ast.Integer(value):
            return str(value)
        case ast.Decimal(value):
            return format_float(value)
        case ast.Boolean(value):
            return str(value).lower()
        case ast.Null():
            return "null"
        case ast.Moment(kind, text):
            return f"{kind}({quote(text)})"
        case ast.ListLiteral(items):
            return f"[{', '.join(map(print_expression, items))}]"
        case ast.Variable(name):
            return f"{sigil}{name}"
        case ast.PropertyOf(variable, property_):
            return f"{sigil}{variable.name}.{property_.text}"
        case ast.Alias(name):
            return name.text
        case ast.Now():
            return "now()"
        case ast.TypeOf(variable):
            return f"type({sigil}{variable.name})"
        case ast.AggregateCall(function, _, ast.Star()):
            return f"{function}(*)"
        case ast.AggregateCall(function, distinct, argument):
            assert not isinstance(argument, ast.Star), "it is above"
            word = "distinct " if distinct else ""
            return f"{function}({word}{print_expression(argument, sigil=sigil)})"
        case ast.Arithmetic(left, sign, right):
            binds = sign not in (ast.ArithmeticSign.PLUS, ast.ArithmeticSign.MINUS)
            first = _term(left, sigil, within_product=binds, is_right=False)
            return f"{first} {sign} {_term(right, sigil, within_product=binds, is_right=True)}"
        case ast.Case():
            return _case(expression, sigil)
        case ast.Existence(clauses):
            return f"exists {{ {_inline(clauses, sigil)} }}"
        case ast.Subquery(function, clauses, value):
            return f"{function} {{ {_inline(clauses, sigil, value)} }}"
        case ast.PathCall(function, variable):
            return f"{function}({sigil}{variable.name})"
        case ast.SearchCall(function, arguments) | ast.FunctionCall(function, arguments):
            texts = (print_expression(argument, sigil=sigil) for argument in arguments)
            return f"{function}({', '.join(texts)})"
        case _:
            assert_never(expression)


def _term(expression: ast.Expression, sigil: str, *, within_product: bool, is_right: bool) -> str:
    """A side of an arithmetic sign, in parentheses where it would be read otherwise."""
    text = _side(expression, sigil)
    if not isinstance(expression, ast.Arithmetic):
        return text
    is_sum = expression.sign in (ast.ArithmeticSign.PLUS, ast.ArithmeticSign.MINUS)
    is_parted = is_sum if not within_product else is_sum or is_right
    return f"({text})" if is_parted and (is_right or within_product) else text


def _side(expression: ast.Expression, sigil: str) -> str:
    """A part of an expression or a comparison; in parentheses if it could be a clause there."""
    text = print_expression(expression, sigil=sigil)
    return f"({text})" if isinstance(expression, ast.Existence) else text


def _case(case: ast.Case, sigil: str) -> str:
    words = ["case"]
    for condition, value in case.branches:
        when = _condition(condition, sigil=sigil)
        words.append(f"when {when} then {print_expression(value, sigil=sigil)}")
    if case.otherwise is not None:
        words.append(f"else {print_expression(case.otherwise, sigil=sigil)}")
    return " ".join([*words, "end"])


def _query(query: ast.QueryNode) -> str:
    parameters = ", ".join(map(_parameter, query.parameters))
    words = [f"query {query.name.text}({parameters})"]
    if query.description is not None:
        words.append(f"@description({quote(query.description)})")
    if query.instruction is not None:
        words.append(f"@instruction({quote(query.instruction)})")
    body = _read(query.body) if isinstance(query.body, ast.Read) else _statements(query.body)
    return "\n".join([*_block(" ".join(words), body), ""])


def _parameter(parameter: ast.ParameterNode) -> str:
    match parameter.type:
        case ast.NamedType(name):
            type_ = name.text
        case ast.ListOf(item):
            type_ = f"[{item.text}]"
        case ast.VectorOf(dimension):
            type_ = f"Vector({dimension.value})"
        case _:
            assert_never(parameter.type)
    return f"${parameter.variable.name}: {type_}{'?' if parameter.nullable else ''}"


def _read(read: ast.Read) -> Iterator[str]:
    for stage in read.stages:
        yield from _part_of_read(stage, "with")
        if stage.condition is not None:
            yield f"where {_condition(stage.condition)}"
    yield from _part_of_read(read, "return")


def _part_of_read(part: ast.Stage | ast.Read, word: str) -> Iterator[str]:
    if part.clauses:
        yield from _block("match", _clauses(part.clauses))
    head = f"{word} distinct" if part.distinct else word
    yield from _block(head, _columns(part.projections))
    if part.orderings:
        yield f"order {{ {', '.join(map(_ordering, part.orderings))} }}"
    if part.skip is not None:
        yield f"skip {print_expression(part.skip)}"
    if part.limit is not None:
        yield f"limit {print_expression(part.limit)}"


def _clauses(clauses: Sequence[ast.Clause]) -> Iterator[str]:
    lines = _apart(clauses, [_line(clause) for clause in clauses])
    for clause, line in zip(clauses, lines, strict=True):
        match clause:
            case ast.Negation(inner):
                yield from _block("not", _clauses(inner))
            case ast.Existence(inner):
                yield from _block("exists", _clauses(inner))
            case ast.OptionalPart(inner):
                yield from _block("optional", _clauses(inner))
            case _:
                yield line


def _inline(clauses: Iterable[ast.Clause], sigil: str, value: ast.Expression | None = None) -> str:
    """Clauses inside a value, on one line, and what is aggregated of them."""
    parts: list[ast.Clause | ast.Expression] = [*clauses]
    lines = [_line(clause, sigil) for clause in clauses]
    if value is not None:
        parts.append(value)
        lines.append(print_expression(value, sigil=sigil))
    return "  ".join(_apart(parts, lines))


def _apart(parts: Sequence[ast.Clause | ast.Expression], lines: list[str]) -> list[str]:
    """Lines that follow one another, in parentheses where one would go on with another."""
    kinds = (ast.Binding, ast.Traversal, ast.Negation, ast.OptionalPart, ast.Existence)
    after = ""
    for place in reversed(range(len(lines))):
        line, is_block = lines[place], isinstance(parts[place], kinds)
        is_call = after.startswith("(") and _BARE_WORD.search(line)
        if not is_block and (is_call or _CONTINUING.match(line)):
            lines[place] = f"({line})"
        after = lines[place]
    return lines


def _columns(projections: Iterable[ast.Projection]) -> list[str]:
    """Columns, with commas before those that would go on with the column before."""
    lines = [*map(_projection, projections)]
    for place, after in enumerate(lines[1:]):
        if after.startswith("(") or _CONTINUING.match(after):
            lines[place] += ","
    return lines


def _line(clause: ast.Clause, sigil: str = "$") -> str:
    match clause:
        case ast.Negation(inner):
            return f"not {{ {_inline(inner, sigil)} }}"
        case ast.OptionalPart(inner):
            return f"optional {{ {_inline(inner, sigil)} }}"
        case ast.Binding(variable, _, matches):
            braces = f" {{ {', '.join(map(_assignment, matches))} }}" if matches else ""
            types = " | ".join(type_.text for type_ in clause.types)
            return f"{sigil}{variable.name}: {types}{braces}"
        case ast.Traversal():
            return _traversal(clause, sigil)
        case _:
            return _condition(clause, sigil=sigil)


def _condition(condition: ast.Condition, *, sigil: str = "$") -> str:
    match condition:
        case ast.Comparison(left, sign, right):
            return f" {sign} ".join(_side(side, sigil) for side in (left, right))
        case ast.NullTest(operand, negated):
            return f"{_side(operand, sigil)} is {'not ' * negated}null"
        case ast.SearchCall() | ast.Existence():
            return print_expression(condition, sigil=sigil)
        case ast.Inverse(inner):
            return f"not {_part(inner, sigil)}"
        case ast.Junction(connective, conditions):
            return f" {connective} ".join(_part(each, sigil) for each in conditions)
        case _:
            assert_never(condition)


def _part(condition: ast.Condition, sigil: str) -> str:
    """A condition inside another; in parentheses wherever a reader could wonder."""
    text = _condition(condition, sigil=sigil)
    return f"({text})" if isinstance(condition, ast.Junction) else text


def _traversal(traversal: ast.Traversal, sigil: str) -> str:
    words = "|".join(edge.text for edge in traversal.edges)
    edge = f"<{words}>" if traversal.undirected else words
    if traversal.edge_variable is not None:
        edge = f"{sigil}{traversal.edge_variable.name}:{edge}"
    hops = "" if traversal.hops is None else _hops(traversal.hops)
    ends = f"{sigil}{traversal.source.name} {edge}{hops} {sigil}{traversal.destination.name}"
    return f"{ends}{_path(traversal, sigil)}"


def _path(traversal: ast.Traversal, sigil: str) -> str:
    if traversal.path is None:
        return ""
    weight = "" if traversal.path.weight is None else f" by {traversal.path.weight.text}"
    return f" as {sigil}{traversal.path.variable.name}{weight}"


def _hops(hops: ast.Hops) -> str:
    low, high = ("" if bound is None else str(bound.value) for bound in (hops.low, hops.high))
    return f"{{{low},{high}}}"


def _projection(projection: ast.Projection) -> str:
    if isinstance(projection.expression, ast.AllOf):
        return f"${projection.expression.variable.name}.*"
    if isinstance(projection.expression, ast.ObjectOf):
        alias = "" if projection.alias is None else f" as {projection.alias.text}"
        return f"{_object(projection.expression)}{alias}"
    alias = "" if projection.alias is None else f" as {projection.alias.text}"
    return f"{print_expression(projection.expression)}{alias}"


def _object(object_: ast.ObjectOf) -> str:
    values = ", ".join(_named_value(value, object_.variable) for value in object_.values)
    return f"${object_.variable.name} {{ {values} }}"


def _named_value(value: ast.NamedValue | ast.AllOf, variable: ast.Variable) -> str:
    match value:
        case ast.AllOf():
            return ".*"
        case ast.NamedValue(name, ast.PropertyOf(owner, property_)) if (
            owner == variable and property_ == name
        ):
            return f".{name.text}"
        case ast.NamedValue(name, expression):
            return f"{name.text}: {print_expression(expression)}"
        case _:
            assert_never(value)


def _ordering(ordering: ast.Ordering) -> str:
    direction = "" if ordering.direction is None else f" {ordering.direction}"
    return f"{print_expression(ordering.expression)}{direction}"


def _statements(statements: Iterable[ast.Statement]) -> Iterator[str]:
    for statement in statements:
        match statement:
            case ast.Insert(type_, assignments, clauses=clauses):
                *lines, last = _block(f"insert {type_.text}", map(_assignment, assignments))
                yield from lines
                if clauses is None:
                    yield last
                else:
                    yield from _block(f"{last} from match", _clauses(clauses))
            case ast.Update(_, assignments, condition):
                *lines, last = _block(
                    f"update {_row(statement)} set", map(_assignment, assignments)
                )
                yield from lines
                yield f"{last} where {_condition(condition)}"
            case ast.Delete(_, condition):
                yield f"delete {_row(statement)} where {_condition(condition)}"
            case _:
                assert_never(statement)


def _row(statement: ast.Update | ast.Delete) -> str:
    name = "" if statement.row is None else f"${statement.row.name}: "
    return f"{name}{statement.type.text}"


def _assignment(assignment: ast.Assignment | ast.PropertyMatch) -> str:
    return f"{assignment.property.text}: {print_expression(assignment.value)}"


def _block(head: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"{head} {{"
    yield from (f"{_INDENT}{line}" for line in lines)
    yield "}"
