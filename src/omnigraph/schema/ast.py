"""The syntax tree of a schema text, before any check: declarations with spans."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.lang.source import Span


@dataclass(frozen=True, slots=True)
class Word:
    """A name, or a bare word among arguments."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Literal:
    """A quoted text or a number."""

    value: str | int | float
    span: Span


@dataclass(frozen=True, slots=True)
class Interval:
    """`low..high`, either end open."""

    low: Word | Literal | None
    high: Word | Literal | None
    span: Span


@dataclass(frozen=True, slots=True)
class NamedArgument:
    """`name=value`."""

    name: Word
    value: Word | Literal


Argument = Word | Literal | Interval | NamedArgument


@dataclass(frozen=True, slots=True)
class AnnotationNode:
    """`@name`, or `@name(…)`: a constraint, or metadata of a property or a type.

    Attributes:
        arguments: None where there are no parentheses.
    """

    name: Word
    arguments: tuple[Argument, ...] | None
    span: Span


@dataclass(frozen=True, slots=True)
class NamedNode:
    """A type by name."""

    name: Word


@dataclass(frozen=True, slots=True)
class ListNode:
    """A list of a type by name."""

    item: Word


@dataclass(frozen=True, slots=True)
class EnumNode:
    """An enum and its values."""

    values: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class VectorNode:
    """A vector and its dimension."""

    dimension: Literal


TypeNode = NamedNode | ListNode | EnumNode | VectorNode


@dataclass(frozen=True, slots=True)
class PropertyNode:
    """`name: type`; nullable if a `?` follows."""

    name: Word
    type: TypeNode
    type_span: Span
    nullable: bool


@dataclass(frozen=True, slots=True)
class DeclarationNode:
    """An interface, a node type or an edge type, as written.

    Attributes:
        kind: `interface`, `node` or `edge`.
        ends: An edge's source and target; empty otherwise.
        header: The annotations before the body.
        body: Properties and annotations in the order of the text.
    """

    kind: str
    name: Word
    ends: tuple[Word, ...]
    implements: tuple[Word, ...]
    header: tuple[AnnotationNode, ...]
    body: tuple[PropertyNode | AnnotationNode, ...]
