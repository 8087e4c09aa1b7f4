"""What is written by either way is there by both, and results say the same of it."""

import io
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph import (
    Graph,
    IntegrityError,
    InvalidInputError,
    MergeConflictError,
    RemoteGraph,
    StaleHeadError,
)
from omnigraph.merge.outcomes import Outcome
from tests.contract.graph.conftest import PEOPLE, SCHEMA, Pair

Either = Graph | RemoteGraph

ADD: Final = "query add($n: String, $a: I64?) { insert Person { name: $n, age: $a } }"
NAMES: Final = "query names() { match { $p: Person } return { $p.name } order { $p.name } }"


def names(graph: Either) -> list[str]:
    return [row["p.name"] for row in graph.query(NAMES).rows()]


OLD: Final = sorted(str(person["name"]) for person in PEOPLE)


def test_a_mutation_lands_with_its_actor_and_message(graph: Either) -> None:
    result = graph.mutate(ADD, {"n": "Cy", "a": 2**62}, message="one more", actor="ada")
    head = graph.snapshot().head

    assert (result.commit_id, result.inserted, result.branch) == (head.commit_id, 1, head.branch)
    assert (head.actor, head.message, head.operation) == ("ada", "one more", "mutation")
    assert graph.entity("Person", "Cy")["age"] == 2**62  # type: ignore[index]


def test_a_key_lands_once_and_stands_for_one_request(graph: Either) -> None:
    key = f"the key of {graph.target.branch}"
    first = graph.mutate(ADD, {"n": "Cy"}, key=key)
    before = graph.commits.list()

    assert graph.mutate(ADD, {"n": "Cy"}, key=key) == first
    assert graph.commits.list() == before
    with pytest.raises(InvalidInputError, match="used for another request"):
        graph.mutate(ADD, {"n": "Di"}, key=key)


def test_loads_choose_one_of_several_rows_of_a_key(graph: Either) -> None:
    rows = pa.table({"name": ["Cy", "Cy", "Cy"], "age": [1, 2, 3], "at": [1, 3, 2]})

    result = graph.load({"Person": rows.drop_columns(["at"])}, mode="merge")
    assert (result.inserted, result.superseded) == (1, 2)
    assert graph.entity("Person", "Cy")["age"] == 3  # type: ignore[index]
    graph.load({"Person": rows}, mode="merge", order_by="at", on_duplicate="last")
    assert graph.entity("Person", "Cy")["age"] == 2  # type: ignore[index]
    with pytest.raises(IntegrityError, match="Cy"):
        graph.load({"Person": rows}, mode="merge", order_by="at", on_duplicate="reject")


def test_loads_merges_and_deletions_have_conditions_on_the_head(graph: Either) -> None:
    target = str(graph.target.branch)
    old = graph.snapshot().head.commit_id
    side = graph.branches.create(f"{target}-side")
    side.load({"Badge": [{"number": 50}]}, expect_head=old, index=False)
    new = side.snapshot().head.commit_id
    name = str(side.target.branch)

    for refused in (
        lambda: side.load({"Badge": [{"number": 51}]}, expect_head=old),
        lambda: graph.merge(name, expect_head=new),
        lambda: graph.merge(name, expect_head=new, dry_run=True),
        lambda: graph.branches.delete(name, expect_head=old),
        lambda: graph.branches.delete(name, expect_head=old, dry_run=True),
    ):
        with pytest.raises(StaleHeadError):
            refused()
    assert graph.merge(name, expect_head=old, expect_source=new).commit_id is not None
    graph.branches.delete(name, expect_head=new)
    assert name not in graph.branches.list()


def test_a_condition_on_the_head_is_checked(graph: Either) -> None:
    graph.mutate(ADD, {"n": "Cy"}, expect_head="v1")

    with pytest.raises(omnigraph.StaleHeadError):
        graph.mutate(ADD, {"n": "Di"}, expect_head="v1")


SOURCES: Final = ("rows", "lines", "csv", "parquet", "arrow", "reader", "pandas", "stream", "mixed")


def source_of(kind: str, folder: Path) -> Any:
    """The same two people, in some form."""
    table = pa.table({"name": ["Cy", "Di"], "age": pa.array([1, None], pa.int64())})
    lines = (
        '{"type": "Person", "data": {"name": "Cy", "age": 1}}\n'
        '{"type": "Person", "data": {"name": "Di"}}\n'
    )
    match kind:
        case "rows":
            return {"Person": [{"name": "Cy", "age": 1}, {"name": "Di"}]}
        case "lines":
            (folder / "people.jsonl").write_text(lines)
            return folder / "people.jsonl"
        case "csv":
            (folder / "people.csv").write_text("who|age\nCy|1\nDi|NA\n")
            return {"Person": f"{folder}/people.csv:name=who"}
        case "parquet":
            pq.write_table(table, folder / "Person.parquet")
            return str(folder)
        case "arrow":
            return {"Person": table}
        case "reader":
            return {"Person": table.to_reader()}
        case "pandas":
            return {"Person": pd.DataFrame({"name": ["Cy", "Di"], "age": [1.0, float("nan")]})}
        case "stream":
            return io.BytesIO(lines.encode())
        case _:
            (folder / "Person.jsonl").write_text('{"name": "Cy", "age": 1}\n')
            return [{"Person": str(folder / "Person.jsonl")}, {"Person": [{"name": "Di"}]}]


