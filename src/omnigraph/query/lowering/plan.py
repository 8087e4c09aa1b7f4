"""Lowers a typed read query and its arguments to one plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlglot import exp

from omnigraph.model.types import Scalar
from omnigraph.query import ir
from omnigraph.query.lowering.elimination import Summary, variables_in
from omnigraph.query.lowering.keys import key_lookup
from omnigraph.query.lowering.matching import NO_EDGES, MatchingTemplate, NoPattern, match_pattern
from omnigraph.query.lowering.operands import Given
from omnigraph.query.lowering.paths import findable_paths, path_search
from omnigraph.query.lowering.results import ROWS, Results
from omnigraph.query.lowering.row_tables import Rows
from omnigraph.query.lowering.rows import block_rows
from omnigraph.query.lowering.scores import (
    ScopeOfBest,
    ScopesOfFusions,
    best_of,
    rankings_of,
    score_rows,
)
from omnigraph.query.lowering.searching import rebind, searches_texts
from omnigraph.query.lowering.stages import (
    GIVEN_STAGE,
    convert_columns,
    given_rows,
    is_boundary,
    kept_rows,
    output_columns,
    uses_after,
)
from omnigraph.query.lowering.state import LoweringState
from omnigraph.query.lowering.usage import Use, uses_of_block, uses_of_results
from omnigraph.relational.plans import (
    Lookup,
    OutputColumn,
    PathPlans,
    PathSearch,
    Plan,
    RankedScope,
    Reduction,
    StagedPlans,
    StagePlan,
)
from omnigraph.relational.trees import table
from omnigraph.schema.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Template:
    """A lowered query, valid for all values of one `Given.shape`.

    Attributes:
        unseeded: The plan for the values that the query was lowered with, without `seeds`.
        seeds: Reductions that depend on the values; None for values that reduce nothing.
    """

    unseeded: Plan
    seeds: tuple[Callable[[Given], Reduction | None], ...]
    lookup: Callable[[Given], Lookup] | None = None
    matching: MatchingTemplate | NoPattern = NO_EDGES
    stages: StageTemplates | None = None
    parts: StageTemplates | None = None
    paths: PathTemplates | None = None

    def plan(self, given: Given) -> Plan:
        """The plan whose rows are the query's answer, in its order."""
        plan = self._bind(self.unseeded, given)
        plan = replace(plan, lookup=None if self.lookup is None else self.lookup(given))
        match self.matching:
            case NoPattern(why):
                plan = replace(plan, unmatched=why)
            case matching:
                plan = replace(plan, matching=matching.matching(given))
        if self.stages is not None:
            plan = replace(plan, stages=self.stages.plans(given))
        if self.parts is not None:
            plan = replace(plan, parts=self.parts.plans(given))
        if self.paths is not None:
            plan = replace(plan, paths=self.paths.plans(given))
        if self.unseeded.scopes:
            scopes = tuple(self._bind_scope(scope, given) for scope in self.unseeded.scopes)
            plan = replace(plan, scopes=scopes)
        cut = self.unseeded.cut
        if cut is None:
            return plan
        ranked, scope = self._bind(cut.ranked, given), self._bind(cut.scope, given)
        return replace(plan, cut=replace(cut, ranked=ranked, scope=scope))

    def _bind_scope(self, scope: RankedScope, given: Given) -> RankedScope:
        found = None if scope.found is None else self._bind(scope.found, given)
        return replace(scope, scope=self._bind(scope.scope, given), found=found)

    def _bind(self, plan: Plan, given: Given) -> Plan:
        return Plan(
            plan.tree,
            rebind(plan.relations, given),
            plan.columns,
            values={name: given.rebind(bound) for name, bound in plan.values.items()},
            reductions=(*filter(None, (seed(given) for seed in self.seeds)), *plan.reductions),
            best=plan.best,
        )


@dataclass(frozen=True, slots=True)
class StageTemplates:
    """The lowered stages of a query, each with the relation of the next one that its rows are."""

    before: tuple[tuple[Template, str], ...]
    last: Template

    def plans(self, given: Given) -> StagedPlans:
        """The plans for these values."""
        before = [StagePlan(template.plan(given), relation) for template, relation in self.before]
        return StagedPlans(tuple(before), self.last.plan(given))


