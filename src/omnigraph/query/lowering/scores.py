"""Scores: the rankings that a query returns or sorts by, as columns of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from omnigraph.model.types import Scalar
from omnigraph.query import ir
from omnigraph.query.lowering.row_tables import Rows
from omnigraph.query.lowering.searching import search_of
from omnigraph.query.lowering.state import LoweringState
from omnigraph.relational.expressions import sql_type
from omnigraph.relational.plans import (
    Best,
    Cut,
    Fusion,
    IsFoundBy,
    MatchesColumn,
    OutputColumn,
    Plan,
    RankedScope,
    Reduction,
)
from omnigraph.relational.searches import SCORE
from omnigraph.relational.trees import column, named, subquery, table

RRF_WINDOW_MIN: Final = 100
"""How many rows of a ranking a fusion counts, unless more are wanted: of two rankings and with the
usual k, no row after the 70th place of both is among the best ten."""


_ID: Final = "i"
_RANK: Final = "n"
"""The columns of a table of ranks."""

_ID_COLUMN: Final = OutputColumn("id", Scalar.STRING, nullable=False)


def rankings_of(query: ir.Selection) -> tuple[ir.Ranking, ...]:
    """The rankings that a query returns or sorts by, each once."""
    expressions = [each.expression for each in query.columns]
    expressions += [key.expression for key in query.order]
    return tuple(dict.fromkeys(each for each in expressions if isinstance(each, ir.Ranking)))


def score_rows(query: ir.Selection, state: LoweringState, rows: Rows, limit: int | None) -> Rows:
    """The same rows with a column for each ranking of the query."""
    rankings = rankings_of(query)
    if not rankings:
        return rows
    parts = list(dict.fromkeys(part for ranking in rankings for part in _parts(ranking)))
    fusions = [ranking for ranking in rankings if isinstance(ranking, ir.Rrf)]
    depth = _Depth.of(query, rankings, limit)
    rows = _join_scores(state, rows, parts, depth, reused=bool(fusions))
    for fusion in fusions:
        rows = _fuse(state, rows, fusion, _window(limit))
    return rows


@dataclass(frozen=True, slots=True)
class ScopeOfBest:
    """The rows of a match of which a result is the best by one ranking, before they are ranked.

    Attributes:
        plan: That of the ids that are ranked.
    """

    ranking: ir.Nearest | ir.Bm25
    rows: Rows
    limit: int
    plan: Plan

    @classmethod
    def of(
        cls, query: ir.Selection, state: LoweringState, rows: Rows, limit: int | None
    ) -> ScopeOfBest | None:
        """The scope, if there is such a ranking and the scope is not a whole type."""
        rankings = rankings_of(query)
        if limit is None or len(rankings) != 1 or _is_whole_type(query):
            return None
        if query.skip is not None or query.is_grouped or query.match.optionals:
            # The first rows of the result are not those of the first that are ranked.
            return None
        (ranking,) = rankings
        if isinstance(ranking, ir.Rrf) or not _is_by_best(query, ranking):
            return None
        return cls(ranking, rows, limit, _ids_plan(query, state, rows, _variable(ranking)))

    def cut(self, state: LoweringState, results: Callable[[Rows], Plan]) -> Cut | None:
        """The cut; None if nothing is looked for.

        Args:
            results: The plan of the query's results over rows with scores.
        """
        search = search_of(self.ranking, state.given)
        if search is None:
            return None
        relation, variable = state.search(search), _variable(self.ranking)
        id_ = column(self.rows.columns[variable, "id"], "q")
        on = exp.EQ(this=id_, expression=column("id", "s"))
        names = self.rows.columns.values()
        query = exp.select(*(column(name, "q") for name in names), named(column(SCORE, "s"), "r0"))
        query = query.from_(table(self.rows.table, "q")).join(table(relation, "s"), on=on)
        for place in self.rows.places.get(variable, ()):
            by = MatchesColumn(relation, "id")
            state.builder.reduce(Reduction(place.relation, place.column, by))
        scored = replace(self.rows, table=state.builder.define(query), scores={self.ranking: "r0"})
        return Cut(relation, self.limit, results(scored), self.plan)


@dataclass(frozen=True, slots=True)
class ScopesOfFusions:
    """The rows of a match, before they are ranked, of which fusions count the nearest.

    Attributes:
        scopes: The plan of the ids that each ranking ranks.
    """

    rows: Rows
    window: int
    scopes: Mapping[ir.Nearest, Plan]

    @classmethod
    def of(
        cls, query: ir.Selection, state: LoweringState, rows: Rows, limit: int | None
    ) -> ScopesOfFusions | None:
        """The scopes, if all rankings are fusions and the scope is not a whole type.

        Args:
            limit: How many rows are ranked before the result is complete.
        """
        rankings = rankings_of(query)
        if not rankings or _is_whole_type(query) or query.match.optionals:
            return None
        if not all(isinstance(ranking, ir.Rrf) for ranking in rankings):
            return None
        parts = dict.fromkeys(part for ranking in rankings for part in _parts(ranking))
        scopes = {
            part: _ids_plan(query, state, rows, _variable(part))
            for part in parts
            if isinstance(part, ir.Nearest)
        }
        return cls(rows, _window(limit), scopes)

    def ranked(self, state: LoweringState) -> Iterator[RankedScope]:
        """Each of them, unless nothing is looked for."""
        for part, scope in self.scopes.items():
            search = search_of(part, state.given)
            if search is not None:
                relation = state.search(search)
                # The plan of what is found has every relation, and so has to be the only such one.
                found = self._found(state, part, relation) if len(self.scopes) == 1 else None
                yield RankedScope(relation, scope, self.window, found)

    def _found(self, state: LoweringState, part: ir.Nearest, relation: str) -> Plan:
        variable = _variable(part)
        id_ = column(self.rows.columns[variable, "id"], "q")
        on = exp.EQ(this=id_.copy(), expression=column("id", "s"))
        tree = exp.select(named(id_, "c0")).from_(table(self.rows.table, "q"))
        plan = state.builder.plan(tree.join(table(relation, "s"), on=on).distinct(), [_ID_COLUMN])
        by = MatchesColumn(relation, "id")
        places = self.rows.places.get(variable, ())
        reductions = (Reduction(place.relation, place.column, by) for place in places)
        return replace(plan, reductions=(*plan.reductions, *reductions))


def _ids_plan(query: ir.Selection, state: LoweringState, rows: Rows, variable: str) -> Plan:
    """The plan of the ids of a variable, each once."""
    tree = exp.select(named(column(rows.columns[variable, "id"], "q"), "c0"))
    tree = tree.from_(table(rows.table, "q"))
    if len(query.match.nodes) > 1 or query.match.traversals or query.follows_stage:
        tree = tree.distinct()
    return state.builder.plan(tree, [_ID_COLUMN])


def best_of(
    query: ir.Selection, state: LoweringState, limit: int | None, skip: int | None
) -> Best | None:
    """The best of a type, if that is what the result is, in columns that need no computation."""
    rankings = rankings_of(query)
    is_of_type = _is_whole_type(query) and not query.is_grouped
    if not limit or not is_of_type or len(rankings) != 1 or len(query.order) != 1:
        return None
    (ranking,) = rankings
    values = [each.expression for each in query.columns]
    if not _is_by_best(query, ranking) or not all(
        isinstance(value, ir.ColumnValue) or value == ranking for value in values
    ):
        return None
    searches = [search_of(part, state.given) for part in _parts(ranking)]
    return Best(
        tuple(state.search(search) for search in searches if search is not None),
        limit,
        skip or 0,
        tuple(value.column if isinstance(value, ir.ColumnValue) else None for value in values),
        Fusion(state.given.known(ranking.k).value, _window(limit + (skip or 0)))
        if isinstance(ranking, ir.Rrf)
        else None,
    )


@dataclass(frozen=True, slots=True)
class _Depth:
    """How far down its rankings a query looks, if every row of the type matches.

    Attributes:
        best: How many rows of each ranking have a score that matters; None for all.
        enough: How many rows with a score fill the result; None if rows without one may be before.
    """

    best: int | None = None
    enough: int | None = None

    @classmethod
    def of(cls, query: ir.Selection, rankings: Sequence[ir.Ranking], limit: int | None) -> _Depth:
        if not _is_whole_type(query):
            return cls()
        enough = limit if len(rankings) == 1 and _is_by_best(query, rankings[0]) else None
        if not all(isinstance(ranking, ir.Rrf) for ranking in rankings):
            return cls(enough, enough)
        # A row beyond the window of every ranking has no score.
        return cls(_window(limit), enough)


def _window(limit: int | None) -> int:
    """How many rows of a ranking a fusion counts, for so many rows."""
    return max(RRF_WINDOW_MIN, limit or 0)


def _is_whole_type(query: ir.Selection) -> bool:
    block = query.match
    restricts = block.traversals or block.filters or block.parts or query.follows_stage
    return not (len(block.nodes) > 1 or restricts)


def _is_by_best(query: ir.Selection, ranking: ir.Ranking) -> bool:
    """Whether rows are sorted by a ranking first, the best before others."""
    if not query.order or query.order[0].expression != ranking:
        return False
    return query.order[0].descending is not isinstance(ranking, ir.Nearest)


def _parts(ranking: ir.Ranking) -> tuple[ir.Nearest | ir.Bm25, ...]:
    return ranking.rankings if isinstance(ranking, ir.Rrf) else (ranking,)


def _join_scores(
    state: LoweringState,
    rows: Rows,
    parts: Sequence[ir.Nearest | ir.Bm25],
    depth: _Depth,
    *,
    reused: bool,
) -> Rows:
    query = exp.select(*(column(name, "q") for name in rows.columns.values()))
    query = query.from_(table(rows.table, "q"))
    scores: dict[ir.Ranking, str] = {}
    relations: list[str] = []
    for place, part in enumerate(parts):
        score: exp.Expr = exp.Cast(this=exp.Null(), to=sql_type(Scalar.F64))
        search = search_of(part, state.given)
        if search is not None:
            alias = f"s{place}"
            id_ = column(rows.columns[_variable(part), "id"], "q")
            on = exp.EQ(this=id_, expression=column("id", alias))
            relations.append(state.search(search, depth.best))
            query = query.join(table(relations[-1], alias), on=on, join_type="left")
            score = column(SCORE, alias)
        scores[part] = f"r{place}"
        query = query.select(named(score, scores[part]))
    if depth.enough is not None and relations:
        by = IsFoundBy(tuple(relations), depth.enough)
        for read in rows.places[_variable(parts[0])]:
            state.builder.reduce(Reduction(read.relation, read.column, by))
    return replace(rows, table=state.builder.define(query, reused=reused), scores=scores)


def _fuse(state: LoweringState, rows: Rows, ranking: ir.Rrf, window: int) -> Rows:
    """The same rows with the fused score of each."""
    names = [*rows.columns.values(), *rows.scores.values()]
    query = exp.select(*(column(name, "q") for name in names)).from_(table(rows.table, "q"))
    k = state.given.known(ranking.k).value
    terms: list[exp.Expr] = []
    missing: list[exp.Expr] = []
    for place, part in enumerate(ranking.rankings):
        id_name = rows.columns[_variable(part), "id"]
        ranks = state.builder.define(_ranks(rows, part, id_name, window))
        alias = f"k{place}"
        on = exp.EQ(this=column(id_name, "q"), expression=column(_ID, alias))
        query = query.join(table(ranks, alias), on=on, join_type="left")
        rank = column(_RANK, alias)
        missing.append(exp.Is(this=rank, expression=exp.Null()))
        total = exp.Add(this=exp.Literal.number(k), expression=rank.copy())
        share = exp.Div(this=_double(exp.Literal.number(1)), expression=_double(total))
        terms.append(exp.Coalesce(this=share, expressions=[_double(exp.Literal.number(0))]))
    score = terms[0]
    for term in terms[1:]:
        score = exp.Add(this=score, expression=term)
    nothing = exp.Cast(this=exp.Null(), to=sql_type(Scalar.F64))
    score = exp.Case(ifs=[exp.If(this=exp.and_(*missing), true=nothing)], default=score)
    name = f"r{len(rows.scores)}"
    fused = state.builder.define(query.select(named(score, name)))
    return replace(rows, table=fused, scores={**rows.scores, ranking: name})


def _ranks(rows: Rows, part: ir.Nearest | ir.Bm25, id_name: str, window: int) -> exp.Select:
    """The first rows of one ranking, each once, and their ranks."""
    score = column(rows.scores[part], "d")
    has_score = exp.Not(this=exp.Is(this=score, expression=exp.Null()))
    entities = (
        exp.select(named(column(id_name, "d"), _ID), named(score.copy(), SCORE))
        .from_(table(rows.table, "d"))
        .where(has_score)
        .distinct()
    )
    by_score = exp.Ordered(this=column(SCORE, "e"), desc=isinstance(part, ir.Bm25))
    order = exp.Order(expressions=[by_score, exp.Ordered(this=column(_ID, "e"))])
    number = exp.Window(this=exp.RowNumber(), order=order)
    ranked = exp.select(column(_ID, "e"), named(number, _RANK)).from_(subquery(entities, "e"))
    counts = exp.LTE(this=column(_RANK, "w"), expression=exp.Literal.number(window))
    first = exp.select(column(_ID, "w"), column(_RANK, "w")).from_(subquery(ranked, "w"))
    return first.where(counts)


def _double(tree: exp.Expr) -> exp.Expr:
    return exp.Cast(this=tree, to=sql_type(Scalar.F64))


def _variable(part: ir.Nearest | ir.Bm25) -> str:
    return part.vector.variable if isinstance(part, ir.Nearest) else part.text.variable
