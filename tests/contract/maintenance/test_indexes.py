"""The index writer: both engines build the same indexes, by the delta, in one commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.choices import EngineName
from omnigraph.engine.choose import by_size
from omnigraph.engine.snapshots import data_at
from omnigraph.engine.spark import relations
from omnigraph.errors import InvalidParameterError
from omnigraph.failpoints import Failpoint, arm
from omnigraph.graph import Graph
from omnigraph.maintenance import indexes
from omnigraph.maintenance.spark import indexes as indexing
from omnigraph.model.tables import TableKey
from omnigraph.storage.indexes import Gap, IndexSpec, covered_fragments, find_gaps
from omnigraph.storage.tables import Table
from tests.support.crashes import Cut, cut_off
from tests.support.tables import ids

SCHEMA: Final = """
node Person { name: String @key  mail: String? @unique  age: I32? }
edge Knows: Person -> Person
"""
WANTED: Final = {"Person": ("id", "name", "mail"), "Knows": ("id", "src", "dst")}
PART: Final = 4
"""People that come with each load, in a fragment of their own."""


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    """Even a small table is indexed by several tasks."""
    monkeypatch.setattr(relations, "SPARK_PARTITION_ROWS_MIN", 1)


@pytest.fixture(params=["local", "spark"])
def engine(request: pytest.FixtureRequest) -> str:
    if request.param == "spark":
        request.getfixturevalue("spark")
    return str(request.param)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "graph", SCHEMA)


def names(part: int) -> list[str]:
    return [f"p{part}-{number}" for number in range(PART)]


def put(graph: Graph, *parts: int, branch: str = "main", **more: object) -> None:
    """Load some people and who knows whom, each part in fragments of its own."""
    for part in parts:
        own = names(part)
        mails = [None, *(f"{name}@x" for name in own[1:])]
        source = {
            "Person": pa.table({"name": own, "mail": mails}),
            "Knows": pa.table({"from": own, "to": own[::-1]}),
        }
        options = {"index": False, "engine": "local", **more}
        graph.load(source, mode="append", branch=branch, **options)  # type: ignore[arg-type]


def tables(graph: Graph, branch: str = "main") -> Iterator[tuple[TableKey, Table]]:
    snapshot = graph.snapshot(branch=branch)
    for key in snapshot.pins:
        yield key, data_at(graph._store, snapshot).table(key)


def segments(graph: Graph, branch: str = "main") -> dict[str, list[frozenset[int]]]:
    """The fragments of each segment of each index, by type and name."""
    return {
        f"{key.type_name} {each.name}": sorted(
            (frozenset(part.fragment_ids) for part in each.segments), key=sorted
        )
        for key, table in tables(graph, branch)
        for each in table.handle.describe_indices()
    }


def require_covered(graph: Graph, branch: str = "main") -> None:
    for key, table in tables(graph, branch):
        every = {each.id for each in table.fragments()}
        for column in WANTED[key.type_name]:
            assert covered_fragments(table, IndexSpec(column)) == every


def require_found(graph: Graph, *parts: int, branch: str = "main") -> None:
    """Every row is found by every index alone, and once."""
    by_type = {str(key.type_name): table for key, table in tables(graph, branch)}
    for name in (name for part in parts for name in names(part)):
        for type_name, column in (("Person", "id"), ("Person", "name"), ("Knows", "src")):
            found = by_type[type_name].read(
                [column], filter_text=f"{column} = '{name}'", indexed_only=True
            )
            assert found[column].to_pylist() == [name]
        has_mail = not name.endswith("-0")
        assert len(ids(by_type["Person"], f"mail = '{name}@x'")) == has_mail
    without = by_type["Person"].read(["id"], filter_text="mail IS NULL", indexed_only=True)
    assert sorted(without["id"].to_pylist()) == sorted(names(part)[0] for part in parts)


def index_files(graph: Graph) -> set[Path]:
    return set(Path(graph.uri).rglob("_indices/*"))


def test_every_engine_builds_one_segment_over_all_rows_and_finds_them(graph, engine):
    put(graph, 1, 2, 3)
    told: list[tuple[str, int, int | None]] = []

    result = graph.ensure_indices(engine=engine, progress=lambda *step: told.append(step))

    assert (dict(result.built), result.engine) == (WANTED, engine)
    assert graph.commits.show(result.commit_id).operation == "index"
    assert all(each == [frozenset({0, 1, 2})] for each in segments(graph).values())
    require_covered(graph)
    require_found(graph, 1, 2, 3)
    assert {stage for stage, _, _ in told} == {"index"}
    assert told[-1][1] == told[-1][2]
    # What was joined is gone.
    assert len(index_files(graph)) == sum(map(len, WANTED.values()))
    again = graph.ensure_indices(engine=engine)
    assert (again.commit_id, dict(again.built)) == (None, {})


def test_an_index_is_extended_by_what_it_lacks_alone(graph, engine):
    put(graph, 1, 2)
    graph.ensure_indices(engine="local")
    before = index_files(graph)
    covered = [
        Path(graph.uri, table.address.folder, "data", fragment.files[0].path)
        for _, table in tables(graph)
        for fragment in table.fragments()
    ]
    put(graph, 3)
    # Nobody can read what is covered already.
    for path in covered:
        path.rename(path.with_suffix(".away"))

    graph.ensure_indices(engine=engine)

    for path in Path(graph.uri).rglob("*.away"):
        path.rename(path.with_suffix(".lance"))
    assert all(each == [frozenset({0, 1}), frozenset({2})] for each in segments(graph).values())
    assert before < index_files(graph)
    require_covered(graph)
    require_found(graph, 1, 2, 3)


def test_a_branch_gets_indexes_of_its_own_and_main_is_as_it_was(graph, engine):
    put(graph, 1)
    graph.ensure_indices(engine="local")
    before, files = segments(graph), index_files(graph)
    graph.branches.create("draft")
    put(graph, 2, branch="draft")
    graph.branches.create("later", branch="draft")

    # The branch has no ref of any table yet: they are made when it is staged.
    result = graph.ensure_indices(branch="later", engine=engine)

    assert result.commit_id is not None
    require_covered(graph, "later")
    require_found(graph, 1, 2, branch="later")
    assert segments(graph) == before
    assert segments(graph, "draft") == before
    assert {path for path in index_files(graph) if "tree" not in path.parts} == files
    draft = graph.ensure_indices(branch="draft", engine=engine)
    assert draft.commit_id is not None
    require_covered(graph, "draft")


@pytest.mark.parametrize("point", [Failpoint.WRITE_AFTER_PLAN, Failpoint.WRITE_AFTER_STAGE])
def test_a_crash_before_the_commit_leaves_files_that_nothing_names(graph, engine, point):
    put(graph, 1, 2)
    head = graph.snapshot().head

    cut_off(Cut(point), lambda: graph.ensure_indices(engine=engine))

    left = index_files(graph)
    reopened = omnigraph.open(graph.uri)
    assert (reopened.snapshot().head, segments(reopened)) == (head, {})
    assert reopened.ensure_indices(engine=engine).commit_id is not None
    assert left < index_files(graph) or not left
    require_covered(reopened)
    require_found(reopened, 1, 2)


@pytest.mark.usefixtures("spark")
def test_a_load_on_spark_has_its_indexes_built_there(graph, monkeypatch):
    seen: list[int] = []
    build_parts = indexing.build_parts

    def noted(session: Any, parts: Sequence[indexing.IndexPart], cores: int) -> object:
        seen.append(len(parts))
        return build_parts(session, parts, cores)

    monkeypatch.setattr(indexing, "build_parts", noted)
    told: list[str] = []
    source = {"Person": pa.table({"name": names(1)})}

    graph.load(source, engine="spark", progress=lambda stage, *_: told.append(stage))

    assert seen == [len(WANTED["Person"])]
    assert list(dict.fromkeys(told)) == ["read", "check", "stage", "commit", "index"]
    require_covered(graph)
    assert [each.operation for each in graph.commits.list(limit=2)] == ["index", "load"]


@pytest.mark.usefixtures("spark")
def test_spark_builds_nothing_again_that_has_not_moved(graph, monkeypatch):
    put(graph, 1, 2)
    planned: list[str] = []
    plan_parts = indexing.plan_parts

    def noted(table: Table, gaps: Sequence[Gap], cores: int) -> object:
        planned.append(table.address.location.partition("/")[0])
        return plan_parts(table, gaps, cores)

    monkeypatch.setattr(indexing, "plan_parts", noted)
    insert = 'query add() { insert Person { name: "fay" } }'
    writes = iter([partial(omnigraph.open(graph.uri).mutate, insert)])

    def meanwhile() -> None:
        for each in writes:
            each()

    with arm(Failpoint.WRITE_AFTER_STAGE, meanwhile):
        graph.ensure_indices(engine="spark")
    assert sorted(planned) == ["edges", "nodes", "nodes"]
    require_covered(graph)


def test_an_interrupt_ends_the_jobs_of_spark_and_publishes_nothing(graph, spark):
    put(graph, 1, 2)
    head = graph.snapshot().head

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        graph.ensure_indices(engine="spark", progress=interrupt)

    assert spark.sparkContext.statusTracker().getActiveJobsIds() == []
    assert (graph.snapshot().head, segments(graph)) == (head, {})
    graph.ensure_indices(engine="spark")
    require_covered(graph)


def test_a_task_that_runs_twice_leaves_files_that_are_never_named(graph):
    put(graph, 1, 2)
    _, table = next(iter(tables(graph)))
    parts = tuple(indexing.plan_parts(table, find_gaps(table, [IndexSpec("id")]), cores=1))
    task = indexing.BuildTask(parts, (tuple(range(len(parts))),))
    numbers = pa.record_batch({"id": pa.array([0])})

    told = [list(indexing.build_groups(task, iter([numbers]))) for _ in range(2)]

    assert len(told[0]) == len(told[1]) == 2
    assert len(index_files(graph)) == 4
    assert segments(graph) == {}


def test_segments_are_joined_up_to_a_bound(graph, monkeypatch):
    put(graph, *range(5))
    monkeypatch.setattr(indexing, "INDEX_SEGMENT_ROWS_MAX", 2 * PART)
    parts = [
        part
        for key, table in tables(graph)
        for part in indexing.plan_parts(table, find_gaps(table, [IndexSpec("id")]), cores=8)
        if key.type_name == "Person"
    ]
    assert [each.gap.fragments for each in parts] == [(0,), (1,), (2,), (3,), (4,)]

    built: list[Any] = list(zip(parts, "abcde", strict=True))
    bundles = indexing.bundle_segments(built)

    assert ["".join(each.segments) for each in bundles] == ["ab", "cd", "e"]  # type: ignore[arg-type]
    # To join a few large ones takes as long as to build them, and a lookup hardly longer.
    monkeypatch.setattr(indexing, "INDEX_PART_ROWS_MAX", 3 * PART)
    few = indexing.bundle_segments(built[1:])
    assert ["".join(each.segments) for each in few] == ["b", "c", "d", "e"]  # type: ignore[arg-type]


def test_the_engine_is_chosen_by_how_many_rows_indexes_lack(graph, monkeypatch):
    put(graph, 1)
    view = graph._view()
    gaps = indexes.find_upkeep(view)
    monkeypatch.delenv("OMNIGRAPH_ENGINE", raising=False)
    few = by_size(None, indexes.measure_gaps(view, gaps))
    assert (few.engine, few.why.partition(";")[0]) == ("local", "24 rows to index")
    assert by_size("spark", indexes.measure_gaps(view, gaps)).engine is EngineName.SPARK
    monkeypatch.setattr(indexes, "INDEX_LOCAL_ROWS_MAX", 23)
    assert by_size(None, indexes.measure_gaps(view, gaps)).engine is EngineName.SPARK
    assert by_size("local", indexes.measure_gaps(view, gaps)).engine is EngineName.LOCAL
    assert by_size(None, indexes.measure_gaps(view, {})).engine is EngineName.LOCAL
    with pytest.raises(InvalidParameterError, match="'flink' is not a valid engine"):
        graph.ensure_indices(engine="flink")
