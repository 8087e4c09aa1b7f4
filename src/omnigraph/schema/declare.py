"""Syntax to declarations: assigns each annotation and constraint to its property or type.

The rules about the result are in `rules.py`, because schemas built by hand obey them too. Only
those that a text alone can break are here: an unknown type, a second key, a misplaced annotation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, TypeGuard, assert_never

from omnigraph.lang.diagnostics import Diagnostic, did_you_mean
from omnigraph.lang.source import Span
from omnigraph.model.types import BlobType, EnumType, ListType, PropertyType, Scalar, VectorType
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
from omnigraph.schema.catalog import (
    Annotation,
    Cardinality,
    Check,
    Declaration,
    EdgeType,
    Embed,
    Index,
    IndexOptions,
    Interface,
    Length,
    NodeType,
    Property,
    Range,
    Value,
)
from omnigraph.schema.embedding_models import dimension_fault
from omnigraph.schema.findings import Path, SchemaCode
from omnigraph.schema.index_options import name_fault, options_of, value_fault
from omnigraph.schema.rules import KNOWN_ANNOTATIONS

_BASES: Final[dict[str, Scalar | BlobType]] = {
    **{str(scalar): scalar for scalar in Scalar},
    "Blob": BlobType(),
}
_CONSTRAINTS: Final = frozenset({"key", "unique", "index", "range", "check", "length"})

_USAGE: Final = {
    "key": "@key({0}, …)",
    "unique": "@unique({0}, …)",
    "index": "@index({0}, …)",
    "range": "@range({0}, 0..10)",
    "check": '@check({0}, "^[a-z]+$")',
    "length": "@length({0}, 1..100)",
    "card": "@card(0..1)",
    "default": "@default(0)",
    "embed": '@embed("text", …, model="name")',
    "rename_from": '@rename_from("old")',
    "description": '@description("…")',
}

_PLACES: Final = {
    "card": "before the body of an edge",
    "rename_from": "on a node type, an edge type or a property",
    "key": "in the body of a node or edge type",
    "unique": "in the body of a node or edge type",
    "index": "in the body of a node or edge type",
    "range": "in the body of a node or edge type",
    "check": "in the body of a node or edge type",
    "length": "in the body of a node or edge type",
    "default": "on a property",
    "embed": "on a Vector property",
}
_FIELDS: Final = {"card": "cardinality"}
"""Annotations whose field in the catalog has another name."""


@dataclass(slots=True)
class DeclaredSchema:
    """Declarations, and the spans to which the findings of `rules.py` refer by path.

    Attributes:
        unresolved: Indexes of the declarations that have a property of unknown type. String
            replaces that type, so findings about its values mean nothing.
    """

    declarations: list[Declaration] = field(default_factory=list)
    spans: dict[Path, Span] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    unresolved: set[int] = field(default_factory=set)

    def span(self, path: Path) -> Span:
        """The span of a path, or of its nearest ancestor that the text contains."""
        while path not in self.spans:
            path = path[:-1]
        return self.spans[path]

    def refuse(self, code: SchemaCode, span: Span, message: str, hint: str = "") -> None:
        """Report a rule that only a text can break."""
        self.diagnostics.append(Diagnostic(code, span, message, hint, code.severity))


def declare(nodes: Iterable[DeclarationNode]) -> DeclaredSchema:
    """The declarations of a text, without applying the rules of `rules.py`."""
    schema = DeclaredSchema()
    for index, node in enumerate(nodes):
        schema.declarations.append(_Draft(schema, index, node).finish())
    return schema


@dataclass(slots=True)
class _PropertyDraft:
    """A property under construction: `fields` has what its annotations set."""

    at: Path
    node: PropertyNode
    type: PropertyType
    fields: dict[str, Any] = field(default_factory=dict)

    def finish(self) -> Property:
        return Property(self.node.name.text, self.type, self.node.nullable, **_tuples(self.fields))


@dataclass(slots=True)
class _Draft:
    """A declaration under construction: `fields` has what annotations and constraints set."""

    out: DeclaredSchema
    index: int
    node: DeclarationNode
    fields: dict[str, Any] = field(default_factory=dict)
    properties: list[_PropertyDraft] = field(default_factory=list)

    @property
    def at(self) -> Path:
        return (self.index,)

    def finish(self) -> Declaration:
        name = self.node.name
        self._record_span(name.span)
        for position, interface in enumerate(self.node.implements):
            self._record_span(interface.span, "implements", position)
        for annotation in self.node.header:
            self._header(annotation)
        self._body()
        fields = _tuples(self.fields)
        fields["properties"] = tuple(property_.finish() for property_ in self.properties)
        match self.node.kind:
            case "interface":
                return Interface(name.text, **fields)
            case "node":
                implements = tuple(interface.text for interface in self.node.implements)
                return NodeType(name.text, implements=implements, **fields)
            case _:
                source, target = self.node.ends
                self._record_span(source.span, "source")
                self._record_span(target.span, "target")
                return EdgeType(name.text, source.text, target.text, **fields)

    def _body(self) -> None:
        # An annotation belongs to the property before it, across constraints of that property
        # alone; after any other constraint it would be a guess.
        owner: _PropertyDraft | None = None
        for member in self.node.body:
            if isinstance(member, PropertyNode):
                owner = self._property(member)
            elif _is_of_body(member):
                self._constraint(member, owner)
                names = {
                    argument.text
                    for argument in member.arguments or ()
                    if isinstance(argument, Word)
                }
                owner = owner if owner and names <= {owner.node.name.text} else None
            elif owner is not None:
                self._property_annotation(owner, member)
            else:
                message = f"@{member.name.text} has no property before it"
                hint = "write it after the property, or before the '{' if it is about the type"
                self.out.refuse(SchemaCode.MISUSED_ANNOTATION, member.span, message, hint)

    def _property(self, node: PropertyNode) -> _PropertyDraft:
        at: Path = (*self.at, "properties", len(self.properties))
        self.out.spans[at] = node.name.span
        self.out.spans[(*at, "type")] = node.type_span
        draft = _PropertyDraft(at, node, self._type(at, node.type))
        self.properties.append(draft)
        return draft

    def _type(self, at: Path, node: TypeNode) -> PropertyType:
        match node:
            case NamedNode(name):
                return self._base(name)
            case ListNode(item):
                return ListType(self._base(item))
            case EnumNode(values):
                for position, value in enumerate(values):
                    self.out.spans[(*at, "type", position)] = value.span
                return EnumType(tuple(value.text for value in values))
            case VectorNode(dimension):
                assert isinstance(dimension.value, int), "the grammar has INT here"
                return VectorType(dimension.value)
            case _:
                assert_never(node)

    def _base(self, name: Word) -> Scalar | BlobType:
        if name.text in _BASES:
            return _BASES[name.text]
        self.out.unresolved.add(self.index)
        hint = did_you_mean(name.text, _BASES, otherwise="a property holds a value, not a node")
        if name.text in ("Vector", "enum"):
            hint = "a list holds plain values, neither vectors nor enums"
        self.out.refuse(SchemaCode.UNKNOWN_TYPE, name.span, f"unknown type {name.text}", hint)
        return Scalar.STRING

    def _header(self, annotation: AnnotationNode) -> None:
        name, kind = annotation.name.text, self.node.kind
        match name, annotation.arguments:
            case "description", (Literal(value=str(text)),):
                self._set_once(self.fields, self.at, annotation, text)
            case "rename_from", ((Literal(value=str(text)) | Word(text=text)),) if (
                kind != "interface"
            ):
                self._set_once(self.fields, self.at, annotation, text)
            case "card", (Interval(low=Literal(value=int(low)), high=None),) if kind == "edge":
                self._set_once(self.fields, self.at, annotation, Cardinality(low))
            case "card", (
                Interval(low=Literal(value=int(low)), high=Literal(value=int(high))),
            ) if kind == "edge":
                self._set_once(self.fields, self.at, annotation, Cardinality(low, high))
            case "description" | "rename_from" | "card", _:
                self._report_misuse(annotation, f"on {kind} {self.node.name.text}")
            case _, _ if name in KNOWN_ANNOTATIONS:
                self._report_misuse(annotation, f"before the body of {kind} {self.node.name.text}")
            case _:
                self._metadata(self.fields, self.at, annotation)

    def _property_annotation(self, owner: _PropertyDraft, annotation: AnnotationNode) -> None:
        name = annotation.name.text
        fields, at = owner.fields, owner.at
        match name, annotation.arguments:
            case "key" | "unique", None:
                word = Word(owner.node.name.text, annotation.span)
                self._members(name, (word,), annotation.span)
            case "index", options if options is None or _all_named(options):
                word = Word(owner.node.name.text, annotation.span)
                self._index((word,), options or (), annotation.span)
            case "description", (Literal(value=str(text)),):
                self._set_once(fields, at, annotation, text)
            case "rename_from", ((Literal(value=str(text)) | Word(text=text)),):
                self._set_once(fields, at, annotation, text)
            case "embed", arguments if embed := _to_embed(arguments or ()):
                self._set_once(fields, at, annotation, embed)
                self._check_dimension(owner, annotation, embed)
            case "default", ((Literal() | Word()) as value,):
                self._default(owner, annotation, value)
            case _, _ if name in KNOWN_ANNOTATIONS:
                self._report_misuse(annotation, f"on property {owner.node.name.text}")
            case _:
                self._metadata(fields, at, annotation)

    def _check_dimension(
        self, owner: _PropertyDraft, annotation: AnnotationNode, embed: Embed
    ) -> None:
        # Of texts only: a stored schema has to be readable, whatever its model.
        if (
            embed.model is not None
            and isinstance(owner.type, VectorType)
            and (fault := dimension_fault(embed.model, owner.type.dimension))
        ):
            message = f"{owner.node.name.text} is {owner.type}; {fault}"
            hint = 'change the dimension, or name another model: model="…"'
            self.out.refuse(SchemaCode.EMBED, annotation.span, message, hint)

    def _default(
        self, owner: _PropertyDraft, annotation: AnnotationNode, value: Word | Literal
    ) -> None:
        plain = _to_value(value)
        if isinstance(value, Word) and isinstance(owner.type, EnumType):
            plain = value.text
        elif isinstance(value, Word) and isinstance(plain, str):
            message = f"the default of {owner.node.name.text} is a bare word, not a value"
            hint = f'if it is text, write "{value.text}"'
            self.out.refuse(SchemaCode.DEFAULT, value.span, message, hint)
            return
        self._set_once(owner.fields, owner.at, annotation, plain)

    def _constraint(self, annotation: AnnotationNode, owner: _PropertyDraft | None) -> None:
        name = annotation.name.text
        if self.node.kind == "interface":
            message = f"an interface has properties only, so @{name}(…) has no place in it"
            hint = "write @key, @unique or @index after the property, others in the node type"
            self.out.refuse(SchemaCode.MISUSED_ANNOTATION, annotation.span, message, hint)
            return
        match name, annotation.arguments:
            case "key" | "unique", words if words and _all_words(words):
                self._members(name, words, annotation.span)
            case "index", arguments if parts := _split_index(arguments or ()):
                self._index(*parts, annotation.span)
            case "range", (Word() as word, Interval() as interval):
                low, high = _to_bound(interval.low), _to_bound(interval.high)
                at = self._append("ranges", Range(word.text, low, high))
                self._record_interval(at, word, interval)
            case "check", (Word() as word, Literal(value=str(pattern)) as literal):
                at = self._append("checks", Check(word.text, pattern))
                self.out.spans[at] = annotation.span
                self.out.spans[(*at, "property")] = word.span
                self.out.spans[(*at, "pattern")] = literal.span
            case "length", (Word() as word, Interval() as interval) if counts := _to_counts(
                interval
            ):
                at = self._append("lengths", Length(word.text, *counts))
                self._record_interval(at, word, interval)
            case _:
                about = owner.node.name.text if owner else "property"
                message = f"@{name} does not have these arguments"
                hint = f"write {_USAGE[name].format(about)}"
                self.out.refuse(SchemaCode.CONSTRAINT_ARGUMENTS, annotation.span, message, hint)

    def _record_interval(self, at: Path, word: Word, interval: Interval) -> None:
        self.out.spans[at] = interval.span
        self.out.spans[(*at, "property")] = word.span
        for end, bound in (("low", interval.low), ("high", interval.high)):
            if bound is not None:
                self.out.spans[(*at, end)] = bound.span

    def _members(self, name: str, words: tuple[Word, ...], span: Span) -> None:
        members = tuple(word.text for word in words)
        if name == "key" and "key" in self.fields:
            message = f"{self.node.kind} {self.node.name.text} has a key already"
            hint = "for a key of several properties write @key(a, b) once"
            self.out.refuse(SchemaCode.SECOND_KEY, span, message, hint)
        elif name == "key":
            self.fields["key"] = members
            self._record_span(span, "key")
            for position, word in enumerate(words):
                self._record_span(word.span, "key", position)
        else:
            at = self._append("uniques", members)
            self.out.spans[at] = span
            for position, word in enumerate(words):
                self.out.spans[(*at, position)] = word.span

    def _index(
        self, words: tuple[Word, ...], arguments: tuple[NamedArgument, ...], span: Span
    ) -> None:
        options = self._options(arguments)
        for word in words:
            at = self._append("indexes", Index(word.text, options))
            self.out.spans[at] = word.span
            self.out.spans[(*at, "options")] = span

    def _options(self, arguments: tuple[NamedArgument, ...]) -> IndexOptions | None:
        """The options of an index; those that are refused are left out."""
        values: dict[str, Any] = {}
        for argument in arguments:
            name, value = argument.name, argument.value
            if fault := name_fault(name.text, values):
                self.out.refuse(SchemaCode.INDEX_OPTIONS, name.span, *fault)
            elif fault := value_fault(name.text, _to_value(value)):
                self.out.refuse(SchemaCode.INDEX_OPTIONS, value.span, *fault)
            else:
                values[name.text] = _to_value(value)
        return options_of(values)

    def _set_once(
        self, fields: dict[str, Any], at: Path, annotation: AnnotationNode, value: object
    ) -> None:
        name = _FIELDS.get(annotation.name.text, annotation.name.text)
        if name in fields:
            message = f"@{annotation.name.text} is given twice"
            self.out.refuse(SchemaCode.DUPLICATE_ANNOTATION, annotation.span, message)
            return
        fields[name] = value
        self.out.spans[(*at, name)] = annotation.span

    def _metadata(self, fields: dict[str, Any], at: Path, annotation: AnnotationNode) -> None:
        first, *rest = annotation.arguments or (None,)
        named = [argument for argument in rest if isinstance(argument, NamedArgument)]
        if (
            annotation.arguments == ()
            or isinstance(first, Interval | NamedArgument)
            or len(named) < len(rest)
        ):
            self._report_misuse(annotation, f"in {self.node.kind} {self.node.name.text}")
            return
        metadata = Annotation(
            annotation.name.text,
            None if first is None else _to_value(first),
            tuple((argument.name.text, _to_value(argument.value)) for argument in named),
        )
        fields.setdefault("annotations", []).append(metadata)
        self.out.spans[(*at, "annotations", len(fields["annotations"]) - 1)] = annotation.span

    def _report_misuse(self, annotation: AnnotationNode, where: str) -> None:
        name = annotation.name.text
        usage = _USAGE.get(name, "@{1}(value, name=value)").format("property", name)
        place = _PLACES.get(name, "")
        message = f"@{name} cannot be written like this {where}"
        hint = f"write {usage} {place}".rstrip()
        self.out.refuse(SchemaCode.MISUSED_ANNOTATION, annotation.span, message, hint)

    def _append(self, name: str, value: object) -> Path:
        self.fields.setdefault(name, []).append(value)
        return (*self.at, name, len(self.fields[name]) - 1)

    def _record_span(self, span: Span, *path: str | int) -> None:
        self.out.spans[(*self.at, *path)] = span


def _tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
    }


def _is_of_body(annotation: AnnotationNode) -> bool:
    """Whether an annotation names the properties that it is about, and is not about one alone."""
    if annotation.name.text not in _CONSTRAINTS or annotation.arguments is None:
        return False
    is_about_one = annotation.name.text == "index" and _all_named(annotation.arguments)
    return not annotation.arguments or not is_about_one


def _split_index(
    arguments: tuple[Argument, ...],
) -> tuple[tuple[Word, ...], tuple[NamedArgument, ...]] | None:
    """The properties and the options of an index in a body; None if it does not have these."""
    words = tuple(argument for argument in arguments if isinstance(argument, Word))
    options = arguments[len(words) :]
    return (words, options) if words and _all_named(options) else None


def _all_named(arguments: tuple[Argument, ...]) -> TypeGuard[tuple[NamedArgument, ...]]:
    return all(isinstance(argument, NamedArgument) for argument in arguments)


def _all_words(arguments: tuple[Argument, ...]) -> TypeGuard[tuple[Word, ...]]:
    return all(isinstance(argument, Word) for argument in arguments)


def _to_embed(arguments: tuple[Argument, ...]) -> Embed | None:
    """Texts or names of properties, and perhaps a model behind them."""
    model: str | None = None
    match arguments:
        case (
            *rest,
            NamedArgument(name=Word(text="model"), value=Literal(value=str(name))),
        ):
            arguments, model = tuple(rest), name
        case _:
            pass
    sources: list[str] = []
    for argument in arguments:
        match argument:
            case Literal(value=str(text)) | Word(text=text):
                sources.append(text)
            case _:
                return None
    return Embed(tuple(sources), model) if sources else None


def _to_value(value: Word | Literal) -> str | int | float | bool:
    if isinstance(value, Literal):
        return value.value
    return {"true": True, "false": False}.get(value.text, value.text)


def _to_bound(bound: Word | Literal | None) -> Value | None:
    return None if bound is None else _to_value(bound)


def _to_counts(interval: Interval) -> tuple[int | None, int | None] | None:
    """The bounds of an interval; None where one is not a whole number."""
    counts: list[int | None] = []
    for bound in (interval.low, interval.high):
        match bound:
            case None:
                counts.append(None)
            case Literal(value=int(count)):
                counts.append(count)
            case _:
                return None
    low, high = counts
    return low, high
