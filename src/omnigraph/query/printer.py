"""Syntax to `.gq` text in one canonical layout that parses to equal syntax."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from omnigraph.lang.spelling import format_float, quote
from omnigraph.query import ast

_INDENT = "  "


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
        case ast.AggregateCall(function, distinct, argument):
            word = "distinct " if distinct else ""
            return f"{function}({word}{print_expression(argument, sigil=sigil)})"
        case ast.SearchCall(function, arguments):
            texts = (print_expression(argument, sigil=sigil) for argument in arguments)
            return f"{function}({', '.join(texts)})"
        case _:
            assert_never(expression)


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
    yield from _block("match", _clauses(read.clauses))
    yield from _block("return", map(_projection, read.projections))
    if read.orderings:
        yield f"order {{ {', '.join(map(_ordering, read.orderings))} }}"
    if read.limit is not None:
        yield f"limit {print_expression(read.limit)}"


def _clauses(clauses: Iterable[ast.Clause]) -> Iterator[str]:
    for clause in clauses:
        match clause:
            case ast.Negation(inner):
                yield from _block("not", _clauses(inner))
            case ast.Binding(variable, type_, matches):
                braces = f" {{ {', '.join(map(_assignment, matches))} }}" if matches else ""
                yield f"${variable.name}: {type_.text}{braces}"
            case ast.Traversal():
                yield _traversal(clause)
            case ast.Comparison(left, sign, right):
                yield f"{print_expression(left)} {sign} {print_expression(right)}"
            case ast.NullTest(operand, negated):
                yield f"{print_expression(operand)} {_null_test(negated=negated)}"
            case ast.SearchCall():
                yield print_expression(clause)
            case _:
                assert_never(clause)


def _traversal(traversal: ast.Traversal) -> str:
    edge = f"<{traversal.edge.text}>" if traversal.undirected else traversal.edge.text
    if traversal.edge_variable is not None:
        edge = f"${traversal.edge_variable.name}:{edge}"
    hops = "" if traversal.hops is None else _hops(traversal.hops)
    return f"${traversal.source.name} {edge}{hops} ${traversal.destination.name}"


def _hops(hops: ast.Hops) -> str:
    low, high = ("" if bound is None else str(bound.value) for bound in (hops.low, hops.high))
    return f"{{{low},{high}}}"


def _projection(projection: ast.Projection) -> str:
    alias = "" if projection.alias is None else f" as {projection.alias.text}"
    return f"{print_expression(projection.expression)}{alias}"


def _ordering(ordering: ast.Ordering) -> str:
    direction = "" if ordering.direction is None else f" {ordering.direction}"
    return f"{print_expression(ordering.expression)}{direction}"


def _statements(statements: Iterable[ast.Statement]) -> Iterator[str]:
    for statement in statements:
        match statement:
            case ast.Insert(type_, assignments):
                yield from _block(f"insert {type_.text}", map(_assignment, assignments))
            case ast.Update(type_, assignments, predicate):
                *lines, last = _block(f"update {type_.text} set", map(_assignment, assignments))
                yield from lines
                yield f"{last} where {_predicate(predicate)}"
            case ast.Delete(type_, predicate):
                yield f"delete {type_.text} where {_predicate(predicate)}"
            case _:
                assert_never(statement)


def _assignment(assignment: ast.Assignment | ast.PropertyMatch) -> str:
    return f"{assignment.property.text}: {print_expression(assignment.value)}"


def _predicate(predicate: ast.Predicate) -> str:
    return " and ".join(map(_condition, predicate))


def _condition(condition: ast.Condition | ast.NullCondition) -> str:
    match condition:
        case ast.Condition(property_, sign, value):
            return f"{property_.text} {sign} {print_expression(value)}"
        case ast.NullCondition(property_, negated):
            return f"{property_.text} {_null_test(negated=negated)}"
        case _:
            assert_never(condition)


def _null_test(*, negated: bool) -> str:
    return "is not null" if negated else "is null"


def _block(head: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"{head} {{"
    yield from (f"{_INDENT}{line}" for line in lines)
    yield "}"