@dataclass(frozen=True, slots=True)
class PathTemplates:
    """Searches for paths, each with what finds the ids at its ends, and the query given those."""

    searches: tuple[tuple[PathSearch, Template | None, Template | None], ...]
    last: Template

    def plans(self, given: Given) -> PathPlans:
        """The plans for these values."""
        searches = [
            replace(
                search,
                sources=None if sources is None else sources.plan(given),
                targets=None if targets is None else targets.plan(given),
            )
            for search, sources, targets in self.searches
        ]
        return PathPlans(tuple(searches), self.last.plan(given))


@dataclass(frozen=True, slots=True)
class _Outside:
    """What is outside of a match that is lowered by itself.

    Attributes:
        given: The stage whose rows are given, and what is used of them.
        stages: Stages after that one, which are a part of the plan.
    """

    catalog: Catalog
    values: Given
    given: tuple[ir.Stage, frozenset[Use]] | None = None
    stages: tuple[tuple[ir.Stage, frozenset[Use]], ...] = ()

    def open(self) -> tuple[LoweringState, Rows | None]:
        """A new plan that has it."""
        state = LoweringState(self.catalog, self.values)
        outer: Rows | None = None
        if self.given is not None:
            _, outer = given_rows(state, *self.given)
        for stage, uses in self.stages:
            outer = _stage_rows(stage, state, outer, uses)
        return state, outer


def lower(query: ir.ReadQuery, catalog: Catalog, given: Given) -> Template:
    """Lower a query for all values that have the shape of the given ones."""
    stages = tuple(zip(query.stages, uses_after(query), strict=True))
    template = _lower_by_itself(query, _Outside(catalog, given, None, stages))
    if any(map(is_boundary, query.stages)):
        return replace(template, stages=_lower_stages(query, stages, catalog, given))
    return template


def _stage_rows(
    stage: ir.Stage, state: LoweringState, outer: Rows | None, later: frozenset[Use]
) -> Rows:
    """The rows that a stage keeps, as a part of the plan that is built."""
    uses = [*uses_of_block(stage.match), *uses_of_results(stage)]
    if not is_boundary(stage):
        uses += later
    summary = Summary.of(stage)
    rows = block_rows(state, stage.match, frozenset(uses), outer=outer, summary=summary)
    values = state.given.values
    limit, skip = _count(stage.limit, values), _count(stage.skip, values)
    rows = score_rows(stage, state, rows, None if limit is None else limit + (skip or 0))
    return kept_rows(state, stage, rows, _select(stage, state, rows, limit, skip), later)


def _lower_stages(
    query: ir.ReadQuery,
    stages: Sequence[tuple[ir.Stage, frozenset[Use]]],
    catalog: Catalog,
    given: Given,
) -> StageTemplates:
    """A plan for each stage that has other rows than its match, and one for what is after them."""
    outside = _Outside(catalog, given)
    before: list[tuple[Template, str]] = []
    for stage, uses in stages:
        if is_boundary(stage):
            before.append((_lower_by_itself(stage, outside), GIVEN_STAGE))
            outside = _Outside(catalog, given, (stage, uses))
        else:
            outside = replace(outside, stages=(*outside.stages, (stage, uses)))
    return StageTemplates(tuple(before), _lower_by_itself(query, outside))


def _lower_by_itself(query: ir.Selection, outside: _Outside) -> Template:
    """Lower a match and its results to a plan, and to one for engines that find paths."""
    template = _lower_selection(query, *outside.open())
    paths = findable_paths(query.match, outside.catalog)
    if not paths:
        return template
    state, outer = outside.open()
    state.given_paths.update(dict.fromkeys(paths))
    last = _lower_selection(query, state, outer)
    searches = []
    for variable, traversal in paths.items():
        found = state.given_paths[variable]
        assert found is not None, "every traversal of a match is lowered"
        ends = (traversal.source, traversal.destination)
        sources, targets = (_lower_ids(query.match, end, outside) for end in ends)
        searches.append((path_search(traversal, *found, outside.catalog), sources, targets))
    return replace(template, paths=PathTemplates(tuple(searches), last))


def _lower_ids(block: ir.Block, end: str | ir.Anonymous, outside: _Outside) -> Template | None:
    """What finds the ids that an end may have, if they are not all those of its type."""
    assert isinstance(end, str), "the ends of a path have names"
    nodes = tuple(node for node in block.nodes if node.variable == end)
    filters = tuple(each for each in block.filters if variables_in(each) == {end})
    if nodes and not filters:
        return None
    state, outer = LoweringState(outside.catalog, outside.values), None
    if not nodes:
        filters = ()
        state, outer = outside.open()
    match = ir.Block(nodes, (), filters, ())
    id_ = ir.ColumnValue(end, "id", Scalar.STRING, nullable=True)
    column = ir.Column(end, id_)
    ids = ir.Stage(
        match, (end,), (column,), (), (), None, None, not nodes, (), follows_stage=not nodes
    )
    return _lower_selection(ids, state, outer)


