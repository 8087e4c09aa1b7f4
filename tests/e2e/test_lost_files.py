"""A data file that is gone: every surface reports the table and the file, as a failure of storage.

Rows are read lazily by whatever consumes them: Python, DuckDB, Lance itself or Spark's executors.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.errors import PySparkException

import omnigraph
from omnigraph.cli.exits import Exit
from omnigraph.errors import StorageError
from omnigraph.graph import Graph
from tests.support.commands import Answer
from tests.support.publishing import PERSON

SCHEMA: Final = """
node Person { name: String @key  age: I32?  score: U32?  face: Vector(2)? }
edge Knows: Person -> Person
"""
ADD: Final = """
query add($name: String, $age: I32?) {
  insert Person { name: $name  age: $age  score: 1  face: [0.5, 1.0] }
}
"""
AGE: Final = 'query grow() { update Person set { age: 40 } where name = "ada" }'
ALL: Final = "query all() { match { $p: Person } return { $p.name, $p.age } }"
SCORED: Final = "query scored() { match { $p: Person  $p.score > 0 } return { $p.name } }"
FRIENDS: Final = """
query friends() { match { $p: Person  $p knows $q  $p.age < $q.age } return { $p.name, $q.name } }
"""
ROWS: Final = {"Person": [{"name": "ada", "age": 41}]}


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A graph with two branches that moved apart, and no data file of Person any more."""
    graph = omnigraph.init(tmp_path_factory.mktemp("lost") / "graph.omni", SCHEMA)
    for name in ("ada", "bob", "eva"):
        graph.mutate(ADD, {"name": name, "age": 30})
    graph.mutate('query meet() { insert Knows { from: "ada"  to: "bob" } }')
    draft = graph.branches.create("draft")
    draft.mutate('query q() { update Person set { score: 7 } where name = "ada" }')
    draft.mutate(ADD, {"name": "leo", "age": 5})
    graph.mutate('query q() { update Person set { age: 31 } where name = "bob" }')
    folder = Path(graph.uri, graph.snapshot().pin(PERSON).location)
    for file in folder.rglob("data/*.lance"):
        file.unlink()
    return graph.uri


def head_of(graph: Graph) -> str:
    return graph.snapshot().head.commit_id


Surface = Callable[[Graph, Path], Any]

SURFACES: Final[Mapping[str, Surface]] = {
    "query": lambda graph, _: graph.query(ALL),
    "query filtered beside Lance": lambda graph, _: graph.query(SCORED),
    "query joined": lambda graph, _: graph.query(FRIENDS),
    "query of a commit": lambda graph, _: graph.query(
        ALL, commit=graph.commits.list()[1].commit_id
    ),
    "mutate": lambda graph, _: graph.mutate(AGE),
    "load": lambda graph, _: graph.load(ROWS, mode="merge"),
    "diff": lambda graph, _: list(graph.diff("main", "draft").rows()),
    "changes": lambda graph, _: graph.changes(),
    "changes of a commit": lambda graph, _: graph.commits.changes(
        graph.commits.list()[0].commit_id
    ),
    "merge": lambda graph, _: graph.merge("draft"),
    "dry run of a merge": lambda graph, _: graph.merge("draft", dry_run=True),
    "entity": lambda graph, _: graph.entity("Person", "ada"),
    "export to NDJSON": lambda graph, place: graph.export(place / "out.jsonl"),
    "export to Parquet": lambda graph, place: graph.export(place / "out", format="parquet"),
    "export to CSV": lambda graph, place: graph.export(
        place / "out", format="csv", types=["Person"]
    ),
    "indexes": lambda graph, _: graph.ensure_indices(),
    "optimize": lambda graph, _: graph.optimize(),
}


def require_named(error: StorageError, uri: str) -> None:
    """Assert that an error names the table and the file, as an operator needs them."""
    assert f"{uri}/nodes/" in error.message, error.message
    assert "/data/" in error.message, error.message
    assert error.message.endswith(".lance"), error.message
    assert "omnigraph check" in error.hint


@pytest.mark.parametrize("surface", SURFACES.values(), ids=SURFACES.keys())
def test_a_lost_data_file_is_a_failure_of_storage_that_names_it(
    damaged: str, surface: Surface, tmp_path: Path
) -> None:
    with pytest.raises(StorageError) as failed:
        surface(omnigraph.open(damaged), tmp_path)

    require_named(failed.value, damaged)


def test_a_plan_is_explained_without_reading_rows(damaged: str) -> None:
    assert omnigraph.open(damaged).explain(ALL).reads


def test_a_check_reports_a_lost_data_file(damaged: str) -> None:
    report = omnigraph.open(damaged).check()

    assert any("/data/" in str(each) for each in report.findings), report


SPARK_SURFACES: Final[Mapping[str, Surface]] = {
    "query": lambda graph, _: graph.query(ALL, engine="spark"),
    "diff": lambda graph, _: list(graph.diff("main", "draft", engine="spark").rows()),
    "merge": lambda graph, _: graph.merge("draft", engine="spark"),
    "load": lambda graph, _: graph.load(ROWS, mode="merge", engine="spark"),
    "export": lambda graph, place: graph.export(place / "out", format="parquet", engine="spark"),
    "optimize": lambda graph, _: graph.optimize(engine="spark"),
}


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("surface", SPARK_SURFACES.values(), ids=SPARK_SURFACES.keys())
def test_a_lost_data_file_on_spark_is_a_failure_of_storage_that_names_it(
    damaged: str, surface: Surface, tmp_path: Path
) -> None:
    with pytest.raises(StorageError) as failed:
        surface(omnigraph.open(damaged), tmp_path)

    require_named(failed.value, damaged)


@pytest.mark.usefixtures("spark")
def test_a_frame_whose_data_file_is_lost_names_it_in_the_error_of_spark(damaged: str) -> None:
    with pytest.raises(PySparkException, match=r"StorageError.*/data/\w+\.lance"):
        omnigraph.open(damaged).frame("Person").collect()


Run = Callable[..., Answer]

COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "query": ("query", "-e", ALL),
    "mutate": ("mutate", "-e", AGE),
    "load": ("load", "--mode", "merge", "--data", "{place}/people.jsonl"),
    "diff": ("diff", "main", "draft"),
    "diff with rows": ("diff", "main", "draft", "--rows"),
    "changes": ("changes", "poll"),
    "commit changes": ("commit", "changes", "{head}"),
    "branch merge": ("branch", "merge", "draft"),
    "branch merge --dry-run": ("branch", "merge", "draft", "--dry-run"),
    "export": ("export", "{place}/out.jsonl"),
    "export --format parquet": ("export", "{place}/out", "--format", "parquet"),
    "export --format csv": ("export", "{place}/out", "--format", "csv", "--type", "Person"),
    "index": ("index",),
    "optimize": ("optimize",),
}


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS.keys())
def test_a_command_that_meets_a_lost_data_file_fails_and_names_it(
    here: Run, damaged: str, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "people.jsonl").write_text('{"type": "Person", "data": {"name": "ada"}}\n')
    head = head_of(omnigraph.open(damaged))
    told = here(
        *(each.replace("{place}", str(tmp_path)).replace("{head}", head) for each in arguments),
        *("--store", damaged),
    )

    assert (told.code, told.out) == (Exit.FAILED, "")
    assert "error[storage]" in told.err
    assert "/data/" in told.said
    assert "bug" not in told.err
