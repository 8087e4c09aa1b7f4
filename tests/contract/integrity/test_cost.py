"""A small delta to a large graph looks rows up; it does not read tables."""

from typing import Final

import pytest

from omnigraph.engine.local.reduce import Reducer
from omnigraph.engine.protocol import Data
from omnigraph.integrity.drafts import Question
from omnigraph.integrity.rules import RuleSet, SetRule
from omnigraph.relational.plans import TableRows
from omnigraph.schema.parser import parse_schema
from tests.contract.integrity.builders import Change, World

CATALOG: Final = parse_schema(
    "node P { mail: String? @unique } edge K: P -> P @card(1..2) { s: String? @unique }"
)
COMMITTED: Final = {
    "P": [{"id": f"p{each}", "mail": f"m{each}"} for each in range(1000)],
    "K": [{"id": f"k{each}", "src": f"p{each}", "dst": "p0"} for each in range(1000)],
}
CHANGES: Final = {
    "an edge": Change({"K": [{"id": "new", "src": "p1", "dst": "p2", "s": "x"}]}),
    "a moved edge": Change({"K": [{"id": "k1", "src": "p2", "dst": "p2"}]}),
    "a node": Change({"P": [{"id": "new", "mail": "m5"}]}, append=("P",)),
    "a node without the value": Change({"P": [{"id": "new", "mail": None}]}),
    "a deleted edge": Change(delete={"K": ["k1"]}),
    "a deleted node": Change(delete={"P": ["p1"], "K": ["k1"]}),
}


def fetched(question: Question, data: Data, change: Change) -> list[int | None]:
    """How many rows are looked up for each committed relation; None where it is scanned."""
    delta = change.delta(CATALOG)
    given = {name: rows.of(delta) for name, rows in question.given.items()}
    found = Reducer(question.plan, Data(data.table, given)).run()
    tables = [name for name, each in question.plan.relations.items() if isinstance(each, TableRows)]
    return [found[name].num_rows if name in found else None for name in tables]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_each_rule_looks_up_what_the_delta_touches(here: World, change: Change):
    data = here.data(CATALOG, COMMITTED, indexed=True)
    shape = change.delta(CATALOG).shape()
    asked: list[SetRule] = list(RuleSet.compile(CATALOG).set_rules_for(shape))
    rows = [fetched(each.offenders(shape).first(), data, change) for each in asked]

    assert asked
    assert [each for each in rows if None in each] == []
    assert max((count or 0 for each in rows for count in each), default=0) <= 2


def test_rules_that_a_delta_cannot_break_are_not_asked():
    rules = RuleSet.compile(CATALOG)

    assert list(rules.set_rules_for(Change().delta(CATALOG).shape())) == []
    asked = rules.set_rules_for(Change(delete={"P": ["x"]}).delta(CATALOG).shape())
    assert {type(each).__name__ for each in asked} == {"DanglingEdge"}
