"""Steps about properties: added, renamed, dropped, of another type, with other annotations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from omnigraph.lang.spelling import quote
from omnigraph.model.types import EnumType, ListType, Scalar, VectorType
from omnigraph.schema.catalog import Annotation, Embed, Property
from omnigraph.schema.change_codes import ChangeCode
from omnigraph.schema.embeds import companion_name, has_companion, is_companion
from omnigraph.schema.printer import print_annotation, print_default, print_embed, print_property
from omnigraph.schema.retyping import Retyping, keeps_distinctness
from omnigraph.schema.steps import Cost, Refusal, RuleCheck, RuleWord, SchemaStep, StepKind
from omnigraph.schema.type_changes import ColumnSource, TypeChange
from omnigraph.wording import count_of


def property_steps(change: TypeChange) -> Iterator[SchemaStep]:
    """The steps about the properties of a type, except those about its constraints."""
    for property_ in change.new.properties:
        if is_companion(change.new, property_.name) and not _is_first_note(change, property_.name):
            continue
        old = change.old_property(property_.name)
        if old is None:
            yield _addition(change, property_)
        else:
            yield from _changes(change, old, property_)
    kept = set(change.names.values())
    for old in change.old.properties:
        if old.name not in kept and not is_companion(change.old, old.name):
            # A hint is no part of what a property means.
            before = print_property(change.old, replace(old, rename_from=None))
            drop = change.step(StepKind.DROP_PROPERTY, old.name, before=before)
            yield replace(drop, rows=change.rows)
    yield from _reordering(change)


def _is_first_note(change: TypeChange, companion: str) -> bool:
    """Whether a vector was embedded before, by a release that kept no notes."""
    return companion not in change.names and any(
        old.embed is not None and companion_name(new.name) == companion
        for new in change.new.properties
        if (old := change.old_property(new.name)) and not has_companion(change.old, old)
    )


def _addition(change: TypeChange, property_: Property) -> SchemaStep:
    after = print_property(change.new, property_)
    step = change.step(StepKind.ADD_PROPERTY, property_.name, after=after)
    source = change.source_of(property_)
    if source is ColumnSource.NULLS and (property_.nullable or not change.rows):
        return step
    if source is not ColumnSource.NULLS:
        computed = source is ColumnSource.EXPRESSION
        checks = tuple(_checks_of_values(change, property_)) if computed else ()
        return replace(step, cost=Cost.REWRITTEN, rows=change.rows, checks=checks)
    place = f"{change.new.name}.{property_.name}"
    refusal = Refusal(
        ChangeCode.NO_VALUE,
        f"{place} is required, and the {count_of(change.rows, 'row')} of {change.new.name} "
        "have no value",
        _value_way(place, property_),
    )
    return change.refused(StepKind.ADD_PROPERTY, refusal, property_.name, before=None, after=after)


def _checks_of_values(change: TypeChange, property_: Property) -> Iterator[RuleCheck]:
    """What the type of a property requires of values that an expression computes."""
    if not property_.nullable or isinstance(property_.type, ListType):
        yield change.check(RuleWord.REQUIRED, property_.name)
    if isinstance(property_.type, EnumType):
        yield change.check(RuleWord.ENUM, property_.name)
    if isinstance(property_.type, VectorType):
        yield change.check(RuleWord.TYPE, property_.name)


def _changes(change: TypeChange, old: Property, new: Property) -> Iterator[SchemaStep]:
    name = new.name
    if old.name != name:
        yield change.step(StepKind.RENAME_PROPERTY, name, before=old.name, after=name)
    if old.type != new.type:
        yield _type_step(change, old, new)
    if old.nullable and not new.nullable:
        check = change.check(RuleWord.REQUIRED, name)
        before, after = f"{new.type}?", str(new.type)
        yield change.validated(StepKind.REQUIRE_VALUE, check, before=before, after=after)
    elif new.nullable and not old.nullable:
        before, after = str(new.type), f"{new.type}?"
        yield change.step(StepKind.ALLOW_NULL, name, before=before, after=after)
    yield from _default_steps(change, old, new)
    yield from _embed_steps(change, old, new)
    yield from description_steps(change, name, old.description, new.description)
    yield from annotation_steps(change, name, old.annotations, new.annotations)


def _type_step(change: TypeChange, old: Property, new: Property) -> SchemaStep:
    kind, before, after = _type_kind(old, new), str(old.type), str(new.type)
    step = change.step(kind, new.name, before=before, after=after)
    retyping = change.retyping(new.name)
    if not change.rows or retyping is Retyping.RELABEL:
        return step
    if retyping is Retyping.RESTRICT:
        check = change.check(RuleWord.ENUM, new.name)
        return change.validated(kind, check, before=before, after=after)
    if refusal := _type_refusal(change, old, new, retyping):
        return change.refused(kind, refusal, new.name, before=before, after=after)
    checks = tuple(_checks_of_conversion(change, old, new))
    return replace(step, cost=Cost.REWRITTEN, rows=change.rows, checks=checks)


def _type_kind(old: Property, new: Property) -> StepKind:
    match old.type, new.type:
        case EnumType(before), EnumType(after) if set(before) == set(after):
            return StepKind.REORDER_ENUM
        case EnumType(before), EnumType(after) if set(before) < set(after):
            return StepKind.WIDEN_ENUM
        case EnumType(), EnumType():
            return StepKind.NARROW_ENUM
        case _:
            return StepKind.CHANGE_TYPE


def _type_refusal(
    change: TypeChange, old: Property, new: Property, retyping: Retyping
) -> Refusal | None:
    place = f"{change.new.name}.{new.name}"
    pair = f"{old.type} to {new.type}"
    if old.name in change.old.key:
        return Refusal(
            ChangeCode.KEY_TYPE_CHANGE,
            f"{place} is part of the key, from which the ids of {count_of(change.rows, 'row')} "
            f"are made; it cannot change from {pair}",
            _export_way(change),
        )
    if retyping is Retyping.IMPOSSIBLE:
        return Refusal(
            ChangeCode.NO_CONVERSION,
            f"{place} cannot be converted from {pair}",
            f"{_replacement_way(old, new)}, or {_export_way(change)}",
        )
    if retyping is Retyping.CONVERT and new.name not in change.conversions:
        return Refusal(
            ChangeCode.CONVERSION_NOT_REQUESTED,
            f"not every value of {place} need convert exactly from {pair}",
            f"pass --convert {place}: values that do not convert are reported as violations",
        )
    return None


def _checks_of_conversion(change: TypeChange, old: Property, new: Property) -> Iterator[RuleCheck]:
    """The rules of a property that may hold for its old values and not for the converted ones."""
    if isinstance(new.type, EnumType):
        yield change.check(RuleWord.ENUM, new.name)
    if keeps_distinctness(old.type, new.type):
        return
    for members in change.new.uniques:
        if new.name in members:
            yield change.check(RuleWord.UNIQUE, *members)
    if any(range_.property == new.name for range_ in change.new.ranges):
        yield change.check(RuleWord.RANGE, new.name)


def _default_steps(change: TypeChange, old: Property, new: Property) -> Iterator[SchemaStep]:
    before = None if old.default is None else print_default(old.type, old.default)
    after = None if new.default is None else print_default(new.type, new.default)
    kinds = (StepKind.ADD_DEFAULT, StepKind.CHANGE_DEFAULT, StepKind.DROP_DEFAULT)
    yield from _annotation_step(change, kinds, new.name, before, after)


def _embed_steps(change: TypeChange, old: Property, new: Property) -> Iterator[SchemaStep]:
    before = None if old.embed is None else print_embed(old.embed)
    after = None if new.embed is None else print_embed(new.embed)
    kinds = (StepKind.ADD_EMBED, StepKind.CHANGE_EMBED, StepKind.DROP_EMBED)
    if _renamed_embed(change, old.embed) != new.embed:
        yield from _annotation_step(change, kinds, new.name, before, after)


def _renamed_embed(change: TypeChange, embed: Embed | None) -> Embed | None:
    """The embedding with the names that its sources have now."""
    if embed is None:
        return None
    sources = tuple(change.new_names.get(source, source) for source in embed.sources)
    return replace(embed, sources=sources)


def _annotation_step(
    change: TypeChange,
    kinds: tuple[StepKind, StepKind, StepKind],
    name: str,
    before: str | None,
    after: str | None,
) -> Iterator[SchemaStep]:
    add, alter, drop = kinds
    if before != after:
        kind = add if before is None else drop if after is None else alter
        yield change.step(kind, name, before=before, after=after)


def description_steps(
    change: TypeChange, name: str | None, old: str | None, new: str | None
) -> Iterator[SchemaStep]:
    """The step to another description of a property, or of the type if there is no name."""
    if old != new:
        before = None if old is None else f"@description({quote(old)})"
        after = None if new is None else f"@description({quote(new)})"
        yield change.step(StepKind.CHANGE_DESCRIPTION, name, before=before, after=after)


def annotation_steps(
    change: TypeChange,
    name: str | None,
    old: tuple[Annotation, ...],
    new: tuple[Annotation, ...],
) -> Iterator[SchemaStep]:
    """The steps to other metadata, one for each annotation by its name, which may be repeated."""
    for word in sorted({annotation.name for annotation in (*old, *new)}):
        before, after = _print_annotations(old, word), _print_annotations(new, word)
        if before != after:
            yield change.step(StepKind.CHANGE_ANNOTATION, name, before=before, after=after)


def _print_annotations(annotations: tuple[Annotation, ...], word: str) -> str | None:
    texts = [print_annotation(one) for one in annotations if one.name == word]
    return " ".join(texts) or None


def _reordering(change: TypeChange) -> Iterator[SchemaStep]:
    kept = set(change.names.values())
    old_order = [old.name for old in change.old.properties if old.name in kept]
    new_order = [new.name for new in change.new.properties if new.name in change.names]
    if [change.names[name] for name in new_order] != old_order:
        yield change.step(
            StepKind.REORDER_PROPERTIES, before=", ".join(old_order), after=", ".join(new_order)
        )


def _value_way(place: str, property_: Property) -> str:
    if not _is_computable(property_):
        return f"make it {property_.type}?, and load its values"
    return f"give it a @default, or pass --fill {place}=<expression>, or make it {property_.type}?"


def _replacement_way(old: Property, new: Property) -> str:
    if _is_computable(old) and _is_computable(new):
        return f"add a property of another name with --fill and drop {new.name}"
    return f"add a property of another name, load its values, and drop {new.name}"


def _is_computable(property_: Property) -> bool:
    """Whether defaults and expressions can have its values: not those of lists, vectors, blobs."""
    return isinstance(property_.type, Scalar | EnumType)


def _export_way(change: TypeChange) -> str:
    return f"export {change.old.name}, transform it and load it into a new type"
