"""Typed queries as readable text, one line per node."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.query import ir


def describe(query: ir.Query) -> str:
    parameters = ", ".join(map(_parameter, query.parameters))
    match query:
        case ir.ReadQuery():
            lines = [f"read {query.name}({parameters})", *_indent(_read(query))]
        case ir.MutationQuery():
            lines = [f"mutation {query.name}({parameters})", *_indent(_mutation(query))]
    return "\n".join(lines)


def _parameter(parameter: ir.Parameter) -> str:
    bounds = f" from {parameter.minimum}" if parameter.minimum is not None else ""
    bounds += f" to {parameter.maximum}" if parameter.maximum is not None else ""
    return f"{parameter.name}: {parameter.type}{'?' * parameter.nullable}{bounds}"


def _read(query: ir.ReadQuery) -> Iterator[str]:
    if query.description is not None:
        yield f"description {query.description!r}"
    if query.instruction is not None:
        yield f"instruction {query.instruction!r}"
    for stage in query.stages:
        yield "stage"
        yield from _indent(_results(stage))
    yield from _results(query)
    yield f"reads {', '.join(sorted(map(str, query.reads)))}"


def _results(query: ir.Selection) -> Iterator[str]:
    yield from _block(query.match)
    yield f"variables {', '.join(query.variables)}"
    for column in query.columns:
        yield f"column {column.name!r} = {_value(column.expression)}"
    if query.is_grouped:
        yield f"group by {', '.join(map(_value, query.group_keys)) or 'nothing'}"
    for key in query.order:
        yield f"order {_value(key.expression)} {'descending' if key.descending else 'ascending'}"
    yield f"ties {', '.join(map(_value, query.tie_breakers)) or 'none'}"
    if query.is_distinct:
        yield "distinct"
    if query.skip is not None:
        yield f"skip {query.skip if isinstance(query.skip, int) else _value(query.skip)}"
    if query.limit is not None:
        yield f"limit {query.limit if isinstance(query.limit, int) else _value(query.limit)}"
    if isinstance(query, ir.Stage):
        names = [f"{each.name}{'?' * each.is_optional}" for each in query.kept]
        yield f"keeps {', '.join(names) or 'values only'}"


def _block(block: ir.Block) -> Iterator[str]:
    for node in block.nodes:
        yield f"node {node.variable}: {' | '.join(node.type_names)}"
    for traversal in block.traversals:
        edge = f"{traversal.edge_variable}:" if traversal.edge_variable else ""
        hops = f"{traversal.hops_min}..{traversal.hops_max}"
        steps = " | ".join(map(_step, traversal.steps))
        walk = f"{edge}{steps} {hops}"
        path = "" if traversal.path is None else f" as {_path(traversal.path)}"
        yield f"walk {_end(traversal.source)} [{walk}] {_end(traversal.destination)}{path}"
    for part in block.optionals:
        yield f"optional, given {', '.join(part.outer)}"
        yield from _indent(_block(part.block))
    for subquery in block.subqueries:
        given = f", given {', '.join(subquery.outer)}" if subquery.outer else ""
        argument = "" if subquery.argument is None else f" of {_value(subquery.argument)}"
        yield f"{subquery.name} is {subquery.function or 'exists'}{argument}{given}"
        yield from _indent(_block(subquery.block))
    for filter_ in block.filters:
        yield f"where {_filter(filter_)}"
    for negation in block.negations:
        yield f"not, given {', '.join(negation.outer)}"
        yield from _indent(_block(negation.block))


def _path(path: ir.Path) -> str:
    weight = "" if path.weight is None else f" by {path.weight}: {path.type}"
    return f"{path.variable}{weight}"


def _end(end: str | ir.Anonymous) -> str:
    return end if isinstance(end, str) else f"any {' | '.join(end.type_names)}"


def _step(step: ir.EdgeStep) -> str:
    ends = f" ({step.source or '_'} to {step.destination or '_'})"
    return f"{step.edge_type} {step.direction}{ends if step.source or step.destination else ''}"


def _filter(condition: ir.Filter) -> str:
    match condition:
        case ir.Comparison(left, operator, right):
            return f"{_value(left)} {operator} {_value(right)}"
        case ir.NullTest(operand, negated):
            return f"{_value(operand)} is {'not ' * negated}null"
        case ir.TextMatch(test, text, query, edits, _, analyzer):
            rest = "" if edits is None else f" within {_value(edits)}"
            return f"{_value(text)} {test} {_value(query)}{rest}, {analyzer}"
        case ir.Junction(connective, conditions):
            return f" {connective} ".join(f"({_filter(each)})" for each in conditions)
        case ir.Inverse(inner):
            return f"not ({_filter(inner)})"


def _value(expression: ir.Expression) -> str:
    mark = "?" * expression.nullable
    match expression:
        case ir.ColumnValue(variable, column, type_):
            return f"{variable}.{column}: {type_}{mark}"
        case ir.ParameterValue(name, type_):
            return f"${name}: {type_}{mark}"
        case ir.Constant(value, type_):
            return f"{value!r}: {type_}"
        case ir.Now():
            return "now"
        case ir.SubqueryValue(name, type_):
            return f"{name}: {type_}{mark}"
        case ir.Call(function, arguments, type_):
            return f"{function}({', '.join(map(_value, arguments))}): {type_}{mark}"
        case ir.Case(branches, otherwise, type_):
            whens = (f"{_filter(when)} then {_value(value)}" for when, value in branches)
            return f"case({'; '.join(whens)}; else {_value(otherwise)}): {type_}{mark}"
        case ir.Aggregate(function, argument, distinct, type_):
            return f"{function}({'distinct ' * distinct}{_value(argument)}): {type_}{mark}"
        case ir.ObjectValue(_, values):
            return f"{{{', '.join(f'{name}: {_value(value)}' for name, value in values)}}}{mark}"
        case ir.Nearest(column, query) | ir.Bm25(column, query):
            name = type(expression).__name__.lower()
            how = expression.metric if isinstance(expression, ir.Nearest) else expression.analyzer
            return f"{name}({_value(column)}, {_value(query)}, {how}): {expression.type}{mark}"
        case ir.Rrf(rankings, k):
            parts = ", ".join(map(_value, (*rankings, k)))
            return f"rrf({parts}): {expression.type}{mark}"


def _mutation(query: ir.MutationQuery) -> Iterator[str]:
    for statement in query.statements:
        match statement:
            case ir.InsertNode(type_name, id_, values):
                yield f"insert node {type_name}"
                yield from _indent(_assignments(values, id_))
            case ir.InsertEdge(type_name, source, target, id_, values):
                yield f"insert edge {type_name} from {_value(source)} to {_value(target)}"
                yield from _indent(_assignments(values, id_))
            case ir.InsertMatched(type_name, match, values):
                yield f"insert {type_name} from a match"
                yield from _indent(_assignments(values, None))
                yield from _matched(match)
            case ir.Update(table, assignments, where):
                yield f"update {table}"
                yield from _indent(_assignments(assignments, None))
                yield from _indent(f"where {_filter(test)}" for test in where)
            case ir.Delete(table, where):
                yield f"delete {table}"
                yield from _indent(f"where {_filter(test)}" for test in where)
            case ir.UpdateMatched(table, match, values):
                yield f"update {table} by a match"
                yield from _indent(_assignments(values, None))
                yield from _matched(match)
            case ir.DeleteMatched(table, match):
                yield f"delete {table} by a match"
                yield from _matched(match)
    yield f"reads {', '.join(sorted(map(str, query.reads))) or 'nothing'}"
    yield f"writes {', '.join(sorted(map(str, query.writes)))}"


def _matched(match: ir.ReadQuery) -> Iterator[str]:
    for column in match.columns:
        yield f"  {column.name} = {_value(column.expression)}"
    yield from _indent(_indent(_block(match.match)))


def _assignments(
    values: tuple[ir.Assignment | ir.ComputedAssignment, ...], id_: ir.GivenValue | None
) -> Iterator[str]:
    if id_ is not None:
        yield f"id = {_value(id_)}"
    for assignment in values:
        yield f"{assignment.property} = {_value(assignment.value)}"


def _indent(lines: Iterator[str]) -> Iterator[str]:
    return (f"  {each}" for each in lines)