@pytest.mark.parametrize("kind", SOURCES)
def test_rows_of_every_form_are_loaded(graph: Either, tmp_path: Path, kind: str) -> None:
    csv = {"delimiter": "|", "null": "NA"} if kind == "csv" else None

    result = graph.load(source_of(kind, tmp_path), csv=csv, message="more", index=False)

    assert (result.inserted, result.mode, result.engine) == (2, "append", "local")
    assert result.commit_id == graph.snapshot().head.commit_id
    assert names(graph) == sorted([*OLD, "Cy", "Di"])
    assert [graph.entity("Person", name)["age"] for name in ("Cy", "Di")] == [1, None]  # type: ignore[index]


def test_rows_with_values_of_python_are_loaded_as_they_are(graph: Either) -> None:
    from datetime import UTC, date, datetime

    row = {
        "name": "Cy",
        "born": date(2000, 1, 2),
        "seen": datetime(2000, 1, 2, 3, 4, 5, 6, UTC),
        "picture": b"\xff\x00",
        "tags": ["x"],
        "score": float("-inf"),
    }
    graph.load({"Person": [row]}, index=False)

    assert graph.entity("Person", "Cy") == {"id": "Cy", "age": None, **row}


def test_a_load_reports_its_progress_and_indexes_its_rows(graph: Either) -> None:
    stages = list[str]()

    def follow(stage: str, done: int, total: int | None) -> None:
        assert total is None or done <= total
        stages.append(stage)

    rows = [{"name": f"p{number}"} for number in range(200)]

    graph.load({"Person": rows}, mode="merge", progress=follow)

    assert {"read", "commit"} <= set(stages)
    assert graph.snapshot().head.operation == "index"


def test_a_load_makes_its_branch_and_deletes_it_if_it_fails(graph: Either) -> None:
    name = f"{graph.target.branch}x"
    with pytest.raises(IntegrityError):
        graph.load({"Person": [{"name": "Ada"}]}, branch=name, start=graph.target.branch)
    assert name not in graph.branches.list()

    graph.load({"Person": [{"name": "Cy"}]}, branch=name, start=graph.target.branch)
    assert "Cy" in names(graph.at(branch=name))


def test_rows_that_break_rules_are_set_aside(graph: Either, tmp_path: Path) -> None:
    rejects = tmp_path / "rejects.jsonl"

    result = graph.load(
        {"Person": [{"name": "Cy"}, {"name": "Ada"}]},
        on_error="quarantine",
        rejects=rejects,
        index=False,
    )

    assert (result.inserted, result.rejected) == (1, 1)
    [line] = rejects.read_text().splitlines()
    assert '"Ada"' in line
    with pytest.raises(omnigraph.AlreadyExistsError):
        graph.load({"Person": [{"name": "E"}]}, on_error="quarantine", rejects=rejects)


