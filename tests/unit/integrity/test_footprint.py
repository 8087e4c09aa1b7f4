"""What a write relies on, for every shape of delta: written down by hand, rule by rule."""

from __future__ import annotations

from typing import Final

import pytest

from omnigraph.integrity import footprint
from omnigraph.integrity.deltas import Shape
from omnigraph.integrity.keys import DistinctIds
from omnigraph.integrity.rules import RuleSet
from omnigraph.limits import COMPILED_QUERIES_MAX
from omnigraph.schema.parser import parse_schema

CATALOG: Final = parse_schema("""
node Person { name: String @key  mail: String? @unique  nick: String? }
node City { name: String @key }
edge Knows: Person -> Person
edge LivesIn: Person -> City @card(1..1) { since: I32?  note: String?  @unique(src, since) }
""")
RULES: Final = RuleSet.compile(CATALOG)
PERSON, CITY, KNOWS, LIVES = (
    CATALOG.type_named(name).table_key for name in ("Person", "City", "Knows", "LivesIn")
)


# fmt: off
CASES: Final = {
    # upserted, deleted and overwritten tables; then what is read, and what is guarded
    "nodes are inserted":           ([PERSON], [], [], [], []),
    "edges are inserted":           ([LIVES], [], [], [PERSON, CITY], []),
    "edges and one of their ends":  ([LIVES, PERSON], [], [], [CITY], []),
    "edges and both of their ends": ([LIVES, PERSON, CITY], [], [], [], []),
    "nodes are deleted":            ([], [PERSON], [], [], [KNOWS, LIVES]),
    "nodes and some of their edges": ([], [PERSON, KNOWS], [], [], [LIVES]),
    "other nodes are deleted":      ([], [CITY], [], [], [LIVES]),
    "edges are deleted":            ([], [LIVES], [], [], []),
    "nodes are overwritten":        ([CITY], [], [CITY], [], [LIVES]),
    "edges are overwritten":        ([KNOWS], [], [KNOWS], [PERSON], []),
}
# fmt: on


@pytest.mark.parametrize(
    ("upserted", "deleted", "overwritten", "reads", "guards"), CASES.values(), ids=CASES.keys()
)
def test_a_write_relies_on_what_its_rules_read(upserted, deleted, overwritten, reads, guards):
    shape = Shape(frozenset(upserted), frozenset(deleted), frozenset(overwritten))
    footprints = footprint.footprints(RULES, shape)

    assert footprint.reads(footprints) == set(reads)
    assert footprint.guards(footprints) == set(guards)


def test_the_columns_of_a_type_are_those_that_any_rule_reads():
    shape = Shape(upserted=frozenset([PERSON, CITY, KNOWS, LIVES]))

    assert footprint.columns(footprint.footprints(RULES, shape)) == {
        PERSON: {"id", "mail"},
        CITY: {"id"},
        KNOWS: {"id", "src", "dst"},
        LIVES: {"id", "src", "dst", "since"},
    }


def test_a_rule_is_drafted_once_however_many_there_are(monkeypatch):
    types = range(COMPILED_QUERIES_MAX)
    rules = RuleSet.compile(parse_schema(" ".join(f"node N{n} {{ a: I32 }}" for n in types)))
    shape = Shape(upserted=frozenset(type_.table_key for type_ in rules.catalog.types))
    drafts: list[DistinctIds] = []
    monkeypatch.setattr(DistinctIds, "offenders", count_calls(DistinctIds.offenders, drafts))
    for _ in range(3):
        every = footprint.footprints(rules, shape)
        footprint.reads(every), footprint.guards(every), footprint.columns(every)

    assert len(drafts) == len(types)


def count_calls(offenders, drafts):
    def counting(rule, shape):
        drafts.append(rule)
        return offenders(rule, shape)

    return counting
