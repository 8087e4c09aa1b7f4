"""Searches of a query, as relations keyed by id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, assert_never

from sqlglot import exp

from omnigraph.choices import Metric
from omnigraph.errors import InvalidInputError, InvalidParameterError
from omnigraph.limits import SEARCH_TEXT_BYTES_MAX
from omnigraph.query import ir
from omnigraph.query.lowering.operands import Given
from omnigraph.query.lowering.state import LoweringState
from omnigraph.relational.plans import Relation, SearchRows
from omnigraph.relational.searches import Nearness, Relevance, Search, TextSearch
from omnigraph.relational.trees import column, table
from omnigraph.search.analysis import analyse

_SHOWN_MAX: Final = 100


def searches_texts(block: ir.Block) -> bool:
    """Whether a block, or one in it, tests texts."""
    return any(map(_tests_texts, block.filters)) or any(
        searches_texts(part.block) for part in block.parts
    )


def _tests_texts(condition: ir.Filter) -> bool:
    match condition:
        case ir.TextMatch():
            return True
        case ir.Junction(_, conditions):
            return any(map(_tests_texts, conditions))
        case ir.Comparison() | ir.NullTest() | ir.Inverse():
            return False
        case _:
            assert_never(condition)


def rebind(relations: Mapping[str, Relation], given: Given) -> dict[str, Relation]:
    """The same relations with searches for these values."""
    return {
        name: replace(relation, search=_checked(relation.search, given))
        if isinstance(relation, SearchRows)
        else relation
        for name, relation in relations.items()
    }


def search_of(call: ir.TextMatch | ir.Nearest | ir.Bm25, given: Given) -> Search | None:
    """The search that a call stands for; None if it looks for null, which finds nothing."""
    known = given.known(call.query)
    if known.value is None:
        return None
    source = call.query.name if isinstance(call.query, ir.ParameterValue) else None
    match call:
        case ir.TextMatch(test, text, _, edits, table_key, analyzer):
            limit = None if edits is None else given.known(edits).value
            return TextSearch(table_key, text.column, analyzer, test, known.value, limit, source)
        case ir.Bm25(text, _, table_key, analyzer):
            return Relevance(table_key, text.column, analyzer, known.value, source)
        case ir.Nearest(vector, _, table_key, metric, embedded):
            found = Nearness(table_key, vector.column, metric, tuple(known.value), source)
            if embedded is None:
                return found
            return replace(found, notes=embedded.companion, note_prefix=embedded.note_prefix)
        case _:
            assert_never(call)


def passes(state: LoweringState, call: ir.TextMatch, id_: exp.Expr) -> exp.Expr:
    """Whether the row of an id is among those that a test of texts finds."""
    search = search_of(call, state.given)
    if search is None:
        return exp.false()
    ids = exp.select(column("id", "s")).from_(table(state.search(search), "s"))
    return exp.In(this=id_.copy(), query=exp.Subquery(this=ids))


def _checked(search: Search, given: Given) -> Search:
    if search.source is not None:
        value: Any = given.values[search.source]
        search = replace(search, query=value)
    match search:
        case TextSearch() | Relevance():
            _require_words(search)
        case Nearness(metric=Metric.COSINE, query=query) if not any(query):
            message = "the search vector has only zeros, so it has no direction"
            hint = 'give another, or declare @index(metric="l2")'
            raise _error(search, message, hint)
        case Nearness():
            pass
        case _:
            assert_never(search)
    return search


def _require_words(search: TextSearch | Relevance) -> None:
    size = len(search.query.encode())
    if size > SEARCH_TEXT_BYTES_MAX:
        message = f"the search text has {size:,} bytes"
        raise _error(search, message, f"it may have {SEARCH_TEXT_BYTES_MAX:,}")
    if not any(token.text for token in analyse(search.analyzer, search.query)):
        shown = search.query[:_SHOWN_MAX]
        where = f"{search.table.type_name}.{search.column}"
        message = f"the text {shown!r} has no word that could be found in {where}"
        hint = f"the analyzer {search.analyzer} leaves out punctuation and stop words"
        raise _error(search, message, hint)


def _error(search: Search, message: str, hint: str) -> InvalidInputError:
    if search.source is None:
        return InvalidInputError(message, hint=hint)
    return InvalidParameterError(f"${search.source}: {message}", hint=hint, name=search.source)
