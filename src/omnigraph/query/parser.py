"""Text to syntax: a tree of each query, and every syntax error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isinf
from typing import Final

from lark import Token, Tree

from omnigraph.lang.diagnostics import Diagnostic, did_you_mean
from omnigraph.lang.grammar import Grammar, lexemes, span_of, unescape
from omnigraph.lang.source import Source, Span
from omnigraph.query import ast
from omnigraph.query.codes import QueryCode
from omnigraph.query.functions import CALLED, AggregateFunction, ValueFunction

_DIGITS_MAX: Final = 400
"""Every number of a property type is shorter, and Python refuses one that is ten times longer."""

_FUNCTIONS: Final = (
    "now",
    "type",
    *map(str, ast.MomentKind),
    *map(str, AggregateFunction),
    *map(str, ast.SearchName),
    *map(str, CALLED),
    *map(str, ast.PathFunction),
)

_BLOCK_WORDS: Final = frozenset({"exists", "optional"})
"""The words of clauses that have clauses of their own in braces."""

_CONDITIONS: Final = frozenset(
    {"disjunction", "conjunction", "inverse", "negation", "comparison", "null_test"}
)
"""The rules whose trees are conditions and never values."""

_VALUES: Final = frozenset(
    {"property", "call", "word", "list", "arithmetic", "negative", "case", "subquery"}
)
"""The rules whose trees are values; those of some calls are conditions."""

_TESTS: Final = frozenset({ast.SearchName.SEARCH, ast.SearchName.FUZZY, ast.SearchName.MATCH_TEXT})

_GRAMMAR: Final = Grammar(
    package="omnigraph.query",
    code=QueryCode.SYNTAX,
    terminals={
        **dict.fromkeys(("$END", "QUERY"), "a query: query name() { … }"),
        **dict.fromkeys(("VAR", "START"), "a variable ($ first)"),
        "TYPE": "a type name (A-Z first)",
        **dict.fromkeys(("IDENT", "CONSTANT", "AGGREGATE", "EXISTS"), "a name (a-z or _ first)"),
        "NAME": "a type",
        "INT": "a whole number",
        "FLOAT": "a number",
        "STRING": "a quoted text",
        "SIGN": "a comparison",
        "LESS": "a comparison",
        "MORE": "a comparison",
        "CONTAINS": "a comparison",
        "STARTS_WITH": "a comparison",
        "NULLABLE": "'?'",
        "DISTINCT": "'distinct'",
        "ASC": "'asc'",
        "DESC": "'desc'",
        "NOT": "'not'",
        "IN": "a comparison",
        **dict.fromkeys(("PLUS", "MINUS", "TIMES", "OVER", "MODULO"), "an arithmetic sign"),
        "CASE": "'case'",
        "OPTIONAL": "'optional'",
        **{
            name.upper(): f"'{name}'"
            for name in (
                *("and", "or", "is", "as", "insert", "update", "delete"),
                *("when", "then", "else", "end", "match", "return", "with"),
            )
        },
    },
    operators=frozenset({"arithmetic", "negative", "inverse", "case", "call", "subquery"}),
    hints={
        "null": "a property is tested with: $x.name is null",
        "&&": "write and",
        "&": "write and",
        "|": "write or",
        "!": "write not",
        ";": "clauses and statements need no ';'",
        "==": "equality is written =",
        "'": 'a text is written between " and "',
        "where": "a condition is a clause of match { … }, or follows with { … }",
        "end": "a case is: case when … then … else … end",
    },
)


@dataclass(frozen=True, slots=True)
class Syntax:
    """The queries that could be parsed, and the errors in the others."""

    queries: tuple[ast.QueryNode, ...]
    diagnostics: tuple[Diagnostic, ...]


def read(source: Source) -> Syntax:
    """Parse every query; one that cannot be parsed is reported and omitted.

    Never raises, whatever the text.

    >>> syntax = read(Source("all.gq", "query all() { match { $p: Person } return { $p.name } }"))
    >>> [each.name.text for each in syntax.queries]
    ['all']
    """
    if faults := _GRAMMAR.admit(source):
        return Syntax((), faults)
    queries: list[ast.QueryNode] = []
    diagnostics: list[Diagnostic] = []
    for span in _query_spans(source.text):
        tree = _GRAMMAR.parse(source, span)
        if isinstance(tree, Diagnostic):
            diagnostics.append(tree)
            continue
        for query_tree in _trees(tree):
            builder = _Builder()
            query = builder.query(query_tree)
            diagnostics += builder.diagnostics
            if not builder.diagnostics:
                queries.append(query)
    return Syntax(tuple(queries), tuple(diagnostics))


def _query_spans(text: str) -> Iterator[Span]:
    """The spans of a text split before each `query name (`.

    Inside a query these three can follow one another only after `as` or a point, so the split is
    right even where brackets are missing.
    """
    words = [
        ("", "", 0),
        *((lexeme.group(), lexeme.lastgroup, lexeme.start()) for lexeme in lexemes(text)),
    ]
    starts = [
        at
        for (before, _, _), (word, _, at), (_, name, _), (after, _, _) in zip(
            words, words[1:], words[2:], words[3:], strict=False
        )
        if word == "query" and name == "word" and after == "(" and before not in ("as", ".")
    ]
    yield from (Span(start, end) for start, end in pairwise([0, *starts, len(text)]))


@dataclass(frozen=True, slots=True)
class _ResultParts:
    """What `return` and `with` have in common; `counts` has a limit and a skip, if there are."""

    projections: tuple[ast.Projection, ...]
    orderings: tuple[ast.Ordering, ...]
    counts: Mapping[str, ast.Integer | ast.Variable]


@dataclass(slots=True)
class _Builder:
    """Converts lark's trees to ours, and collects errors that the grammar cannot refuse."""

    diagnostics: list[Diagnostic] = field(default_factory=list)

    def query(self, tree: Tree[Token]) -> ast.QueryNode:
        (name,) = _tokens(tree)
        annotations: dict[str, str] = {}
        parameters: list[ast.ParameterNode] = []
        statements: list[ast.Statement] = []
        read_body: ast.Read | None = None
        for child in _trees(tree):
            match child.data:
                case "parameter":
                    parameters.append(self._parameter(child))
                case "remark":
                    self._annotation(child, annotations)
                case "read":
                    read_body = self._read(child)
                case _:
                    statements.append(self._statement(child))
        self._refuse_mixture(statements)
        return ast.QueryNode(
            _name(name),
            tuple(parameters),
            annotations.get("description"),
            annotations.get("instruction"),
            tuple(statements) if read_body is None else read_body,
        )

    def _annotation(self, tree: Tree[Token], annotations: dict[str, str]) -> None:
        name, text = _tokens(tree)
        known = ("description", "instruction")
        if name not in known:
            hint = did_you_mean(name, known, otherwise="a query has a description, an instruction")
            self._refuse(span_of(name), f"unknown remark @{name}", hint)
        elif name in annotations:
            self._refuse(span_of(name), f"a second @{name}")
        annotations[str(name)] = self._text(text).value

    def _parameter(self, tree: Tree[Token]) -> ast.ParameterNode:
        variable, *nullable = _tokens(tree)
        (type_,) = _trees(tree)
        (first,) = _tokens(type_)
        node: ast.ParameterTypeNode
        match type_.data:
            case "named":
                node = ast.NamedType(_name(first))
            case "list_of":
                node = ast.ListOf(_name(first))
            case _:
                node = ast.VectorOf(self._integer(first))
        return ast.ParameterNode(_variable(variable), node, bool(nullable))

    def _read(self, tree: Tree[Token]) -> ast.Read:
        first, *rest = _trees(tree)
        clauses = self._clauses(first)
        stages: list[ast.Stage] = []
        for part in rest:
            if part.data == "stage":
                stages.append(self._stage(part, clauses))
                matches = [each for each in _trees(part) if each.data == "clauses"]
                clauses = next(map(self._clauses, matches), ())
        results = self._results([part for part in rest if part.data != "stage"])
        return ast.Read(
            clauses,
            results.projections,
            results.orderings,
            results.counts.get("limit"),
            results.counts.get("skip"),
            distinct=bool(_tokens(tree)),
            stages=tuple(stages),
        )

    def _stage(self, tree: Tree[Token], clauses: tuple[ast.Clause, ...]) -> ast.Stage:
        """A stage, after the clauses of the match before it."""
        parts = [part for part in _trees(tree) if part.data != "clauses"]
        results = self._results([part for part in parts if part.data != "where"])
        conditions = [part.children[0] for part in parts if part.data == "where"]
        return ast.Stage(
            clauses,
            results.projections,
            results.orderings,
            results.counts.get("limit"),
            results.counts.get("skip"),
            bool(_tokens(tree)),
            next(map(self._condition, conditions), None),
            span_of(tree),
        )

    def _results(self, parts: Sequence[Tree[Token]]) -> _ResultParts:
        projections, *rest = parts
        orderings: tuple[ast.Ordering, ...] = ()
        counts: dict[str, ast.Integer | ast.Variable] = {}
        for part in rest:
            if part.data == "orderings":
                orderings = tuple(map(self._ordering, _trees(part)))
            else:
                (token,) = _tokens(part)
                is_variable = token.type == "VAR"
                counts[part.data] = _variable(token) if is_variable else self._integer(token)
        columns = tuple(map(self._projection, _trees(projections)))
        return _ResultParts(columns, orderings, counts)

    def _clauses(self, tree: Tree[Token]) -> tuple[ast.Clause, ...]:
        return tuple(map(self._clause, tree.children))

    def _clause(self, tree: Token | Tree[Token]) -> ast.Clause:
        if isinstance(tree, Token):
            return self._condition(tree)
        match tree.data:
            case "negation":
                (clauses,) = _trees(tree)
                return ast.Negation(self._clauses(clauses), span_of(tree))
            case "inverse" if (existence := _existence_in(tree)) is not None:
                (clauses,) = _trees(existence)
                return ast.Negation(self._clauses(clauses), span_of(tree))
            case "optional":
                (clauses,) = _trees(tree)
                return ast.OptionalPart(self._clauses(clauses), span_of(tree))
            case "binding":
                variable, type_, *others = _tokens(tree)
                matches = tuple(map(self._property_match, _trees(tree)))
                return ast.Binding(
                    _variable(variable), _name(type_), matches, tuple(map(_name, others))
                )
            case "traversal" | "undirected" | "edge_bound" | "undirected_edge_bound":
                return self._traversal(tree)
            case _:
                return self._condition(tree)

    def _condition(self, part: Token | Tree[Token]) -> ast.Condition:
        match part:
            case Tree(data="disjunction" | "conjunction"):
                word = ast.Connective.OR if part.data == "disjunction" else ast.Connective.AND
                return ast.Junction(word, tuple(map(self._condition, part.children)))
            case Tree(data="inverse"):
                _, condition = part.children
                return ast.Inverse(self._condition(condition), span_of(part))
            case Tree(data="negation"):
                return ast.Inverse(self._existence(part), span_of(part))
            case Tree(data="existence"):
                return self._existence(part)
            case Tree(data="paren"):
                (condition,) = part.children
                return self._condition(condition)
            case Tree(data="comparison"):
                left, sign, right = part.children
                return ast.Comparison(
                    self._expression(left), _sign(sign), self._expression(right), span_of(part)
                )
            case Tree(data="null_test"):
                operand, *negated = part.children
                return ast.NullTest(self._expression(operand), bool(negated))
            case _:
                return self._test(part)

    def _existence(self, tree: Tree[Token]) -> ast.Existence:
        (clauses,) = _trees(tree)
        return ast.Existence(self._clauses(clauses), span_of(tree))

    def _subquery(self, tree: Tree[Token]) -> ast.Subquery:
        (word,), (inner,), span = _tokens(tree), _trees(tree), span_of(tree)
        function, clauses = AggregateFunction(str(word)), list(inner.children)
        value = clauses.pop() if _is_value(clauses[-1]) else None
        if value is None and function is not AggregateFunction.COUNT:
            hint = f"write it last: {function} {{ …  $x.name }}"
            self._refuse(span, f"this {function} {{ … }} has no value", hint)
        if not clauses:
            self._refuse(span, f"this {function} {{ … }} matches nothing", "write clauses first")
        return ast.Subquery(
            function,
            tuple(map(self._clause, clauses)),
            None if value is None else self._expression(value),
            span,
        )

    def _traversal(self, tree: Tree[Token]) -> ast.Traversal:
        source, *middle, destination = (token for token in _tokens(tree) if token.type != "LESS")
        edge_variable = [token for token in middle if token.type == "VAR"]
        edge, *others = (_name(token) for token in middle if token.type != "VAR")
        parts = {str(part.data): part for part in _trees(tree)}
        hops = self._hops(parts["hops"]) if "hops" in parts else None
        return ast.Traversal(
            _variable(source),
            next(map(_variable, edge_variable), None),
            edge,
            str(tree.data).startswith("undirected"),
            hops,
            _variable(destination),
            tuple(others),
            _path(parts["path"]) if "path" in parts else None,
        )

    def _hops(self, tree: Tree[Token]) -> ast.Hops:
        ends = {str(bound.data): self._integer(_tokens(bound)[0]) for bound in _trees(tree)}
        return ast.Hops(ends.get("low"), ends.get("high"), span_of(tree))

    def _property_match(self, tree: Tree[Token]) -> ast.PropertyMatch:
        name, value = tree.children
        return ast.PropertyMatch(_name(name), self._row_independent_value(value))

    def _test(self, part: Token | Tree[Token]) -> ast.Condition:
        call = self._expression(part)
        if isinstance(call, ast.SearchCall):
            return call
        if not self.diagnostics:
            hint = "compare it with something"
            if isinstance(call, ast.Alias) and call.name.text in _BLOCK_WORDS:
                hint = f"write {call.name.text} {{ … }}"
            self._refuse(span_of(part), "a clause must be a condition", hint)
        return ast.SearchCall(ast.SearchName.SEARCH, (), span_of(part))

    def _projection(self, tree: Tree[Token]) -> ast.Projection:
        expression, *alias = tree.children
        names = [_name(_tokens(child)[0]) for child in alias if isinstance(child, Tree)]
        name = next(iter(names), None)
        if isinstance(expression, Tree) and expression.data == "all_of":
            if name is not None:
                self._refuse(name.span, "$x.* is several columns, which have names of their own")
            variable, _ = _tokens(expression)
            return ast.Projection(ast.AllOf(_variable(variable), span_of(expression)), None)
        if isinstance(expression, Tree) and expression.data == "object":
            return ast.Projection(self._object(expression), name)
        return ast.Projection(self._expression(expression), name)

    def _object(self, tree: Tree[Token]) -> ast.ObjectOf:
        variable = _variable(_tokens(tree)[0])
        values: list[ast.NamedValue | ast.AllOf] = []
        for part in _trees(tree):
            name, *value = part.children
            if value:
                values.append(ast.NamedValue(_name(name), self._expression(value[0])))
            elif getattr(name, "type", "") == "TIMES":
                values.append(ast.AllOf(variable, span_of(part)))
            else:
                own = ast.PropertyOf(variable, _name(name), span_of(part))
                values.append(ast.NamedValue(_name(name), own))
        return ast.ObjectOf(variable, tuple(values), span_of(tree))

    def _ordering(self, tree: Tree[Token]) -> ast.Ordering:
        expression, *direction = tree.children
        directions = [ast.SortDirection(str(token)) for token in direction]
        return ast.Ordering(self._expression(expression), next(iter(directions), None))

    def _statement(self, tree: Tree[Token]) -> ast.Statement:
        tokens = _tokens(tree)
        type_ = next(token for token in tokens if token.type == "TYPE")
        row = next((_variable(token) for token in tokens if token.type == "VAR"), None)
        parts = _trees(tree)
        matched = next((part for part in parts if part.data == "clauses"), None)
        is_given = tree.data == "insert" and matched is None
        read = self._row_independent_value if is_given else self._expression
        assignments = tuple(
            ast.Assignment(_name(part.children[0]), read(part.children[1]))
            for part in parts
            if part.data == "assignment"
        )
        match tree.data:
            case "insert":
                clauses = None if matched is None else self._clauses(matched)
                return ast.Insert(_name(type_), assignments, span_of(tree), clauses)
            case "update":
                condition = self._condition(tree.children[-1])
                return ast.Update(_name(type_), assignments, condition, span_of(tree), row)
            case _:
                condition = self._condition(tree.children[-1])
                return ast.Delete(_name(type_), condition, span_of(tree), row)

    def _refuse_mixture(self, statements: Sequence[ast.Statement]) -> None:
        deletes = [isinstance(statement, ast.Delete) for statement in statements]
        if len(set(deletes)) == 2:
            other = statements[deletes.index(not deletes[0])]
            self.diagnostics.append(
                Diagnostic(
                    QueryCode.MIXED_MUTATION,
                    other.span,
                    "one query may not both delete and insert or update",
                    "split it in two: one query that deletes, one that inserts and updates",
                )
            )

    def _row_independent_value(self, part: Token | Tree[Token]) -> ast.Expression:
        """A value that depends on no row."""
        value = self._expression(part)
        match value:
            case (
                ast.PropertyOf()
                | ast.TypeOf()
                | ast.Alias()
                | ast.AggregateCall()
                | ast.SearchCall()
                | ast.Arithmetic()
                | ast.FunctionCall()
                | ast.PathCall()
                | ast.Case()
                | ast.Existence()
                | ast.Subquery()
            ):
                hint = "give a literal, a parameter, now() or null"
                self._refuse(value.span, "a value may not depend on a row", hint)
            case _:
                pass
        return value

    def _expression(self, part: Token | Tree[Token]) -> ast.Expression:
        if isinstance(part, Token):
            return self._atom(part)
        match part.data:
            case "property":
                return _property(part)
            case "word":
                (token,) = _tokens(part)
                return _word(token)
            case "paren":
                (inner,) = part.children
                return self._value(inner)
            case "arithmetic":
                left, sign, right = part.children
                return ast.Arithmetic(
                    self._expression(left),
                    ast.ArithmeticSign(str(sign)),
                    self._expression(right),
                    span_of(part),
                )
            case "negative":
                return self._negative(part)
            case "case":
                return self._case(part)
            case "existence":
                return self._existence(part)
            case "subquery":
                return self._subquery(part)
            case "list":
                return ast.ListLiteral(tuple(map(self._literal, part.children)), span_of(part))
            case _:
                return self._call(part)

    def _value(self, part: Token | Tree[Token]) -> ast.Expression:
        """The value in parentheses, which may hold conditions elsewhere."""
        if isinstance(part, Tree) and part.data in _CONDITIONS:
            self._refuse(span_of(part), "a condition is not a value")
            return ast.Null(span_of(part))
        return self._expression(part)

    def _negative(self, tree: Tree[Token]) -> ast.Expression:
        _, operand = tree.children
        value, span = self._expression(operand), span_of(tree)
        match value:
            case ast.Integer(number):
                return ast.Integer(-number, span)
            case ast.Decimal(number):
                return ast.Decimal(-number, span)
            case _:
                return ast.Arithmetic(ast.Integer(0, span), ast.ArithmeticSign.MINUS, value, span)

    def _case(self, tree: Tree[Token]) -> ast.Case:
        _, *parts = tree.children
        otherwise = self._expression(parts.pop()) if len(parts) % 2 else None
        branches = [
            (self._condition(condition), self._expression(value))
            for condition, value in zip(parts[::2], parts[1::2], strict=True)
        ]
        return ast.Case(tuple(branches), otherwise, span_of(tree))

    def _atom(self, token: Token) -> ast.Expression:
        match token.type:
            case "VAR" | "START":
                return _variable(token)
            case "STRING":
                return self._text(token)
            case "FLOAT":
                return self._decimal(token)
            case _:
                return self._integer(token)

    def _literal(self, part: Token | Tree[Token]) -> ast.Literal:
        value = self._expression(part)
        if isinstance(value, ast.Literal):
            return value
        self._refuse(value.span, "a list holds literals only")
        return ast.Null(value.span)

    def _call(self, tree: Tree[Token]) -> ast.Expression:
        name, *arguments = tree.children
        distinct = bool(arguments) and getattr(arguments[0], "type", "") == "DISTINCT"
        span = span_of(tree)
        if getattr(arguments[-1] if arguments else None, "type", "") == "TIMES":
            return self._count_rows(name, span, distinct=distinct)
        values = [self._expression(value) for value in arguments[distinct:]]
        if distinct and name not in set(AggregateFunction):
            self._refuse(span, f"distinct has no meaning in {name}()", "it belongs to an aggregate")
        match str(name), values:
            case "now", []:
                return ast.Now(span)
            case "type", [ast.Variable() as variable]:
                return ast.TypeOf(variable, span)
            case ("date" | "datetime") as kind, [ast.Text(text)]:
                return ast.Moment(ast.MomentKind(kind), text, span)
            case function, [argument] if function in set(AggregateFunction):
                return ast.AggregateCall(AggregateFunction(function), distinct, argument, span)
            case function, _ if function in set(ast.SearchName):
                return ast.SearchCall(ast.SearchName(function), tuple(values), span)
            case function, _ if function in CALLED:
                return ast.FunctionCall(ValueFunction(function), tuple(values), span)
            case function, [ast.Variable() as path] if function in set(ast.PathFunction):
                return ast.PathCall(ast.PathFunction(function), path, span)
            case function, _ if function not in _FUNCTIONS:
                hint = did_you_mean(function, _FUNCTIONS)
                self._refuse(span, f"the function {function[:100]} does not exist", hint)
            case "type", _:
                self._refuse(span, "type(…) takes a variable", "write type($x)")
            case function, _ if function in set(ast.PathFunction):
                hint = f"write {function}($path), after … as $path in the match"
                self._refuse(span, f"{function}(…) takes a path", hint)
            case "now", _:
                self._refuse(span, "now() takes nothing")
            case ("date" | "datetime") as kind, _:
                self._refuse(span, f'{kind}("…") takes one quoted text')
            case function, _:
                self._refuse(span, f"{function}(…) takes one value")
        return ast.Null(span)

    def _count_rows(
        self, name: Token | Tree[Token], span: Span, *, distinct: bool
    ) -> ast.AggregateCall:
        if name != AggregateFunction.COUNT or distinct:
            self._refuse(span, "* is only valid in count(*)", "name a value")
        return ast.AggregateCall(
            AggregateFunction.COUNT, distinct=False, argument=ast.Star(span), span=span
        )

    def _text(self, token: Token) -> ast.Text:
        text = unescape(token, QueryCode.SYNTAX)
        if isinstance(text, Diagnostic):
            self.diagnostics.append(text)
            text = ""
        return ast.Text(text, span_of(token))

    def _integer(self, token: Token) -> ast.Integer:
        return ast.Integer(int(self._digits(token)), span_of(token))

    def _decimal(self, token: Token) -> ast.Decimal:
        value = float(self._digits(token))
        if isinf(value):
            self._refuse(span_of(token), "the number is larger than any F64")
        return ast.Decimal(value, span_of(token))

    def _digits(self, token: Token) -> str:
        if len(token) <= _DIGITS_MAX:
            return token
        self._refuse(span_of(token), f"a number has at most {_DIGITS_MAX} digits")
        return "0"

    def _refuse(self, span: Span, message: str, hint: str = "") -> None:
        self.diagnostics.append(Diagnostic(QueryCode.SYNTAX, span, message, hint))


