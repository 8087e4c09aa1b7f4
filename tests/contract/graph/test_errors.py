"""Every error is the same by both ways: class, code, message, hint, details and what it carries."""

import pickle
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest

from omnigraph import Cancellation, OmnigraphError
from tests.contract.graph.conftest import Pair
from tests.contract.graph.test_reads import ALL, typed

_ID: Final = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")
STALE: Final = "00000000000000000000000000"
ADD: Final = "query add($n: String) { insert Person { name: $n } }"


def cancelled() -> Cancellation:
    """What was cancelled before the query began."""
    cancellation = Cancellation()
    cancellation.cancel()
    return cancellation


CASES: Final[dict[str, Callable[[Any], object]]] = {
    "a text with errors": lambda g: g.query("query q() { match { $p: Persn } return { $p.nme } }"),
    "no text": lambda g: g.query(3),
    "the name of a file": lambda g: g.query("people.gq"),
    "no such file": lambda g: g.query(Path("nowhere.gq")),
    "two queries": lambda g: g.query(f"{ALL} {ALL.replace('all', 'two')}"),
    "a missing parameter": lambda g: g.mutate(ADD),
    "a wrong parameter": lambda g: g.mutate(ADD, {"n": datetime(2024, 1, 1), "m": None}),
    "a mutation as a query": lambda g: g.query(ADD, {"n": "x"}),
    "a query as a mutation": lambda g: g.mutate(ALL),
    "no such branch": lambda g: g.query(ALL, branch="mian"),
    "no such tag": lambda g: g.at(commit="v2"),
    "no such commit": lambda g: g.commits.show(STALE),
    "no such version": lambda g: g.snapshot(version=10_000),
    "a commit and a branch": lambda g: g.snapshot(commit="v1", branch="main"),
    "no name of a branch": lambda g: g.branches.create("../up"),
    "a branch that exists": lambda g: g.branches.create("draft"),
    "deleting main": lambda g: g.branches.delete("main"),
    "too many rows": lambda g: g.query(ALL, max_rows=1),
    "no limit": lambda g: g.query(ALL, max_rows=0),
    "no engine": lambda g: g.query(ALL, engine="turbo"),
    "cancelled": lambda g: g.query(ALL, cancel=cancelled()),
    "no cancellation": lambda g: g.query(ALL, cancel=3),
    "rows that break rules": lambda g: g.load(
        {
            "Person": [{"name": "Ada"}, {"name": "New", "age": "old"}, {"name": "New"}],
            "Badge": [{"number": 1}, {"number": 5, "level": "middle"}],
            "Knows": [{"from": "Ada", "to": "nobody"}],
        }
    ),
    "rows of no type": lambda g: g.load({"Persn": [{"name": "x"}]}),
    "no such input": lambda g: g.load("nowhere.jsonl"),
    "nothing to load": lambda g: g.load([]),
    "no such mode": lambda g: g.load({"Person": [{"name": "x"}]}, mode="upsert"),
    "a start without a branch": lambda g: g.load({"Person": [{"name": "x"}]}, start="main"),
    "rejects without quarantine": lambda g: g.load({"Person": []}, rejects="rejects.jsonl"),
    "a broken rule": lambda g: g.mutate("query i() { insert Badge { number: 1 } }"),
    "a stale head": lambda g: g.mutate(ADD, {"n": "x"}, expect_head="v1"),
    "conflicts": lambda g: g.merge("rival"),
    "a merge into itself": lambda g: g.merge("main"),
    "no resolution": lambda g: g.merge("rival", resolve="mine"),
    "no such type": lambda g: g.entity("Persn", "x"),
    "no such kind": lambda g: g.diff("v1", "main", kinds="vertex"),
    "a limit below 1": lambda g: g.changes(limit=0),
    "no cursor": lambda g: g.changes(after="cursor!"),
    "a schema with errors": lambda g: g.schema.plan("node Person { name: Strng }"),
    "an empty schema": lambda g: g.schema.plan(" "),
    "a refused change": lambda g: g.schema.apply("node Person { name: I32 @key }"),
    "no expression": lambda g: g.schema.plan("node A { b: I32 }", fill="A.b"),
    "a tag that exists": lambda g: g.tags.create("v1"),
    "no tag to delete": lambda g: g.tags.delete("v9"),
    "no setting": lambda g: g.settings.get("maintenance.kep_days"),
    "no value of a setting": lambda g: g.settings.set("maintenance.keep_days", "soon"),
    "no stored query": lambda g: g.queries.show("poeple"),
    "a stored query with errors": lambda g: g.queries.put(
        "query x() { match { $p: X } return { 1 } }"
    ),
    "no proposal": lambda g: g.proposals.show(99),
    "nothing to propose": lambda g: g.proposals.create("draft", "again"),
    "no algorithm": lambda g: g.algorithms.pagerank(damping=2.0),
    "no stream": lambda g: g.streams.forget("stream"),
    "a write to the past": lambda g: g.at(commit="v1").mutate(ADD, {"n": "x"}),
    "a load into the past": lambda g: g.at(commit="v1").load({"Person": [{"name": "x"}]}),
    "a merge into the past": lambda g: g.at(commit="v1").merge("draft"),
    "an unknown argument": lambda g: g.optimize(brnch="main"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_an_error_is_the_same_by_both_ways(pair: Pair, case: Callable[[Any], object]) -> None:
    head = pair.embedded.snapshot().head
    remote, embedded = failure_of(case, pair.remote), failure_of(case, pair.embedded)

    assert describe(remote, pair) == describe(embedded, pair)
    assert pair.embedded.snapshot().head == head


def test_an_error_from_afar_survives_pickling(pair: Pair) -> None:
    for name in ("rows that break rules", "conflicts", "a text with errors", "a refused change"):
        error = failure_of(CASES[name], pair.remote)
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert (str(again), plain(again.details)) == (str(error), plain(vars(error)["details"]))


def failure_of(case: Callable[[Any], object], graph: object) -> Any:
    try:
        result = case(graph)
    except (OmnigraphError, TypeError) as error:
        return error
    message = f"it did not fail, and returned {result!r}"
    raise AssertionError(message)


def describe(error: Exception, pair: Pair) -> object:
    """All that a caller can see of an error, with one name for the place of the graph."""
    if not isinstance(error, OmnigraphError):
        # From 3.13 on, Python also guesses which argument was meant.
        return type(error), str(error).partition(". Did you mean")[0]
    own = {name: typed(value) for name, value in sorted(vars(error).items()) if name != "details"}
    shown = repr([type(error), str(error), error.retryable, own, plain(error.details)])
    # Ids are made anew by each attempt.
    return _ID.sub("ID", shown.replace(pair.embedded.uri, "world"))


def plain(value: object) -> object:
    """Details as JSON has them: lists and tuples are one thing."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return repr(value)
