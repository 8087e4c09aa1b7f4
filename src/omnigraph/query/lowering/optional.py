"""Optional parts and subqueries of a block: what depends on them, and what they depend on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from omnigraph.query import ir
from omnigraph.query.lowering.elimination import Summary, variables_in
from omnigraph.query.lowering.usage import Use


def bound_in(block: ir.Block) -> frozenset[str]:
    """The variables that a block binds, in its optional parts too."""
    return frozenset(_bound_in(block))


def _bound_in(block: ir.Block) -> Iterator[str]:
    yield from (node.variable for node in block.nodes)
    for traversal in block.traversals:
        if traversal.edge_variable is not None:
            yield traversal.edge_variable
        if traversal.path is not None:
            yield traversal.path.variable
    for part in block.optionals:
        yield from _bound_in(part.block)


def without_optionals(block: ir.Block) -> tuple[ir.Block, ir.Block]:
    """The block without optional parts and subqueries, and what has to wait for those."""
    optional = frozenset[str]().union(*(bound_in(part.block) for part in block.optionals))
    optional |= {subquery.name for subquery in block.subqueries}
    waiting = [each for each in block.filters if optional & variables_in(each)]
    late = [each for each in block.negations if optional & set(each.outer)]
    early = replace(
        block,
        filters=tuple(each for each in block.filters if each not in waiting),
        negations=tuple(each for each in block.negations if each not in late),
        optionals=(),
        subqueries=(),
    )
    return early, ir.Block((), (), tuple(waiting), tuple(late))


def is_only_summed(part: ir.OptionalPart, block: ir.Block, summary: Summary) -> bool:
    """Whether of an optional part of a block only the number of its rows and sums are used."""
    others = [each.outer for each in block.parts if each != part]
    used = summary.needed.union(*others, *map(variables_in, block.filters))
    return not used & bound_in(part.block)


def has_optionals(block: ir.Block) -> bool:
    """Whether a block, or one in it, has optional parts."""
    return bool(block.optionals) or any(has_optionals(part.block) for part in block.parts)


def has_subqueries(block: ir.Block) -> bool:
    """Whether a block, or one in it, has subqueries as values."""
    return bool(block.subqueries) or any(has_subqueries(part.block) for part in block.parts)


def has_several_types(block: ir.Block) -> bool:
    """Whether a variable of a block, or of one in it, has several types, or an edge has."""
    return (
        any(node.other_types for node in block.nodes)
        or any(len(each.steps) > 1 for each in block.traversals)
        or any(has_several_types(part.block) for part in block.parts)
    )


def has_paths(block: ir.Block) -> bool:
    """Whether a block, or one in it, has a path."""
    return any(each.path is not None for each in block.traversals) or any(
        has_paths(part.block) for part in block.parts
    )


def stands_alone(part: ir.OptionalPart | ir.Subquery, uses: frozenset[Use]) -> bool:
    """Whether the rows of a part are worth computing without those that it extends.

    That is so if its traversals connect all of its variables with all that it has from outside,
    whose ids alone it uses. A walk is better started from the rows outside.
    """
    block, outer = part.block, set(part.outer)
    if any(variable in outer and name != "id" for variable, name in uses):
        return False
    if any(
        (each.hops_max > 1 or each.path is not None) and outer & _ends(each)
        for each in block.traversals
    ):
        return False
    left = list(block.traversals)
    wanted = outer | {node.variable for node in block.nodes}
    reached = _ends(left[0]) if left else set()
    while step := next((each for each in left if reached & _ends(each)), None):
        left.remove(step)
        reached |= _ends(step)
    return not left and reached >= wanted


def _ends(traversal: ir.Traversal) -> set[str]:
    return {end for end in (traversal.source, traversal.destination) if isinstance(end, str)}