def _existence_in(inverse: Tree[Token]) -> Tree[Token] | None:
    """The `exists { … }` after a `not`, if nothing is between them."""
    _, inner = inverse.children
    return inner if isinstance(inner, Tree) and inner.data == "existence" else None


def _is_value(part: Token | Tree[Token]) -> bool:
    """Whether what stands where a clause could is a value."""
    if isinstance(part, Token):
        return True
    if part.data == "paren":
        (inner,) = part.children
        return _is_value(inner)
    return part.data in _VALUES and (part.data != "call" or part.children[0] not in _TESTS)


def _path(tree: Tree[Token]) -> ast.PathNode:
    variable, *weight = _tokens(tree)
    return ast.PathNode(_variable(variable), next(map(_name, weight), None))


def _property(tree: Tree[Token]) -> ast.PropertyOf:
    variable, name = _tokens(tree)
    return ast.PropertyOf(_variable(variable), _name(name), span_of(tree))


def _word(token: Token) -> ast.Expression:
    match str(token):
        case "true" | "false":
            return ast.Boolean(token == "true", span_of(token))
        case "null":
            return ast.Null(span_of(token))
        case _:
            return ast.Alias(_name(token))


def _variable(token: Token) -> ast.Variable:
    return ast.Variable(str(token)[1:], span_of(token))


def _name(part: Token | Tree[Token]) -> ast.Name:
    assert isinstance(part, Token), "the grammar puts a token here"
    return ast.Name(str(part), span_of(part))


def _sign(part: Token | Tree[Token]) -> ast.Sign:
    return ast.Sign(str(part))


def _tokens(tree: Tree[Token]) -> list[Token]:
    return [child for child in tree.children if isinstance(child, Token)]


def _trees(tree: Tree[Token]) -> list[Tree[Token]]:
    return [child for child in tree.children if isinstance(child, Tree)]
