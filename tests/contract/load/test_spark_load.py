"""A load on Spark does what a load in this process does, and says the same of what it refuses."""

from __future__ import annotations

import gzip
import json
import os
import signal
from collections.abc import Iterator
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.errors import OmnigraphError
from omnigraph.failpoints import Failpoint
from omnigraph.integrity.violations import IntegrityError, IntegrityReport
from omnigraph.load import planning
from omnigraph.load.results import LoadResult
from omnigraph.load.spark import stage
from omnigraph.load.spark.load import SparkLoad
from omnigraph.recovery.scratch import SCRATCH
from tests.contract.load.loading import Loaded, changed, edge, lines_of, loaded, node
from tests.support.crashes import Cut, cut_off

pytestmark = pytest.mark.usefixtures("spark")

SCHEMA: Final = """
node Person {
  name: String @key
  age: I32?
  mail: String? @unique
  mood: enum(glad, sad)?
  level: I32 @default(1)
  @range(age, 0..150)
  @check(mail, "@")
}
node City { name: String @key }
node Note { text: String? }
edge Knows: Person -> Person { since: Date? }
edge LivesIn: Person -> City @card(0..1)
"""
BEFORE: Final = (
    node("Person", name="ada", age=36, mail="a@x"),
    node("Person", name="bob"),
    node("City", name="Oslo"),
    edge("Knows", "ada", "bob", since="2024-01-31"),
    edge("LivesIn", "ada", "Oslo"),
)


@pytest.fixture(autouse=True)
def _small_splits(monkeypatch):
    """Even a small file is read by several tasks."""
    monkeypatch.setattr(planning, "LOAD_GROUP_BYTES_MIN", 600)
    monkeypatch.setattr(planning, "LOAD_GROUPS_PER_CORE_MIN", 2)


@pytest.fixture
def both(tmp_path: Path) -> dict[str, Loaded]:
    """The same graph twice, one for each engine."""
    found = {}
    for engine in ("local", "spark"):
        place = tmp_path / engine
        place.mkdir()
        found[engine] = loaded(place, SCHEMA)
        found[engine].put(*BEFORE, engine="local")
    return found


def contents(found: Loaded, branch: str = "main") -> dict[str, Any]:
    """All rows that have an id of their own choosing, and how many there are of the others."""
    types = found.graph.schema.show().catalog.types
    rows = {each.name: found.rows(each.name, branch) for each in types}
    chosen = {name: rows[name] for name in ("Person", "City")}
    return {**chosen, **{name: _without_ids(rows[name]) for name in ("Knows", "LivesIn", "Note")}}


def _without_ids(rows: dict[str, Any]) -> list[str]:
    return sorted(json.dumps(each, default=str) for each in rows.values())


def on_both(both: dict[str, Loaded], source: Any, mode: str, **more: Any) -> LoadResult:
    """Load with each engine and compare what they did."""
    results = {name: each.load(source, mode, engine=name, **more) for name, each in both.items()}
    assert changed(results["spark"]) == changed(results["local"])
    branch = more.get("branch", "main")
    assert contents(both["spark"], branch) == contents(both["local"], branch)
    assert results["spark"].engine == "spark"
    assert scratch_of(both["spark"]) == []
    return results["spark"]


def refused_by_both(both: dict[str, Loaded], source: Any, mode: str = "append") -> IntegrityReport:
    """Load with each engine and compare how they refuse it."""
    reports = {}
    for name, each in both.items():
        before, had = each.head(), contents(each)
        with pytest.raises(IntegrityError) as refusal:
            each.load(source, mode, engine=name)
        reports[name] = refusal.value.report
        assert (each.head(), contents(each)) == (before, had)
    assert told(reports["spark"]) == told(reports["local"])
    assert scratch_of(both["spark"]) == []
    return reports["spark"]


def told(report: IntegrityReport) -> dict[str, Any]:
    """A report, whatever order its rules come in."""
    return {
        str(breach): (count, [each for each in report.violations if each.breach == breach])
        for breach, count in report.counts.items()
    }


def scratch_of(found: Loaded) -> list[Path]:
    return list(Path(found.graph.uri, SCRATCH).glob("*/**/*"))


def people(*numbers: int) -> list[dict[str, Any]]:
    return [node("Person", name=f"p{n}", age=n % 100, mail=f"p{n}@x") for n in numbers]


