"""Laws of schema changes: plans are complete and stable, merges do not depend on the side."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.schema import codec
from omnigraph.schema.catalog import (
    Catalog,
    Declaration,
    EdgeType,
    Index,
    Interface,
    NodeType,
    Property,
    SchemaType,
)
from omnigraph.schema.embeds import manage
from omnigraph.schema.findings import InvalidSchemaError
from omnigraph.schema.plan import plan_by_hints, plan_change
from omnigraph.schema.resolve import catalog_of
from omnigraph.schema.schema_conflicts import SchemaConflict, SideName
from omnigraph.schema.schema_facts import SchemaSide
from omnigraph.schema.steps import Cost
from omnigraph.schema.three_way import SchemaMerge, merge_schemas
from tests.strategies.schemas import catalogs, index_options, properties, property_types
from tests.support.schema_sides import first_side, next_side

laws = settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def without_property(type_: SchemaType, name: str) -> SchemaType:
    """The type without a property, and without what names it."""
    kept = tuple(
        replace(one, embed=None) if one.embed and name in one.embed.sources else one
        for one in type_.properties
        if one.name != name
    )
    return replace(
        type_,
        properties=kept,
        key=() if name in type_.key else type_.key,
        uniques=tuple(members for members in type_.uniques if name not in members),
        indexes=tuple(one for one in type_.indexes if one.property != name),
        ranges=tuple(one for one in type_.ranges if one.property != name),
        checks=tuple(one for one in type_.checks if one.property != name),
        lengths=tuple(one for one in type_.lengths if one.property != name),
    )


def with_renamed_property(type_: SchemaType, old: str, new: str) -> SchemaType:
    """The type with another name of a property, wherever it is named, and a hint."""

    def name(one: str) -> str:
        return new if one == old else one

    def renamed(one: Property) -> Property:
        embed = (
            replace(one.embed, sources=tuple(map(name, one.embed.sources))) if one.embed else None
        )
        hint = old if one.name == old else one.rename_from
        return replace(one, name=name(one.name), embed=embed, rename_from=hint)

    return replace(
        type_,
        properties=tuple(map(renamed, type_.properties)),
        key=tuple(map(name, type_.key)),
        uniques=tuple(tuple(map(name, members)) for members in type_.uniques),
        indexes=tuple(replace(one, property=name(one.property)) for one in type_.indexes),
        ranges=tuple(replace(one, property=name(one.property)) for one in type_.ranges),
        checks=tuple(replace(one, property=name(one.property)) for one in type_.checks),
        lengths=tuple(replace(one, property=name(one.property)) for one in type_.lengths),
    )


@st.composite
def changed_types(draw: st.DrawFn, type_: SchemaType) -> SchemaType:
    """A type with one change, which need not be valid."""
    edits = ["add", "describe", "unique"]
    edits += ["drop", "rename", "retype", "null", "move", "index"] if type_.properties else []
    edit = draw(st.sampled_from(edits))
    if edit == "add":
        place = draw(st.integers(0, len(type_.properties)))
        added = replace(draw(properties()), name=draw(st.sampled_from(["x", "y", "z"])))
        both = (*type_.properties[:place], added, *type_.properties[place:])
        return replace(type_, properties=both)
    if edit == "describe":
        return replace(type_, description=draw(st.sampled_from(["one", "two"])))
    if edit == "unique" or not type_.properties:
        names = [one.name for one in type_.properties][:2]
        return replace(type_, uniques=(tuple(names),) if names else ())
    chosen = draw(st.sampled_from(type_.properties))
    if edit == "drop":
        return without_property(type_, chosen.name)
    if edit == "rename":
        return with_renamed_property(type_, chosen.name, draw(st.sampled_from(["x", "y", "z"])))
    if edit == "index":
        return replace(type_, indexes=(Index(chosen.name, draw(index_options(chosen.type))),))
    if edit == "move":
        others = tuple(one for one in type_.properties if one != chosen)
        return replace(type_, properties=(*others, chosen))
    changed = replace(chosen, nullable=not chosen.nullable)
    if edit == "retype":
        changed = replace(chosen, type=draw(property_types), default=None, embed=None)
        bare = without_property(type_, chosen.name)
        return replace(bare, properties=(changed, *bare.properties))
    return replace(
        type_, properties=tuple(changed if one == chosen else one for one in type_.properties)
    )


def with_renamed_type(declarations: list[Declaration], old: str, new: str) -> list[Declaration]:
    renamed: list[Declaration] = []
    for one in declarations:
        declaration = one
        if isinstance(one, EdgeType):
            source, target = (new if end == old else end for end in (one.source, one.target))
            declaration = replace(one, source=source, target=target)
        if one.name == old and not isinstance(declaration, Interface):
            declaration = replace(declaration, name=new, rename_from=old)
        renamed.append(declaration)
    return renamed


@st.composite
def changed(draw: st.DrawFn, catalog: Catalog) -> Catalog:
    """The catalog after a few changes; those that would make it invalid are left out."""
    for _ in range(draw(st.integers(0, 4))):
        declarations: list[Declaration] = [*catalog.interfaces, *catalog.types]
        edit = draw(st.sampled_from(["new", "drop", "rename", "change", "change", "change"]))
        types = list(catalog.types)
        if edit == "new" or not types:
            declarations.append(NodeType(draw(st.sampled_from(["New1", "New2"]))))
        else:
            chosen = draw(st.sampled_from(types))
            if edit == "rename":
                new = draw(st.sampled_from(["Other1", "Other2"]))
                declarations = with_renamed_type(declarations, chosen.name, new)
            else:
                declarations.remove(chosen)
            if edit == "change":
                declarations.append(draw(changed_types(chosen)))
        try:
            catalog = catalog_of(*map(manage, declarations))
        except InvalidSchemaError:
            continue
    return catalog


pairs = catalogs.flatmap(lambda catalog: st.tuples(st.just(catalog), changed(catalog)))
triples = catalogs.flatmap(
    lambda catalog: st.tuples(st.just(catalog), changed(catalog), changed(catalog))
)


def without_hints(catalog: Catalog) -> Catalog:
    """The catalog without what is no part of its meaning."""

    def bare(declaration: Declaration) -> Declaration:
        kept = tuple(replace(one, rename_from=None) for one in declaration.properties)
        if isinstance(declaration, Interface):
            return replace(declaration, properties=kept)
        return replace(declaration, properties=kept, rename_from=None)

    return catalog_of(*map(bare, (*catalog.interfaces, *catalog.types)))


def plan(old: Catalog, new: Catalog, rows: int):
    return plan_by_hints(old, new, row_counts={type_.table_key: rows for type_ in old.types})


@given(pairs)
@laws
def test_a_plan_is_empty_if_and_only_if_the_schemas_mean_the_same(pair):
    old, new = pair
    planned = plan(old, new, 3)
    if not planned.errors:
        assert planned.is_empty == (without_hints(old) == without_hints(new))
    assert plan(new, new, 3).steps == ()
    assert plan(new, new, 3).errors == ()


@given(pairs)
@laws
def test_a_plan_is_stable_and_an_empty_graph_pays_nothing(pair):
    old, new = pair
    text = json.dumps(plan(old, new, 3).to_json())
    again = plan(codec.decode(codec.encode(old)), codec.decode(codec.encode(new)), 3)
    assert json.dumps(again.to_json()) == text
    assert {step.cost for step in plan(old, new, 0).steps} <= {Cost.METADATA}


@given(pairs)
@laws
def test_the_columns_of_a_plan_are_those_of_the_new_schema(pair):
    old, new = pair
    planned = plan(old, new, 3)
    if planned.errors:
        return
    for type_ in new.types:
        columns = planned.columns(type_)
        names = [one.name for one in type_.properties]
        assert [column.name for column in columns if column.definition] == names
        sources = [column.old_name for column in columns if column.old_name]
        assert len(set(sources)) == len(sources)


def sides_of(triple: tuple[Catalog, Catalog, Catalog]) -> tuple[SchemaSide, SchemaSide, SchemaSide]:
    base = first_side(triple[0])
    return base, next_side(base, triple[1]), next_side(base, triple[2])


def mirrored(conflict: SchemaConflict) -> SchemaConflict:
    return replace(conflict, ours=conflict.theirs, theirs=conflict.ours)


def first_choice(conflict: SchemaConflict) -> SideName:
    """A decision that depends on the texts alone, and so is mirrored with them."""
    return "ours" if str(conflict.ours) < str(conflict.theirs) else "theirs"


@given(triples)
@laws
def test_a_merge_is_the_same_whichever_side_is_ours(triple):
    base, ours, theirs = sides_of(triple)
    one, other = merge_schemas(base, ours, theirs), merge_schemas(base, theirs, ours)
    if not isinstance(one, SchemaMerge):
        assert not isinstance(other, SchemaMerge)
        assert set(map(mirrored, other)) == set(one)
        one = merge_schemas(base, ours, theirs, decide=first_choice)
        other = merge_schemas(base, theirs, ours, decide=first_choice)
    if isinstance(one, SchemaMerge):
        assert isinstance(other, SchemaMerge)
        assert (one.catalog, one.identities) == (other.catalog, other.identities)
        assert (one.to_ours, one.to_theirs) == (other.to_theirs, other.to_ours)


@given(pairs)
@laws
def test_a_side_merges_with_the_base_or_with_itself_to_itself(pair):
    base, ours, _ = sides_of((*pair, pair[1]))
    for theirs in (base, ours):
        merged = merge_schemas(base, ours, theirs)
        assert isinstance(merged, SchemaMerge), merged
        assert merged.catalog == ours.catalog
        assert merged.identities == ours.identities
        counts = {type_.table_key: 3 for type_ in ours.catalog.types}
        planned = plan_change(ours.catalog, merged.catalog, merged.to_ours, row_counts=counts)
        assert planned.steps == ()
