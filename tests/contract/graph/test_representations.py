"""What a session in Python shows of results: their `repr()` fits a screen."""

from __future__ import annotations

from dataclasses import is_dataclass
from pathlib import Path

import pytest

import omnigraph

SCREEN = 1_500
"""Characters: 80 columns of less than 20 lines."""

TYPES = 40
SCHEMA = "\n".join(
    f'node T{n} {{ name: String @key  a: I32?  b: String? @description("{"long " * 20}") }}'
    for n in range(TYPES)
)

UPDATE = 'query q($a: I32) { update T1 set { a: $a } where name = "n1" }'


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder: Path = tmp_path_factory.mktemp("shown")
    graph = omnigraph.init(folder / "graph", SCHEMA)
    rows = {f"T{n}": [{"name": f"n{i}"} for i in range(200)] for n in range(TYPES)}
    shown: dict[str, object] = {"load": graph.load(rows)}
    graph.branches.create("draft")
    shown["mutation"] = graph.mutate(UPDATE, {"a": 1}, branch="draft")
    graph.mutate(UPDATE, {"a": 2})
    shown["query"] = graph.query("query q() { match { $t: T1 } return { $t.name, $t.b } }")
    shown["explanation"] = graph.explain("query q() { match { $t: T1 } return { $t.name } }")
    shown["diff"] = graph.diff("main", "draft")
    shown["changes"] = graph.changes(after=graph.commits.list()[-1].commit_id)
    with pytest.raises(omnigraph.MergeConflictError) as refusal:
        graph.merge("draft")
    shown["conflict"] = refusal.value.conflicts[0]
    shown["merge"] = graph.merge("draft", resolve="ours")
    shown["accepted"] = graph.schema.show()
    shown["catalog"] = graph.schema.show().catalog
    shown["plan"] = graph.schema.plan(SCHEMA.replace("a: I32?", "a: I32?  c: Bool?"))
    shown["schema"] = graph.schema.apply(SCHEMA.replace("a: I32?", "a: I32?  c: Bool?"))
    shown["revisions"] = graph.schema.history()[0]
    shown["snapshot"] = graph.snapshot()
    shown["check"] = graph.check()
    shown["commit"] = graph.commits.list()[0]
    shown["setting"] = graph.settings.list()[0]
    shown["copy"] = graph.copy(folder / "copy")
    shown["index"] = graph.indexes.list()[0]
    shown["optimize"] = graph.optimize()
    shown["cleanup"] = graph.cleanup(keep_commits=1, older_than="0s")
    graph.mutate(UPDATE, {"a": 3}, branch="draft")
    text = "why " * 1_000
    shown["proposal"] = graph.proposals.create("draft", "why", description=text, actor="ada")
    return shown


def test_results_fit_a_screen(results: dict[str, object]) -> None:
    long = {name: len(repr(result)) for name, result in results.items()}
    assert {name: size for name, size in long.items() if size > SCREEN} == {}
    assert all(is_dataclass(result) or name == "query" for name, result in results.items())


def test_results_show_their_facts(results: dict[str, object]) -> None:
    query = repr(results["query"])
    assert "table=<200 rows of t.name, t.b>" in query
    assert "None" not in repr(results["commit"])
    assert "findings" not in repr(results["copy"]), "what is empty is left out"
    assert "mode='append'" in repr(results["load"])
    assert "inserted=200" in repr(results["load"])
    assert "updated=1" in repr(results["mutation"])
    assert "outcome='merged'" in repr(results["merge"])