def many(count: int) -> list[dict[str, Any]]:
    """Nodes and edges of every type, in an order that no task can have all of."""
    lines = [*people(*range(count)), *(node("Note", text=f"«{n}»") for n in range(count // 4))]
    lines += [edge("Knows", f"p{n}", f"p{n * 7 % count}") for n in range(count)]
    lines += [edge("LivesIn", f"p{n}", "Oslo") for n in range(0, count, 2)]
    # Ids of their own: those that are minted differ from load to load.
    own = [{**each, "id": f"#{n}"} if "edge" in each else each for n, each in enumerate(lines)]
    return [own[n * 7919 % len(own)] for n in range(len(own))]


def wrong() -> list[Any]:
    """Many lines, some of which break every rule that lines can break."""
    lines: list[Any] = many(101)
    lines[30:30] = [
        node("Person", name="ada"),
        node("Person", name="x1", age=-1),
        node("Person", name="x2", mood="angry"),
        "",
        node("Person", name="x3", mail="nowhere"),
        node("Person", name="x4", mail="p7@x"),
        node("Person", name="x5", age="old"),
        "{not json",
        node("Person", age=3),
    ]
    lines[200:200] = [
        node("Persn", name="x"),
        node("Person", name="p7"),
        {**edge("Knows", "p1", "nobody"), "id": "k1"},
        {**edge("LivesIn", "p0", "Oslo"), "id": "l1"},
        {**edge("LivesIn", "nobody", "Rome"), "id": "l2"},
        node("Person", name="x6", size=1),
    ]
    lines += [node("Person", name=f"y{n}", age=200) for n in range(45)]
    lines += [{**edge("Knows", "p1", f"lost{n}"), "id": f"z{n}"} for n in range(45)]
    return lines


# Rows are appended by other tests of the gate, too.
@pytest.mark.parametrize(
    "mode", [pytest.param("append", marks=pytest.mark.soak), "merge", "overwrite"]
)
def test_every_mode_does_the_same(both, mode):
    # Edges have no key here: merged, they would come a second time.
    again = {"append": (), "merge": BEFORE[:3], "overwrite": BEFORE}
    lines = [*many(101), *again[mode]]
    source = both["local"].file("data.jsonl", *lines)

    result = on_both(both, source, mode)

    assert result.inserted >= 250


@pytest.mark.soak
def test_merge_keeps_the_row_ids_of_rows_it_replaces(both):
    def row_ids() -> dict[str, int]:
        pin = next(
            each
            for key, each in both["spark"].graph.snapshot().pins.items()
            if key.type_name == "Person"
        )
        tables = both["spark"].graph._store.tables
        found = tables.open(pin.location, ref=pin.ref, version=pin.version).read(["id", "_rowid"])
        return dict(zip(found["id"].to_pylist(), found["_rowid"].to_pylist(), strict=True))

    before = row_ids()
    source = both["local"].file("m.jsonl", node("Person", name="ada", age=37), *people(1, 2, 3))

    on_both(both, source, "merge")

    after = row_ids()
    assert after["ada"] == before["ada"]
    assert after["bob"] == before["bob"]
    assert len(set(after.values())) == len(after) == 5


@pytest.mark.parametrize(
    ("is_looked_up", "is_held"),
    # Small loads are held by workers, as those of most tests are.
    [(True, False), (False, False), pytest.param(False, True, marks=pytest.mark.soak)],
)
def test_replaced_rows_are_found_alike_in_every_way(both, monkeypatch, is_looked_up, is_held):
    monkeypatch.setattr(stage.WaitingRows, "is_found_by_index", lambda *_: is_looked_up)
    monkeypatch.setattr(stage.WaitingRows, "is_held", lambda *_: is_held)
    first = both["local"].file("first.jsonl", *many(80))
    for found in both.values():
        found.load(first, "append", engine="local")
    # Of the stored rows some are replaced, in several fragments and by several tasks.
    again = [line for line in many(120) if line.get("type") == "Person"]
    for line in again[::2]:
        line["data"] = {**line["data"], "age": 150}
    stored = [f"p{n}" for n in range(80)]
    replaced = {line["data"]["name"] for line in again[::2]}.intersection(stored)
    source = both["local"].file("again.jsonl", *again, node("Person", name="ada", age=1))

    result = on_both(both, source, "merge")

    assert changed(result)["Person"] == (40, len(replaced) + 1, 0)
    assert result.unchanged == {"Person": 80 - len(replaced)}


@pytest.mark.parametrize(
    "mode",
    [
        "merge",
        pytest.param("append", marks=pytest.mark.soak),
        pytest.param("overwrite", marks=pytest.mark.soak),
    ],
)
def test_a_branch_gets_the_rows_and_main_does_not(both, mode):
    for each in both.values():
        each.graph.branches.create("draft")
    main = contents(both["spark"])
    extra = [] if mode != "overwrite" else [*BEFORE]
    source = both["local"].file("one.jsonl", *people(1, 2, 3), *extra)

    on_both(both, source, mode, branch="draft")
    # The second write of the branch goes to refs that it has by now.
    second = both["local"].file("two.jsonl", *people(4, 5), *extra)
    on_both(both, second, mode, branch="draft")

    assert contents(both["spark"]) == main


# The gate's own such file, of more rules, is in `test_spark_rules`.
@pytest.mark.soak
def test_every_rule_is_told_with_the_same_lines(both):
    source = both["local"].file("bad.jsonl", *wrong())

    report = refused_by_both(both, source)

    assert len(report.counts) >= 9
    assert report.total >= 100


@pytest.mark.soak
@pytest.mark.parametrize("name", ["data.jsonl.gz", "data.jsonl.zst"])
def test_packed_files_are_read(both, name):
    on_both(both, both["local"].file(name, *many(60)), "append")


@pytest.mark.soak
def test_rows_of_python_and_files_of_one_type_are_read(both, tmp_path):
    table = pa.table({"name": [f"q{n}" for n in range(50)], "age": range(50)})
    pq.write_table(table, tmp_path / "Person.parquet", row_group_size=7)
    (tmp_path / "City.csv").write_text("name\nRome\n\nParis\n")
    source = [
        str(tmp_path / "Person.parquet"),
        str(tmp_path / "City.csv"),
        {"Note": [{"text": "a"}, {"text": None}]},
        {"Person": pa.table({"name": ["r1", "r2"]})},
    ]

    on_both(both, source, "append")


@pytest.mark.soak
def test_offenders_of_columns_are_told_by_their_rows(both, tmp_path):
    table = pa.table({"name": [f"q{n}" for n in range(50)], "age": [n - 3 for n in range(50)]})
    pq.write_table(table, tmp_path / "Person.parquet", row_group_size=7)
    (tmp_path / "City.csv").write_text("name\nRome\n\nParis\nRome\n")
    (tmp_path / "more.csv").write_text("name,age\nr1,1\n\n,\n")
    files = [str(tmp_path / "Person.parquet"), str(tmp_path / "City.csv")]

    report = refused_by_both(both, [*files, {"Person": str(tmp_path / "more.csv")}])
    assert f"{tmp_path}/more.csv:4" in {each.origin for each in report.violations}


def test_a_dataframe_is_loaded(both, spark):
    rows = [(f"d{n}", n) for n in range(40)]
    frame = spark.createDataFrame(rows, "name string, age int").repartition(3)

    result = both["spark"].load({"Person": frame}, "append")

    assert changed(result) == {"Person": (40, 0, 0)}
    assert {f"d{n}" for n in range(40)} <= both["spark"].ids("Person")


def test_no_byte_is_read_twice(both, monkeypatch):
    seen: list[SparkLoad] = []
    close = SparkLoad.close

    def closing(load: SparkLoad) -> None:
        seen.append(load)
        close(load)

    monkeypatch.setattr(SparkLoad, "close", closing)
    source = both["local"].file("d.jsonl", *(node("Note", text=f"{n:2000}") for n in range(500)))

    both["spark"].load(source, "append", engine="spark")

    [load] = seen
    assert load.intake is not None
    assert load._task is not None
    size, cuts = Path(source).stat().st_size, len(load._task.splits)
    assert cuts > 3
    # Where a line was cut, its reader looks on to its end.
    assert size <= load.intake.bytes_read < size + cuts * 4097 < 1.1 * size


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["append", "merge"])
def test_quarantine_leaves_the_same_rows_out_for_the_same_reasons(both, tmp_path, mode):
    source = both["local"].file("bad.jsonl", *wrong())
    rejects, results = {}, {}
    for name, each in both.items():
        path = tmp_path / f"{name}.rejects"
        more: dict[str, Any] = {"on_error": "quarantine", "rejects": path, "engine": name}
        results[name] = each.load(source, mode, **more)
        rejects[name] = lines_of(path)

    assert rejects["spark"] == rejects["local"]
    assert changed(results["spark"]) == changed(results["local"])
    assert results["spark"].rejected == results["local"].rejected == len(rejects["local"])
    assert contents(both["spark"]) == contents(both["local"])
    assert scratch_of(both["spark"]) == []


@pytest.mark.soak
def test_quarantine_goes_on_until_nothing_is_broken(both, tmp_path):
    lines = [
        node("Person", name="cy", age=200),
        node("Person", name="dee"),
        edge("Knows", "dee", "cy"),
        edge("Knows", "dee", "ada"),
        node("City", name="Rome"),
        node("City", name="Rome"),
        edge("LivesIn", "dee", "Rome"),
    ]
    rejects = tmp_path / "rejects"
    source = both["spark"].file("more.jsonl", *lines)

    result = both["spark"].load(source, engine="spark", on_error="quarantine", rejects=rejects)

    origins = [Path(each["origin"]).name for each in lines_of(rejects)]
    assert origins == [f"more.jsonl:{line}" for line in (1, 3, 5, 6, 7)]
    assert result.rejected == 5
    message = both["spark"].graph.commits.list()[0].message
    assert message == "5 rows rejected, see rejects"


@pytest.mark.soak
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_stream_is_read_once_and_its_lines_are_told(both, is_packed):
    lines = [json.dumps(each) for each in (*many(40), node("Person", name="z", age=-1))]
    data = "".join(f"{each}\n" for each in lines).encode()
    stream = BytesIO(gzip.compress(data) if is_packed else data)

    with pytest.raises(IntegrityError) as refusal:
        both["spark"].load(stream, engine="spark")

    [violation] = refusal.value.violations
    assert violation.origin == f"stream:{len(lines)}"
    assert scratch_of(both["spark"]) == []


@pytest.mark.soak
@pytest.mark.parametrize("stage", ["read", "stage"])
def test_an_interruption_ends_the_jobs_and_leaves_nothing_visible(both, spark, stage):
    source = both["local"].file("data.jsonl", *many(40))
    before = contents(both["spark"])

    def interrupt(at: str, done: int, total: int | None) -> None:  # noqa: ARG001
        if at == stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        both["spark"].load(source, "merge", engine="spark", progress=interrupt)

    assert contents(both["spark"]) == before
    assert scratch_of(both["spark"]) == []
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()
    on_both(both, source, "merge")


CUTS: Final = (
    "write.after_plan",
    "write.after_stage",
    "write.after_each_apply",
    "publish.after_commit",
)


@pytest.mark.parametrize(
    "point",
    [CUTS[2], *(pytest.param(each, marks=pytest.mark.soak) for each in CUTS if each != CUTS[2])],
)
def test_a_driver_that_dies_leaves_the_graph_before_or_after(both, point):
    source = both["local"].file("data.jsonl", *people(1, 2), node("Person", name="ada", age=1))
    before = contents(both["spark"])
    both["local"].load(source, "merge", engine="local")
    after = contents(both["local"])

    cut_off(Cut(Failpoint(point)), lambda: both["spark"].load(source, "merge", engine="spark"))

    graph = omnigraph.open(both["spark"].graph.uri)
    assert contents(Loaded(graph, both["spark"].folder)) in (before, after)


@pytest.mark.soak
def test_few_jobs_are_run_whatever_the_number_of_rows(both, spark):
    tracker = spark.sparkContext.statusTracker()
    counts = []
    for number, count in enumerate((20, 400)):
        seen: list[str] = []
        source = both["spark"].file(
            f"{number}.jsonl", *(node("City", name=f"{number} {n}") for n in range(count))
        )
        began = SparkLoad.begin

        def noted(*given: Any, began: Any = began, seen: Any = seen) -> SparkLoad:
            load: SparkLoad = began(*given)
            seen.append(load._jobs().group_id)
            return load

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SparkLoad, "begin", noted)
            both["spark"].load(source, engine="spark")
        counts.append(len(tracker.getJobIdsForGroup(seen[0])))

    # The intake and the ledger, which Spark runs as a job for each of its stages.
    assert counts[0] == counts[1] <= 5


@pytest.mark.soak
def test_a_worker_that_is_killed_fails_the_load_and_not_the_graph(both, spark, tmp_path):
    frame = spark.createDataFrame([(f"d{n}",) for n in range(40)], "name string").repartition(4)
    source = {
        "Person": frame.mapInArrow(partial(killed_once, str(tmp_path / "dead")), frame.schema)
    }
    before = contents(both["spark"])

    with pytest.raises(OmnigraphError):
        both["spark"].load(source)

    assert (tmp_path / "dead").exists()
    assert contents(both["spark"]) == before
    assert changed(both["spark"].load(source)) == {"Person": (40, 0, 0)}
    assert len(both["spark"].ids("Person")) == 42


def killed_once(mark: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        if batch.num_rows and not Path(mark).exists():
            Path(mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.soak
def test_a_place_that_spark_would_take_for_a_pattern_is_a_place(tmp_path):
    # Executors then read scratch themselves, as they do on an object store.
    place = tmp_path / "all [of] {them}*"
    place.mkdir()
    found = loaded(place, SCHEMA)
    found.put(*BEFORE, engine="spark")

    result = found.put(node("Person", name="ada", age=1), *people(1), mode="merge", engine="spark")

    assert changed(result) == {"Person": (1, 1, 0)}
    assert found.rows("Person")["ada"]["age"] == 1
