"""Recipes of a schema change: how each column that needs values gets them."""

from __future__ import annotations

from typing import assert_never

from omnigraph.evolution.fills import compile_fill
from omnigraph.evolution.values import (
    ConstantRecipe,
    ConversionRecipe,
    ExpressionRecipe,
    Recipe,
    RecipeTarget,
)
from omnigraph.schema.catalog import SchemaType
from omnigraph.schema.type_changes import ColumnChange, ColumnSource


def make_recipe(
    old: SchemaType, new: SchemaType, column: ColumnChange, expression: str | None
) -> Recipe:
    """How to make the values of a column that needs some.

    Args:
        expression: The fill that the caller requested for it.
    """
    assert column.definition is not None, "system columns are kept"
    target = RecipeTarget(new.name, column.definition)
    match column.source:
        case ColumnSource.DEFAULT:
            return ConstantRecipe(target, column.definition.default)
        case ColumnSource.CONVERTED:
            assert column.old_name is not None, "it is converted from a column"
            source = old.property_named(column.old_name)
            return ConversionRecipe(target, source.name, source.type)
        case ColumnSource.EXPRESSION:
            assert expression is not None, "that is why it is its source"
            fill = compile_fill(old, column.definition, expression, new_name=new.name)
            return ExpressionRecipe(target, fill)
        case ColumnSource.KEPT | ColumnSource.NULLS:
            message = f"{column.name} needs no values"
            raise AssertionError(message)
        case _:
            assert_never(column.source)
