"""A rule on a column that no other rule reads is enforced by every writer, on both engines.

The schema states none for `nick`. The rule is planted into what writers compile, and nothing else
is told about it: what writers read, stage and ship they must derive from the rule itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

import omnigraph
from omnigraph.errors import MergeConflictError
from omnigraph.graph import Graph
from omnigraph.integrity.rules import RuleSet
from omnigraph.integrity.uniques import Unique
from omnigraph.integrity.violations import IntegrityError, Rule
from omnigraph.schema.catalog import Catalog

SCHEMA: Final = "node Person { name: String @key  nick: String?  mail: String? @unique }"
INSERT: Final = (
    "query add($name: String, $nick: String) { insert Person { name: $name, nick: $nick } }"
)


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Graph:
    """A graph whose people must have different nicks, unknown to its schema."""
    compile_rules = RuleSet.compile

    def compile_with_one_more(catalog: Catalog) -> RuleSet:
        rules = compile_rules(catalog)
        rule = Unique(catalog.node_type("Person"), ("nick",))
        return RuleSet(catalog, rules.row_rules, (*rules.set_rules, rule))

    monkeypatch.setattr(RuleSet, "compile", staticmethod(compile_with_one_more))
    graph = omnigraph.init(tmp_path / "graph", SCHEMA)
    graph.mutate(INSERT, {"name": "ada", "nick": "a"})
    return graph


def load(graph: Graph, folder: Path, engine: str) -> None:
    path = folder / "people.jsonl"
    rows = [{"type": "Person", "data": {"name": name, "nick": "b"}} for name in ("bob", "bea")]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    graph.load(path, engine=engine)


# fmt: off
WRITERS: Final[dict[str, Callable[[Graph, Path], object]]] = {
    "a mutation":      lambda graph, _: graph.mutate(INSERT, {"name": "al", "nick": "a"}),
    "a local load":    lambda graph, folder: load(graph, folder, "local"),
    "a load on Spark": lambda graph, folder: load(graph, folder, "spark"),
}
# fmt: on


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS.keys())
def test_a_planted_rule_is_enforced_by(planted: Graph, tmp_path: Path, write):
    with pytest.raises(IntegrityError) as refusal:
        write(planted, tmp_path)

    assert refusal.value.counts == {Rule.UNIQUE: 1}
    [row] = planted.query("query all() { match { $p: Person } return { $p.name as name } }").rows()
    assert row == {"name": "ada"}


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_planted_rule_is_enforced_by_a_merge(planted: Graph, engine: str):
    planted.branches.create("draft")
    planted.mutate(INSERT, {"name": "bob", "nick": "b"}, branch="draft")
    planted.mutate(INSERT, {"name": "bea", "nick": "b"})

    with pytest.raises(MergeConflictError) as refusal:
        planted.merge("draft", into="main", engine=engine)

    [conflict] = refusal.value.conflicts
    assert (conflict.type_name, conflict.property) == ("Person", "nick")
