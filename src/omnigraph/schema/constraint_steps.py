"""Steps about a type's constraints, ends, cardinality and interfaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from omnigraph.choices import TableKind
from omnigraph.model.names import TypeName
from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import (
    UNLIMITED,
    Catalog,
    EdgeType,
    Index,
    Length,
    NodeType,
    Range,
)
from omnigraph.schema.change_codes import ChangeCode
from omnigraph.schema.matching import Matching
from omnigraph.schema.printer import (
    print_cardinality,
    print_check,
    print_index,
    print_length,
    print_range,
)
from omnigraph.schema.retyping import stored_scalar
from omnigraph.schema.steps import Cost, Refusal, RuleCheck, RuleWord, SchemaStep, StepKind
from omnigraph.schema.type_changes import TypeChange


def constraint_steps(change: TypeChange) -> Iterator[SchemaStep]:
    """The steps about what a type requires of its rows, compared after renaming."""
    yield from _key_steps(change)
    yield from _unique_steps(change)
    yield from _index_steps(change)
    yield from _range_steps(change)
    yield from _check_steps(change)
    yield from _length_steps(change)


def _key_steps(change: TypeChange) -> Iterator[SchemaStep]:
    old, new = change.old.key, change.new.key
    if tuple(change.new_names.get(name, "") for name in old) == new:
        return
    before, after = _print_members("key", old), _print_members("key", new)
    if not old:
        check = change.check(RuleWord.KEY, *new)
        added = change.validated(StepKind.ADD_KEY, check, before=before, after=after)
        yield replace(added, property_name=None)
        return
    kind = StepKind.CHANGE_KEY if new else StepKind.DROP_KEY
    if not change.rows:
        yield change.step(kind, before=before, after=after)
        return
    refusal = Refusal(
        ChangeCode.KEY_CHANGE,
        f"the ids of the {change.rows:,} rows of {change.new.name} are made from {before}",
        f"keep the key, or export {change.old.name}, transform it and load it into a new type",
    )
    yield change.refused(kind, refusal, before=before, after=after)


def _unique_steps(change: TypeChange) -> Iterator[SchemaStep]:
    # No property has a name with a tilde: a dropped member makes a set that nothing equals.
    renamed = {
        frozenset(change.new_names.get(name, f"~{name}") for name in members): members
        for members in change.old.uniques
    }
    stated = {frozenset(members) for members in change.new.uniques}
    for members in change.new.uniques:
        if frozenset(members) not in renamed:
            check = change.check(RuleWord.UNIQUE, *members)
            after = _print_members("unique", members)
            yield change.validated(StepKind.ADD_UNIQUE, check, after=after)
    for new_members, members in renamed.items():
        is_dropped_alone = new_members == {f"~{members[0]}"}
        if new_members not in stated and not is_dropped_alone:
            before = _print_members("unique", members)
            yield change.step(StepKind.DROP_UNIQUE, before=before)


def _index_steps(change: TypeChange) -> Iterator[SchemaStep]:
    renamed = _by_new_name(change, change.old.indexes)
    for new in change.new.indexes:
        old = renamed.get(new.property)
        if old is None:
            yield change.step(StepKind.ADD_INDEX, new.property, after=print_index(new))
        elif old.options != new.options:
            before, after = print_index(old), print_index(new)
            yield change.step(StepKind.CHANGE_INDEX, new.property, before=before, after=after)
    stated = {new.property for new in change.new.indexes}
    for name, old in renamed.items():
        if name not in stated:
            yield change.step(StepKind.DROP_INDEX, name, before=print_index(old))


_BoundsT = TypeVar("_BoundsT", Range, Length)
_NamingT = TypeVar("_NamingT", Range, Length, Index)


def _range_steps(change: TypeChange) -> Iterator[SchemaStep]:
    def show_old(range_: Range) -> str:
        return print_range(change.old.property_named(range_.property).type, range_)

    def show_new(range_: Range) -> str:
        return print_range(change.new.property_named(range_.property).type, range_)

    kinds = (
        StepKind.ADD_RANGE,
        StepKind.TIGHTEN_RANGE,
        StepKind.LOOSEN_RANGE,
        StepKind.DROP_RANGE,
    )
    old, new = _by_new_name(change, change.old.ranges), change.new.ranges
    yield from _bound_steps(change, RuleWord.RANGE, kinds, (old, new), (show_old, show_new))


def _length_steps(change: TypeChange) -> Iterator[SchemaStep]:
    kinds = (
        StepKind.ADD_LENGTH,
        StepKind.TIGHTEN_LENGTH,
        StepKind.LOOSEN_LENGTH,
        StepKind.DROP_LENGTH,
    )
    old, new = _by_new_name(change, change.old.lengths), change.new.lengths
    shows = (print_length, print_length)
    yield from _bound_steps(change, RuleWord.LENGTH, kinds, (old, new), shows)


def _by_new_name(change: TypeChange, constraints: Sequence[_NamingT]) -> dict[str, _NamingT]:
    """The constraints of properties that are continued, by the new name of each."""
    names = change.new_names
    return {names[one.property]: one for one in constraints if one.property in names}


def _bound_steps(
    change: TypeChange,
    rule: RuleWord,
    kinds: tuple[StepKind, StepKind, StepKind, StepKind],
    bounds: tuple[dict[str, _BoundsT], Sequence[_BoundsT]],
    shows: tuple[Callable[[_BoundsT], str], Callable[[_BoundsT], str]],
) -> Iterator[SchemaStep]:
    add, tighten, loosen, drop = kinds
    (old_bounds, new_bounds), (show_old, show_new) = bounds, shows
    for new in new_bounds:
        name = new.property
        check = change.check(rule, name)
        old = old_bounds.get(name)
        if old is None:
            yield change.validated(add, check, after=show_new(new))
        elif (old.low, old.high) == (new.low, new.high):
            continue
        elif _is_tighter(change, old, new):
            yield change.validated(tighten, check, before=show_old(old), after=show_new(new))
        else:
            yield change.step(loosen, name, before=show_old(old), after=show_new(new))
    stated = {new.property for new in new_bounds}
    for name, old in old_bounds.items():
        if name not in stated:
            yield change.step(drop, name, before=show_old(old))


def _is_tighter(change: TypeChange, old: Range | Length, new: Range | Length) -> bool:
    """Whether some value within the old bounds is outside the new ones."""
    if isinstance(new, Range) and not _have_one_order(change, old.property, new.property):
        return True
    # Bounds of one order compare, which mypy cannot know.
    raised = new.low is not None and (old.low is None or new.low > old.low)  # type: ignore[operator]
    lowered = new.high is not None and (
        old.high is None or new.high < old.high  # type: ignore[operator]
    )
    return raised or lowered


def _have_one_order(change: TypeChange, old_name: str, new_name: str) -> bool:
    old = stored_scalar(change.old.property_named(old_name).type)
    new = stored_scalar(change.new.property_named(new_name).type)
    assert old is not None, "a range has a scalar"
    assert new is not None, "a range has a scalar"
    return old is new or (old.is_numeric and new.is_numeric)


def _check_steps(change: TypeChange) -> Iterator[SchemaStep]:
    renamed = {
        replace(check, property=change.new_names[check.property]): check
        for check in change.old.checks
        if check.property in change.new_names
    }
    for new in change.new.checks:
        if new not in renamed:
            check = change.check(RuleWord.CHECK, new.property)
            yield change.validated(StepKind.ADD_CHECK, check, after=print_check(new))
    for check_now, old in renamed.items():
        if check_now not in change.new.checks:
            yield change.step(StepKind.DROP_CHECK, check_now.property, before=print_check(old))


def edge_steps(change: TypeChange, matching: Matching) -> Iterator[SchemaStep]:
    """The steps to other ends and to another cardinality."""
    old, new = change.old, change.new
    if not isinstance(old, EdgeType) or not isinstance(new, EdgeType):
        return
    source, target = source_before(matching, new), _node_before(matching, new.target)
    moved = source is None or source.type_name != old.source
    if moved or target is None or target.type_name != old.target:
        yield _ends_step(change, old, new, moved=moved)
    if old.cardinality != new.cardinality:
        yield _cardinality_step(change, old, new)


def source_before(matching: Matching, edge: EdgeType) -> TableKey | None:
    """The old node type that the source of an edge type continues; None if it is new."""
    return _node_before(matching, edge.source)


def _node_before(matching: Matching, name: str) -> TableKey | None:
    return matching.types.get(TableKey(TableKind.NODE, TypeName(name)))


def _ends_step(change: TypeChange, old: EdgeType, new: EdgeType, *, moved: bool) -> SchemaStep:
    before, after = f"{old.source} -> {old.target}", f"{new.source} -> {new.target}"
    if change.rows:
        refusal = Refusal(
            ChangeCode.ENDS_CHANGE,
            f"the {change.rows:,} edges of {new.name} join {before}",
            f"declare another edge type for {after}, or drop {old.name} and load its edges anew",
        )
        return change.refused(StepKind.CHANGE_ENDS, refusal, before=before, after=after)
    step = change.step(StepKind.CHANGE_ENDS, before=before, after=after)
    if moved and new.cardinality.minimum and change.source_rows:
        return _checked_cardinality(step, new, change.source_rows)
    return step


def _cardinality_step(change: TypeChange, old: EdgeType, new: EdgeType) -> SchemaStep:
    low, high = old.cardinality, new.cardinality
    before = None if low == UNLIMITED else print_cardinality(low)
    after = None if high == UNLIMITED else print_cardinality(high)
    more = high.minimum > low.minimum
    fewer = high.maximum is not None and (low.maximum is None or high.maximum < low.maximum)
    if not more and not fewer:
        return change.step(StepKind.LOOSEN_CARDINALITY, before=before, after=after)
    step = change.step(StepKind.TIGHTEN_CARDINALITY, before=before, after=after)
    # A source without edges breaks a minimum, so the rows of the source type count too.
    rows = (change.rows if fewer else 0) + (change.source_rows if more else 0)
    return _checked_cardinality(step, new, rows) if rows else step


def new_edge_step(step: SchemaStep, edge: EdgeType, source_rows: int) -> SchemaStep:
    """The step to a new edge type: a minimum is broken by every source that exists."""
    if edge.cardinality.minimum and source_rows:
        return _checked_cardinality(step, edge, source_rows)
    return step


def _checked_cardinality(step: SchemaStep, edge: EdgeType, rows: int) -> SchemaStep:
    check = RuleCheck(RuleWord.CARDINALITY, edge.table_key, ("src",))
    return replace(step, cost=Cost.VALIDATED, rows=rows, checks=(check,))


def implementation_steps(
    change: TypeChange, new: Catalog, others: Sequence[SchemaStep]
) -> Iterator[SchemaStep]:
    """The steps to other interfaces of a node type.

    What an interface promises is part of the node type, so `others` has the steps that make the
    rows keep the promise: implementing an interface needs the checks of those.
    """
    if not isinstance(change.old, NodeType) or not isinstance(change.new, NodeType):
        return
    for name in change.new.implements:
        if name in change.old.implements:
            continue
        promised = {property_.name for property_ in new.interface(name).properties}
        steps = [step for step in others if step.property_name in promised and step.checks]
        added = change.step(StepKind.ADD_IMPLEMENTS, after=f"implements {name}")
        if steps:
            checks = tuple(dict.fromkeys(check for step in steps for check in step.checks))
            added = replace(added, cost=Cost.VALIDATED, rows=change.rows, checks=checks)
        yield added
    for name in change.old.implements:
        if name not in change.new.implements:
            yield change.step(StepKind.DROP_IMPLEMENTS, before=f"implements {name}")


def _print_members(word: str, members: tuple[str, ...]) -> str | None:
    return f"@{word}({', '.join(members)})" if members else None
