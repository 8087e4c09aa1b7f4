"""Syntax to `.gq` text in one canonical layout, which reads back as equal syntax."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from omnigraph.lang.spelling import positional, quoted
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
    return "\n".join(_query(each) for each in queries)


def print_expression(each: ast.Expression, *, sigil: str = "$") -> str:
    """The text of one expression; without a sigil, the name that a column gets from it."""
    match each:
        case ast.Text(value):
            return quoted(value)
        case ast.Integer(value):
            return str(value)
        case ast.Decimal(value):
            return positional(value)
        case ast.Boolean(value):
            return str(value).lower()
        case ast.Null():
            return "null"
        case ast.Moment(kind, text):
            return f"{kind}({quoted(text)})"
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
            printed = (print_expression(argument, sigil=sigil) for argument in arguments)
            return f"{function}({', '.join(printed)})"
        case _:
            assert_never(each)


def _query(each: ast.QueryNode) -> str:
    parameters = ", ".join(map(_parameter, each.parameters))
    words = [f"query {each.name.text}({parameters})"]
    if each.description is not None:
        words.append(f"@description({quoted(each.description)})")
    if each.instruction is not None:
        words.append(f"@instruction({quoted(each.instruction)})")
    body = _read(each.body) if isinstance(each.body, ast.Read) else _statements(each.body)
    return "\n".join([*_block(" ".join(words), body), ""])


def _parameter(each: ast.ParameterNode) -> str:
    match each.type:
        case ast.NamedType(name):
            type_ = name.text
        case ast.ListOf(item):
            type_ = f"[{item.text}]"
        case ast.VectorOf(dimension):
            type_ = f"Vector({dimension.value})"
        case _:
            assert_never(each.type)
    return f"${each.variable.name}: {type_}{'?' if each.nullable else ''}"


def _read(read: ast.Read) -> Iterator[str]:
    yield from _block("match", _clauses(read.clauses))
    yield from _block("return", map(_projection, read.projections))
    if read.orderings:
        yield f"order {{ {', '.join(map(_ordering, read.orderings))} }}"
    if read.limit is not None:
        yield f"limit {print_expression(read.limit)}"


def _clauses(clauses: Iterable[ast.Clause]) -> Iterator[str]:
    for each in clauses:
        match each:
            case ast.Negation(inner):
                yield from _block("not", _clauses(inner))
            case ast.Binding(variable, type_, matches):
                braces = f" {{ {', '.join(map(_assignment, matches))} }}" if matches else ""
                yield f"${variable.name}: {type_.text}{braces}"
            case ast.Traversal():
                yield _traversal(each)
            case ast.Comparison(left, sign, right):
                yield f"{print_expression(left)} {sign} {print_expression(right)}"
            case ast.NullTest(operand, negated):
                yield f"{print_expression(operand)} {_null_test(negated=negated)}"
            case ast.SearchCall():
                yield print_expression(each)
            case _:
                assert_never(each)


def _traversal(each: ast.Traversal) -> str:
    edge = f"<{each.edge.text}>" if each.undirected else each.edge.text
    if each.edge_variable is not None:
        edge = f"${each.edge_variable.name}:{edge}"
    hops = "" if each.hops is None else _hops(each.hops)
    return f"${each.source.name} {edge}{hops} ${each.destination.name}"


def _hops(hops: ast.Hops) -> str:
    low, high = ("" if each is None else str(each.value) for each in (hops.low, hops.high))
    return f"{{{low},{high}}}"


def _projection(each: ast.Projection) -> str:
    alias = "" if each.alias is None else f" as {each.alias.text}"
    return f"{print_expression(each.expression)}{alias}"


def _ordering(each: ast.Ordering) -> str:
    direction = "" if each.direction is None else f" {each.direction}"
    return f"{print_expression(each.expression)}{direction}"


def _statements(statements: Iterable[ast.Statement]) -> Iterator[str]:
    for each in statements:
        match each:
            case ast.Insert(type_, assignments):
                yield from _block(f"insert {type_.text}", map(_assignment, assignments))
            case ast.Update(type_, assignments, predicate):
                *lines, last = _block(f"update {type_.text} set", map(_assignment, assignments))
                yield from lines
                yield f"{last} where {_predicate(predicate)}"
            case ast.Delete(type_, predicate):
                yield f"delete {type_.text} where {_predicate(predicate)}"
            case _:
                assert_never(each)


def _assignment(each: ast.Assignment | ast.PropertyMatch) -> str:
    return f"{each.property.text}: {print_expression(each.value)}"


def _predicate(predicate: ast.Predicate) -> str:
    return " and ".join(map(_condition, predicate))


def _condition(each: ast.Condition | ast.NullCondition) -> str:
    match each:
        case ast.Condition(property_, sign, value):
            return f"{property_.text} {sign} {print_expression(value)}"
        case ast.NullCondition(property_, negated):
            return f"{property_.text} {_null_test(negated=negated)}"
        case _:
            assert_never(each)


def _null_test(*, negated: bool) -> str:
    return "is not null" if negated else "is null"


def _block(head: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"{head} {{"
    yield from (f"{_INDENT}{each}" for each in lines)
    yield "}"