def _lower_selection(query: ir.Selection, state: LoweringState, outer: Rows | None) -> Template:
    """Lower a match and its results, for rows that are outside of it."""
    catalog, given = state.catalog, state.given
    uses = frozenset([*uses_of_block(query.match), *uses_of_results(query)])
    rows = block_rows(state, query.match, uses, outer=outer, summary=Summary.of(query))
    limit, skip = _count(query.limit, given.values), _count(query.skip, given.values)
    end = None if limit is None else limit + (skip or 0)
    scope = ScopeOfBest.of(query, state, rows, limit)
    scopes = ScopesOfFusions.of(query, state, rows, end)
    rows = score_rows(query, state, rows, end)
    plan = _results_plan(query, state, rows, limit, skip)
    plan = replace(plan, best=best_of(query, state, limit, skip))
    if scope is not None:
        cut = scope.cut(state, partial(_results_plan, query, state, limit=limit, skip=skip))
        plan = replace(plan, cut=cut)
    if scopes is not None:
        plan = replace(plan, scopes=tuple(scopes.ranked(state)))
    lookup = key_lookup(query, catalog, given)
    if rankings_of(query) or searches_texts(query.match):
        return Template(plan, tuple(state.seeds), lookup, NoPattern("it searches"))
    results = partial(_results_plan, query, limit=limit, skip=skip)
    matching = match_pattern(query, LoweringState(catalog, given), limit, results)
    parts = None if outer is not None else _lower_parts(query, catalog, given)
    return Template(plan, tuple(state.seeds), lookup, matching, parts=parts)


def _lower_parts(query: ir.Selection, catalog: Catalog, given: Given) -> StageTemplates | None:
    """Plans of parts of the query that patterns can say, and the plan of what is around them.

    Those are subqueries, and optional parts of which only sums are used. None if there are none.
    """
    state = LoweringState(catalog, given)
    before: list[tuple[Template, str]] = []

    def separate(stage: ir.Stage) -> str | None:
        template = _lower_selection(stage, LoweringState(catalog, given), None)
        if isinstance(template.matching, NoPattern):
            return None
        before.append((template, state.builder.give()))
        return before[-1][1]

    if not query.match.subqueries and not query.match.optionals:
        return None
    uses = frozenset([*uses_of_block(query.match), *uses_of_results(query)])
    rows = block_rows(state, query.match, uses, summary=Summary.of(query), separate=separate)
    if not before:
        return None
    limit, skip = _count(query.limit, given.values), _count(query.skip, given.values)
    plan = _results_plan(query, state, rows, limit, skip)
    last = Template(plan, tuple(state.seeds), matching=NoPattern("its parts are done"))
    return StageTemplates(tuple(before), last)


def _results_plan(
    query: ir.Selection, state: LoweringState, rows: Rows, limit: int | None, skip: int | None
) -> Plan:
    """The plan of the query's results over a table of its rows."""
    tree = _select(query, state, rows, limit, skip)
    if isinstance(query, ir.Stage):
        convert_columns(query, tree)
        return state.builder.plan(tree, output_columns(query))
    columns = (
        OutputColumn(column_.name, column_.expression.type, column_.expression.nullable)
        for column_ in query.columns
    )
    return state.builder.plan(tree, columns)


def _select(
    query: ir.Selection, state: LoweringState, rows: Rows, limit: int | None, skip: int | None
) -> exp.Select:
    """The query's results over a table of its rows."""
    results = Results(state, rows)
    source = exp.Select().from_(table(rows.table, ROWS))
    tree = (
        results.grouped_select(query, source)
        if query.is_grouped
        else results.plain_select(query, source)
    )
    if isinstance(query, ir.Stage) and not query.is_cut:
        # What is kept has no order.
        tree.set("order", None)
    if limit is not None:
        tree = tree.limit(limit)
    if skip is not None:
        tree = tree.offset(skip)
    return tree


def _count(count: int | ir.ParameterValue | None, values: Mapping[str, ir.Value]) -> int | None:
    if not isinstance(count, ir.ParameterValue):
        return count
    value = values[count.name]
    assert value is None or isinstance(value, int), "parameters.bind checks this"
    return value
