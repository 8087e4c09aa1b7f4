"""Text to syntax: a tree of each declaration, and every syntax error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Final

from lark import Token, Tree

from omnigraph.lang.diagnostics import ERRORS_MAX, Diagnostic
from omnigraph.lang.grammar import Grammar, lexemes, span_of, unescape
from omnigraph.lang.source import Source, Span
from omnigraph.schema.ast import (
    AnnotationNode,
    Argument,
    DeclarationNode,
    EnumNode,
    Interval,
    ListNode,
    Literal,
    NamedArgument,
    NamedNode,
    PropertyNode,
    TypeNode,
    VectorNode,
    Word,
)
from omnigraph.schema.findings import SchemaCode

_KEYWORDS: Final = frozenset({"interface", "node", "edge", "enum"})
"""Words that start a declaration when another word follows. A standalone enum is no declaration,
but its author meant to start a new one.
"""

_DIGITS_MAX: Final = 400
"""Every number of a property type is shorter, and Python refuses one that is ten times longer."""

_GRAMMAR: Final = Grammar(
    package="omnigraph.schema",
    code=SchemaCode.SYNTAX,
    terminals={
        **dict.fromkeys(
            ("$END", "INTERFACE", "NODE", "EDGE"), "a declaration (interface, node or edge)"
        ),
        "TYPE": "a type name (A-Z first)",
        "IDENT": "a name (a-z or _ first)",
        "NAME": "a type",
        **dict.fromkeys(("EVAL", "HYPHENATED"), "an enum value"),
        "INT": "a number",
        "FLOAT": "a number",
        "STRING": "a quoted text",
    },
    hints={
        "enum": "an enum is written in place: status: enum(open, closed)",
        ";": "declarations and properties need no ';'",
        ",": "properties need no ','",
    },
)


@dataclass(frozen=True, slots=True)
class Syntax:
    """The declarations that could be parsed, and the errors in the others.

    Attributes:
        lost_names: Names of the declarations that could not be parsed.
    """

    declarations: tuple[DeclarationNode, ...]
    diagnostics: tuple[Diagnostic, ...]
    lost_names: frozenset[str] = frozenset()


def read(source: Source) -> Syntax:
    """Parse every declaration; one that cannot be parsed is reported and omitted.

    Parsing ends at `ERRORS_MAX` errors. Never raises, whatever the text.
    """
    if faults := _GRAMMAR.admit(source):
        return Syntax((), faults)
    builder = _Builder()
    declarations: list[DeclarationNode] = []
    lost_names: set[str] = set()
    for span in _declaration_spans(source.text):
        if len(builder.diagnostics) < ERRORS_MAX:
            tree = _GRAMMAR.parse(source, span)
            if not isinstance(tree, Diagnostic):
                declarations += map(builder.declaration, _trees(tree))
                continue
            builder.diagnostics.append(tree)
        lost_names.update(match.group() for match in islice(lexemes(source.at(span)), 1, 2))
    return Syntax(tuple(declarations), tuple(builder.diagnostics), frozenset(lost_names))


def _declaration_spans(text: str) -> Iterator[Span]:
    """The spans of a text split before each keyword that another word follows.

    Inside a declaration a word like `node` is a name, and no name is followed by a word; so the
    split is right even where brackets are missing.
    """
    starts = [
        word.start()
        for word, next_ in pairwise(lexemes(text))
        if word.group() in _KEYWORDS and next_.lastgroup == "word"
    ]
    yield from (Span(start, end) for start, end in pairwise([0, *starts, len(text)]))


@dataclass(slots=True)
class _Builder:
    """Converts lark's trees to ours, and collects errors inside single tokens."""

    diagnostics: list[Diagnostic] = field(default_factory=list)

    def declaration(self, tree: Tree[Token]) -> DeclarationNode:
        name, *ends = map(_word, _tokens(tree))
        header: list[AnnotationNode] = []
        implements: tuple[Word, ...] = ()
        body: tuple[PropertyNode | AnnotationNode, ...] = ()
        for child in _trees(tree):
            match child.data:
                case "annotation":
                    header.append(self._annotation(child))
                case "implements":
                    implements = tuple(map(_word, _tokens(child)))
                case _:
                    body = tuple(map(self._member, _trees(child)))
        return DeclarationNode(str(tree.data), name, tuple(ends), implements, tuple(header), body)

    def _member(self, tree: Tree[Token]) -> PropertyNode | AnnotationNode:
        return self._property(tree) if tree.data == "property" else self._annotation(tree)

    def _property(self, tree: Tree[Token]) -> PropertyNode:
        name, *nullable = _tokens(tree)
        (type_,) = _trees(tree)
        return PropertyNode(_word(name), self._type(type_), span_of(type_), bool(nullable))

    def _type(self, tree: Tree[Token]) -> TypeNode:
        first, *_ = _tokens(tree)
        match tree.data:
            case "named":
                return NamedNode(_word(first))
            case "list":
                return ListNode(_word(first))
            case "enum":
                return EnumNode(tuple(map(_word, _tokens(tree))))
            case _:
                return VectorNode(self._number(first))

    def _annotation(self, tree: Tree[Token]) -> AnnotationNode:
        name, *rest = tree.children
        assert isinstance(name, Token), "an annotation starts with its name"
        arguments = tuple(map(self._argument, rest[1:])) if rest else None
        return AnnotationNode(_word(name), arguments, span_of(tree))

    def _argument(self, part: Token | Tree[Token]) -> Argument:
        if isinstance(part, Token):
            return self._value(part)
        if part.data == "interval":
            ends = {str(bound.data): self._bound(bound.children[0]) for bound in _trees(part)}
            return Interval(ends.get("low"), ends.get("high"), span_of(part))
        name, value = _tokens(part)
        return NamedArgument(_word(name), self._value(value))

    def _bound(self, part: Token | Tree[Token]) -> Word | Literal:
        if isinstance(part, Token):
            return self._value(part)
        word, text = _tokens(part)
        if word not in ("date", "datetime"):
            self._refuse(span_of(word), f"unknown literal {word}(…)", 'date("…") or datetime("…")')
        return self._text(text)

    def _value(self, token: Token) -> Word | Literal:
        match token.type:
            case "IDENT" | "HYPHENATED":
                return _word(token)
            case "STRING":
                return self._text(token)
            case "FLOAT":
                return Literal(float(token), span_of(token))
            case _:
                return self._number(token)

    def _text(self, token: Token) -> Literal:
        text = unescape(token, SchemaCode.SYNTAX)
        if isinstance(text, Diagnostic):
            self.diagnostics.append(text)
            text = ""
        return Literal(text, span_of(token))

    def _number(self, token: Token) -> Literal:
        if len(token) > _DIGITS_MAX:
            self._refuse(span_of(token), f"a number has at most {_DIGITS_MAX} digits")
            return Literal(0, span_of(token))
        return Literal(int(token), span_of(token))

    def _refuse(self, span: Span, message: str, hint: str = "") -> None:
        self.diagnostics.append(Diagnostic(SchemaCode.SYNTAX, span, message, hint))


def _word(token: Token) -> Word:
    return Word(str(token), span_of(token))


def _tokens(tree: Tree[Token]) -> list[Token]:
    return [child for child in tree.children if isinstance(child, Token) and child.type != "OPEN"]


def _trees(tree: Tree[Token]) -> list[Tree[Token]]:
    return [child for child in tree.children if isinstance(child, Tree)]
