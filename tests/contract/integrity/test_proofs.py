"""Proofs: small deltas that break nothing need no engine, and none that breaks a rule passes."""

from dataclasses import replace
from pathlib import Path
from typing import Final, NoReturn

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.choices import EngineName
from omnigraph.engine.local.execute import LocalEngine
from omnigraph.engine.protocol import Data, Engine
from omnigraph.integrity.deltas import Delta, delta_schema
from omnigraph.integrity.evaluate import evaluate
from omnigraph.integrity.proofs.by_columns import by_columns
from omnigraph.integrity.proofs.by_lookup import LOOKUP_ROWS_MAX, by_lookup
from omnigraph.integrity.proofs.proof import any_of
from omnigraph.integrity.rules import RuleSet
from omnigraph.integrity.violations import IntegrityReport
from omnigraph.relational.plans import Plan
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.parser import parse_schema
from tests.contract.integrity.builders import Change, World, found, world
from tests.contract.integrity.cases import CASES, Case
from tests.contract.integrity.naive import counts
from tests.contract.integrity.random_changes import worlds
from tests.contract.integrity.test_against_naive import counted, slow_to_draw
from tests.contract.integrity.test_rules import same

CATALOG: Final = parse_schema("""
node P {
  mail: String? @unique
  kind: enum(a, b)?
  age: I32?
  ratio: F64?
  tags: [String]?
  place: Vector(2)?
  word: String?
  @range(age, 0..150) @range(ratio, 0.0..) @check(word, "^w")
}
edge K: P -> P @card(0..2) { n: I64?  @unique(src, n) }
""")
COMMITTED: Final[dict[str, list[dict[str, object]]]] = {
    "P": [{"id": f"p{each}", "mail": f"m{each}"} for each in range(4)],
    "K": [
        {"id": "k0", "src": "p0", "dst": "p1", "n": 1},
        {"id": "k1", "src": "p1", "dst": "p2"},
        {"id": "k2", "src": "p1", "dst": "p3"},
    ],
}


@pytest.fixture
def here(tmp_path: Path) -> World:
    """A place for graphs."""
    return world(tmp_path / "graph", LocalEngine())


class Unasked:
    """An engine that must not be needed."""

    @property
    def name(self) -> EngineName:
        return EngineName.LOCAL

    @property
    def dialect(self) -> str:
        return "duckdb"

    def means(self, plan: Plan, data: Data) -> str:  # noqa: ARG002  # the protocol's
        return "nothing"

    def searches(self, plan: Plan, data: Data) -> dict[str, str]:  # noqa: ARG002  # the protocol's
        return {}

    def run(self, plan: Plan, data: Data) -> NoReturn:  # noqa: ARG002  # the protocol's
        message = f"the engine was asked {plan.tree.sql()}"
        raise AssertionError(message)


CLEAN: Final[dict[str, Change]] = {
    "a node with every value": Change(
        {
            "P": [
                {
                    "id": "new",
                    "mail": "m9",
                    "kind": "a",
                    "age": 150,
                    "ratio": 0.0,
                    "tags": ["x"],
                    "place": [0.0, 1.0],
                    "word": "word",
                }
            ]
        }
    ),
    "a node with no value": Change({"P": [{"id": "new"}]}),
    "a node that stays as it is": Change({"P": [COMMITTED["P"][1]]}),
    "values that change hands": Change(
        {"P": [{"id": "p0", "mail": "m1"}, {"id": "p1", "mail": "m0"}]}
    ),
    "a value that a deleted node had": Change(
        {"P": [{"id": "new", "mail": "m3"}], "K": [{"id": "k2", "src": "p1", "dst": "p2"}]},
        delete={"P": ["p3"]},
    ),
    "a new row": Change({"P": [{"id": "new"}]}, append=("P",)),
    "an edge": Change({"K": [{"id": "new", "src": "p0", "dst": "p0", "n": 2}]}),
    "an edge between new nodes": Change(
        {"P": [{"id": "x"}, {"id": "y"}], "K": [{"id": "new", "src": "x", "dst": "y"}]}
    ),
    "a deleted edge": Change(delete={"K": ["k0"]}),
    "a deleted node, with its edges": Change(delete={"P": ["p3"], "K": ["k2"]}),
}


def delta_of(change: Change) -> Delta:
    """The delta as writers make it: with vectors of their own Arrow type."""
    plain = change.delta(CATALOG)
    tables = {}
    for key, table in plain.tables.items():
        schema = delta_schema(CATALOG.type_of(key))
        rows = pa.Table.from_pylist(list(change.put.get(key.type_name, ())), schema=schema)
        tables[key] = replace(table, upserts=rows)
    return Delta(tables)


def checked(here: World, change: Change) -> IntegrityReport:
    return prove_and_evaluate(CATALOG, delta_of(change), here.data(CATALOG, COMMITTED), Unasked())


def prove_and_evaluate(
    catalog: Catalog, delta: Delta, data: Data, engine: Engine
) -> IntegrityReport:
    """What a delta breaks, the engine being run only for what no proof shows."""
    rules = RuleSet.compile(catalog)
    is_proven = any_of(
        by_columns(delta, lambda key: data.table(key).count_rows()),
        by_lookup(rules.set_rules_for(delta.shape()), delta, data),
    )
    return evaluate(rules, delta, data, engine, is_proven=is_proven)


@pytest.mark.parametrize("change", CLEAN.values(), ids=CLEAN.keys())
def test_a_delta_that_is_proven_to_keep_every_rule_needs_no_engine(here: World, change: Change):
    assert checked(here, change).is_clean


def test_many_rows_are_left_to_the_engine(here: World):
    many = [{"id": f"k{n}", "src": "p0", "dst": "p1"} for n in range(LOOKUP_ROWS_MAX + 1)]
    with pytest.raises(AssertionError, match="the engine was asked"):
        checked(here, Change({"K": many}))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_proof_changes_no_answer(here: World, case: Case):
    catalog = parse_schema(case.schema)
    data = here.data(catalog, case.committed)
    report = prove_and_evaluate(catalog, case.change.delta(catalog), data, here.engine)

    assert same(found(report), case.broken), found(report)


@pytest.mark.hypothesis
def test_a_proof_overlooks_nothing(here: World):
    @settings(slow_to_draw)
    @given(worlds(), st.booleans())
    def holds(made, indexed):
        catalog, committed, change = made
        data = here.data(catalog, committed, indexed=indexed)
        report = prove_and_evaluate(catalog, change.delta(catalog), data, here.engine)

        assert counted(report) == counts(catalog, committed, change)

    holds()