def test_violations_name_the_lines_of_files_as_the_caller_does(
    graph: Either, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.jsonl").write_text('{"type": "Person", "data": {"name": "Ada"}}\n')

    with pytest.raises(IntegrityError) as refused:
        graph.load("people.jsonl")

    [violation] = refused.value.violations
    assert (violation.origin, violation.id, violation.rule) == ("people.jsonl:1", "Ada", "exists")


def test_branches_merge_with_conflicts_and_decisions(graph: Either) -> None:
    theirs = graph.branches.create(f"{graph.target.branch}/theirs".replace("own/", "side/"))
    theirs.mutate('query u() { update Person set { age: 1 } where name = "Bob" }')
    graph.mutate('query u() { update Person set { age: 2 } where name = "Bob" }')

    with pytest.raises(MergeConflictError) as refused:
        graph.merge(theirs.target.branch)
    [conflict] = refused.value.conflicts
    assert (conflict.id, conflict.property, conflict.ours, conflict.theirs) == ("Bob", "age", 2, 1)

    outcome = graph.merge(theirs.target.branch, resolve="theirs", delete_branch=True)
    assert (outcome.outcome, outcome.deleted_source) == (Outcome.MERGED, True)
    assert graph.entity("Person", "Bob")["age"] == 1  # type: ignore[index]
    assert theirs.target.branch not in graph.branches.list()


def test_a_schema_is_changed_from_a_file_of_the_caller(graph: Either, tmp_path: Path) -> None:
    file = tmp_path / "schema.pg"
    file.write_text(SCHEMA.replace("age: I64?", "age: I64?  nick: String?"))

    plan = graph.schema.plan(file)
    result = graph.schema.apply(file, message="nicknames")

    assert [step.place for step in result.plan.steps] == ["Person.nick"]
    assert plan.steps == result.plan.steps
    assert "nick" in graph.entity("Person", "Ada")  # type: ignore[operator]
    file.write_text("node Person { name: Strng }")
    with pytest.raises(omnigraph.DiagnosticsError, match=r"schema\.pg has 1 error"):
        graph.schema.plan(file)


def test_tags_settings_and_stored_queries_are_written(graph: Either) -> None:
    name = f"tag/{graph.target.branch}"
    tag = graph.tags.create(name, message="here")
    assert graph.tags.show(name) == tag
    graph.tags.delete(name)
    assert name not in [each.name for each in graph.tags.list()]

    assert graph.settings.set("query.timeout", "45s").value == "45s"
    assert graph.settings.unset("query.timeout").source == "default"

    [stored] = graph.queries.put(NAMES)
    assert (stored.name, stored.changes) == ("names", False)
    assert [row["p.name"] for row in graph.queries.run("names").rows()] == OLD  # type: ignore[union-attr]
    graph.queries.delete("names")
    assert graph.queries.list() == ()


def test_proposals_are_reviewed_and_merged(graph: Either) -> None:
    source = f"idea/{graph.target.branch.rpartition('/')[2]}"
    idea = graph.branches.create(source)
    idea.mutate(ADD, {"n": "Cy"})

    proposal = graph.proposals.create(source, "Add Cy", into=graph.target.branch)
    graph.proposals.comment(proposal.number, "why?", type_name="Person", id="Cy")
    assert graph.proposals.diff(proposal.number).counts["Person"].inserted == 1
    assert graph.proposals.preview(proposal.number).conflict_count == 0
    graph.proposals.merge(proposal.number)

    assert graph.proposals.show(proposal.number).proposal.state == "merged"
    assert "Cy" in names(graph)


def test_maintenance_runs_where_the_graph_is(graph: Either) -> None:
    graph.mutate(ADD, {"n": "Cy"})

    assert graph.ensure_indices().engine == "local"
    assert graph.optimize(types="Person").tables["Person"].fragments_after == 1
    assert graph.cleanup().troubles == ()
    assert graph.refresh() == ()
    assert graph.embeddings.run().commits == ()


FORMATS: Final = ("graph.jsonl", "graph.jsonl.zst", "folder")


@pytest.mark.parametrize("name", FORMATS)
def test_an_export_has_the_same_files_by_both_ways(pair: Pair, tmp_path: Path, name: str) -> None:
    results = []
    for way in ("embedded", "remote"):
        (tmp_path / way).mkdir()
        point = getattr(pair, way).at(commit="v1")
        form = "csv" if name == "folder" else None
        target = tmp_path / way / name
        results.append(point.export(target, format=form, types=["Person", "Knows"]))
        assert results[-1].target == str(target)
        with pytest.raises(omnigraph.AlreadyExistsError):
            point.export(target, format=form)
        point.export(target, format=form, types=["Person", "Knows"], replace=True)

    first, second = (contents(tmp_path / way) for way in ("embedded", "remote"))
    assert first == second
    assert [(each.rows, each.files, each.why, each.format) for each in results[:1]] == [
        (each.rows, each.files, each.why, each.format) for each in results[1:]
    ]


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(files)}


def test_an_export_to_standard_output_is_only_its_rows(
    pair: Pair, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    shown = []
    for graph in (pair.embedded, pair.remote):
        result = graph.at(commit="v1").export("-")
        shown.append((capfdbinary.readouterr().out, result.rows, result.files, result.target))

    assert shown[0] == shown[1]
    assert shown[0][0].startswith(b'{"type":"Badge"')


def test_a_read_only_handle_writes_nothing(pair: Pair) -> None:
    for opened in (
        omnigraph.open(pair.embedded.uri, read_only=True),
        omnigraph.connect(pair.remote.uri, pair.served.token, read_only=True),
    ):
        with pytest.raises(omnigraph.NotAllowedError, match="read-only"):
            opened.mutate(ADD, {"n": "x"})
        with pytest.raises(omnigraph.NotAllowedError, match="read-only"):
            opened.load({"Person": [{"name": "x"}]})
        with pytest.raises(omnigraph.NotAllowedError, match="read-only"):
            opened.branches.create("never")
        assert opened.merge("rival", dry_run=True).conflict_count == 1
        opened.close()
