"""Import of graphs that the Rust releases wrote: compared with what those releases answered."""

import json
import shutil
import threading
from functools import partial
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import (
    AlreadyExistsError,
    ErrorCode,
    FormatError,
    GraphNotFoundError,
    OmnigraphError,
)
from omnigraph.failpoints import Failpoint, SimulatedCrash, arm
from omnigraph.manifest.layout import IMPORT
from tests.support.clocks import LaterClock
from tests.support.concurrency import in_processes
from tests.support.crashes import Cut, cut_off, put_to_death, trace
from tests.support.originals import (
    BRANCHES,
    INTERRUPTED,
    RELEASES,
    Row,
    answers,
    files,
    ours,
    outcome,
    recorded_commits,
    recovered_commits,
    rows_by_commit,
    shown,
    theirs,
    unpack,
)

YEAR_SECONDS = 365 * 86_400.0


def rows_of(graph: omnigraph.Graph, folder: Path, *, engine=None, **point) -> frozenset[Row]:
    target = folder / "rows.jsonl"
    graph.at(**point).export(target, engine=engine, replace=True)
    return ours(target.read_text().splitlines())


def assert_complete(graph: omnigraph.Graph, release: str, folder: Path) -> None:
    """Every branch, commit and row is there."""
    assert sorted(graph.branches.list()) == sorted(BRANCHES)
    for branch in BRANCHES:
        listed = [shown(each) for each in graph.commits.list(branch=branch)]
        assert sorted(listed) == sorted(recorded_commits(release, branch))
        assert listed[0] == recorded_commits(release, branch)[-1]
        recorded = theirs(answers(release)["branches"][branch])
        assert rows_of(graph, folder, branch=branch) == recorded
    for commit_id, rows in rows_by_commit(release).items():
        assert rows_of(graph, folder, commit=commit_id) == rows


@pytest.fixture(scope="module", params=RELEASES)
def release(request):
    return request.param


@pytest.fixture(scope="module")
def imported(release, tmp_path_factory):
    """An imported graph, which tests copy to write to it."""
    folder = tmp_path_factory.mktemp("imported")
    omnigraph.import_original(unpack(f"{release}/graph", folder), folder / "ours.omni")
    return folder / "ours.omni"


def test_import_brings_every_branch_commit_and_row(imported, release, tmp_path):
    graph = omnigraph.open(imported, read_only=True)
    assert_complete(graph, release, tmp_path)
    assert graph.check(history=True).is_sound


def test_import_reads_a_graph_where_it_was_written(release, tmp_path):
    """Unmoved, a branch's own paths lead to the graph; they are not used even then."""
    source = unpack(f"{release}/graph", tmp_path)
    place = Path(f"/srv/omnigraph/{release}")
    try:
        place.mkdir(parents=True)
    except OSError as cause:
        pytest.skip(f"{place} cannot be made: {cause}")
    shutil.copytree(source, place / "graph.omni")
    try:
        result = omnigraph.import_original(place / "graph.omni", tmp_path / "ours.omni")
    finally:
        shutil.rmtree(place)
    assert sum(result.commits.values()) == 14
    assert_complete(omnigraph.open(tmp_path / "ours.omni"), release, tmp_path)


def test_import_of_a_copy_reads_nothing_of_the_place_it_was_copied_from(release, tmp_path):
    """Branches of the copy name files of another graph there, here one with other rows."""
    source = unpack(f"{release}/graph", tmp_path)
    place = Path(f"/srv/omnigraph/{release}")
    try:
        place.mkdir(parents=True)
    except OSError as cause:
        pytest.skip(f"{place} cannot be made: {cause}")
    shutil.copytree(source, place / "graph.omni")
    for data in (place / "graph.omni").rglob("data/*.lance"):
        data.write_bytes(b"not readable")
    try:
        omnigraph.import_original(source, tmp_path / "ours.omni")
    finally:
        shutil.rmtree(place)
    assert_complete(omnigraph.open(tmp_path / "ours.omni"), release, tmp_path)


def test_import_only_reads_the_source(release, tmp_path):
    source = unpack(f"{release}/graph", tmp_path)
    before = files(source)
    omnigraph.import_original(source, tmp_path / "ours.omni")
    assert files(source) == before


@pytest.mark.parametrize("number", INTERRUPTED)
def test_interrupted_writes_end_as_the_release_ended_them(number, tmp_path):
    source = unpack(f"0.8.0-interrupted/interrupted-{number}", tmp_path)
    recorded = outcome(number)
    *earlier, recovery, _ = recovered_commits(number)

    result = omnigraph.import_original(source, tmp_path / "ours.omni")

    graph = omnigraph.open(tmp_path / "ours.omni", actor="ada")
    newest, *others = map(shown, graph.commits.list())
    assert others == earlier[::-1]
    assert newest[1:5] == recovery[1:5]
    all_moved = json.loads(recorded["tables_beyond_their_pins"]) == [1, 1, 1]
    operation_id = recorded["sidecar"]["operation_id"]
    expected = "rolled forward" if all_moved else "rolled back"
    assert result.recovered == {operation_id: expected}
    graph.mutate('query q() { insert City { name: "next" } }')
    assert rows_of(graph, tmp_path) == theirs(recorded["rows_after"])
    assert graph.check(history=True).is_sound


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(("release", "stamp", "name"), [("0.8.0", 4, "0.8"), ("0.7.2", 3, "0.7")])
def test_open_names_the_release_and_the_import(release, stamp, name, read_only, tmp_path):
    source = unpack(f"{release}/graph", tmp_path)
    before = files(source)

    with pytest.raises(FormatError) as refused:
        omnigraph.open(source, read_only=read_only)

    assert f"{name} (internal schema {stamp})" in refused.value.message
    assert f"omnigraph import original {source} TARGET" in (refused.value.hint or "")
    assert refused.value.code is ErrorCode.FORMAT_TOO_OLD
    assert files(source) == before


def test_import_twice_changes_nothing(release, tmp_path):
    source = unpack(f"{release}/graph", tmp_path)
    first = omnigraph.import_original(source, tmp_path / "ours.omni")
    before = files(tmp_path / "ours.omni")

    assert omnigraph.import_original(source, tmp_path / "ours.omni") == first
    assert files(tmp_path / "ours.omni") == before


def test_import_again_does_not_undo_later_work(imported, release, tmp_path):
    graph = omnigraph.open(shutil.copytree(imported, tmp_path / "ours.omni"))
    graph.mutate('query q() { insert City { name: "later" } }')
    graph.branches.delete("review/1")
    source = unpack(f"{release}/graph", tmp_path)

    omnigraph.import_original(source, tmp_path / "ours.omni")

    assert "review/1" not in omnigraph.open(tmp_path / "ours.omni").branches.list()


def test_import_refuses_a_place_with_something_else(release, tmp_path):
    source = unpack(f"{release}/graph", tmp_path)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/mine.txt").write_text("mine")
    with pytest.raises(AlreadyExistsError):
        omnigraph.import_original(source, tmp_path / "notes")
    assert [each.name for each in (tmp_path / "notes").iterdir()] == ["mine.txt"]


def test_import_refuses_the_place_of_another_import(tmp_path):
    one = unpack("0.8.0/graph", tmp_path / "one")
    other = unpack("0.7.2/graph", tmp_path / "other")
    omnigraph.import_original(one, tmp_path / "ours.omni")
    with pytest.raises(AlreadyExistsError, match="other commits"):
        omnigraph.import_original(other, tmp_path / "ours.omni")


def test_import_refuses_a_graph_of_ours_and_no_graph(tmp_path):
    omnigraph.init(tmp_path / "graph.omni", "node A { k: String @key }")
    with pytest.raises(FormatError, match="is not a graph of a Rust release"):
        omnigraph.import_original(tmp_path / "graph.omni", tmp_path / "ours.omni")
    with pytest.raises(OmnigraphError):
        omnigraph.import_original(tmp_path / "nothing", tmp_path / "ours.omni")
    assert not (tmp_path / "ours.omni").exists()


def _import(source: Path, target: Path) -> object:
    return omnigraph.import_original(source, target)


def assert_not_a_graph(target: Path) -> None:
    """A reader, of main or of a branch, sees either no graph or a complete one."""
    for branch in BRANCHES:
        with pytest.raises((GraphNotFoundError, omnigraph.BranchNotFoundError)):
            omnigraph.open(target, read_only=True).snapshot(branch=branch)
    with pytest.raises(GraphNotFoundError):
        omnigraph.open(target)


def test_interrupted_import_is_invisible_and_continued(tmp_path):
    source = unpack("0.8.0-interrupted/interrupted-1", tmp_path)
    passes = trace(lambda: _import(source, tmp_path / "whole.omni"))
    whole = rows_of(omnigraph.open(tmp_path / "whole.omni"), tmp_path)
    assert {cut.point for cut in passes} >= {
        Failpoint.IMPORT_AFTER_RECORD,
        Failpoint.IMPORT_AFTER_EACH_TABLE,
        Failpoint.IMPORT_AFTER_EACH_COMMIT,
        Failpoint.IMPORT_AFTER_NAMES,
        Failpoint.APPLY_AFTER_COMMIT,
    }
    ends = passes.index(Cut(Failpoint.IMPORT_AFTER_NAMES))
    for place, cut in enumerate(passes):
        target = tmp_path / f"{place}.omni"
        cut_off(cut, partial(_import, source, target))
        if place <= ends:
            assert_not_a_graph(target)
        omnigraph.import_original(source, target)
        graph = omnigraph.open(target)
        assert rows_of(graph, tmp_path) == whole
        report = graph.check(history=True)
        assert (report.findings, report.notes) == ((), ()), cut
        shutil.rmtree(target)


def test_interrupted_import_of_branches_is_continued(release, tmp_path):
    source = unpack(f"{release}/graph", tmp_path)
    passes = trace(lambda: _import(source, tmp_path / "whole.omni"))
    ends = passes.index(Cut(Failpoint.IMPORT_AFTER_NAMES))
    # Every table on a branch, and a sample of the rest.
    for place in range(0, len(passes), 7):
        target = tmp_path / f"{place}.omni"
        cut_off(passes[place], partial(_import, source, target))
        if place <= ends:
            assert_not_a_graph(target)
        omnigraph.import_original(source, target)
        assert omnigraph.open(target).check(history=True).is_sound
    assert_complete(omnigraph.open(target), release, tmp_path)


def test_killed_import_is_continued_again_and_again(tmp_path):
    source, target = unpack("0.8.0/graph", tmp_path), tmp_path / "ours.omni"
    for _ in range(5):
        put_to_death(Cut(Failpoint.IMPORT_AFTER_EACH_COMMIT, 2), _import, source, target)
        assert_not_a_graph(target)
    omnigraph.import_original(source, target)
    assert_complete(omnigraph.open(target), "0.8.0", tmp_path)


def _import_at_once(barrier: threading.Barrier, source: Path, target: Path) -> str:
    barrier.wait(60)
    try:
        omnigraph.import_original(source, target)
    except OmnigraphError as error:
        return type(error).__name__
    return "done"


def test_two_imports_at_once_make_one_graph(tmp_path):
    source, target = unpack("0.8.0/graph", tmp_path), tmp_path / "ours.omni"
    in_processes(_import_at_once, [(source, target)] * 2)
    omnigraph.import_original(source, target)
    graph = omnigraph.open(target)
    assert_complete(graph, "0.8.0", tmp_path)
    assert graph.check(history=True).is_sound


def test_interrupted_import_of_a_source_that_moved_on_is_refused(tmp_path):
    source = unpack("0.8.0-interrupted/interrupted-1", tmp_path)
    with arm(Failpoint.IMPORT_AFTER_EACH_COMMIT), pytest.raises(SimulatedCrash):
        omnigraph.import_original(source, tmp_path / "ours.omni")
    shutil.rmtree(source / "__recovery")
    with pytest.raises((AlreadyExistsError, FormatError)):
        omnigraph.import_original(source, tmp_path / "ours.omni")


REFUSED_SIDECARS = {
    "another version": ({"schema_version": 3}, "version 3"),
    "another writer": ({"writer_kind": "BranchMerge"}, "interrupted BranchMerge"),
    "a schema change": ({"writer_kind": "SchemaApply"}, "interrupted SchemaApply"),
}


@pytest.mark.parametrize(("change", "said"), REFUSED_SIDECARS.values(), ids=REFUSED_SIDECARS)
def test_import_refuses_sidecars_that_no_sample_shows(change, said, tmp_path):
    source = unpack("0.8.0-interrupted/interrupted-1", tmp_path)
    (sidecar,) = (source / "__recovery").iterdir()
    sidecar.write_text(json.dumps({**json.loads(sidecar.read_text()), **change}))
    with pytest.raises(FormatError, match=said):
        omnigraph.import_original(source, tmp_path / "ours.omni")
    assert not (tmp_path / "ours.omni").exists()


def test_import_records_where_the_graph_came_from(imported, release):
    record = json.loads((imported / IMPORT).read_text())
    assert record["internal_schema"] == {"0.8.0": 4, "0.7.2": 3}[release]
    assert sorted(record["heads"]) == sorted(BRANCHES)


def test_a_year_of_work_on_an_imported_graph(release, tmp_path):
    omnigraph.import_original(unpack(f"{release}/graph", tmp_path), tmp_path / "ours.omni")
    graph = omnigraph.open(tmp_path / "ours.omni", actor="eve")
    add = "query add($name: String, $n: I64) { insert City { name: $name, people: $n } }"
    for number in range(12):
        graph.mutate(add, {"name": f"town{number}", "n": number})
    graph.mutate("query q() { delete City where people < 10 }")
    graph.merge("deep/er")
    graph.merge("review/1", resolve="theirs")
    text = graph.schema.show().text
    graph.schema.apply(text.replace("people: I64?", "people: I64?\n  country: String?"))
    graph.branches.create("next")
    say = 'query q() { update City set { country: "NO" } where name = "Oslo" }'
    graph.mutate(say, branch="next")
    graph.merge("next")
    graph.branches.delete("next")
    graph.load({"Person": [{"name": "p01", "age": 1000}]}, mode="merge")
    graph.optimize()
    assert graph.check(history=True).findings == ()

    later = omnigraph.open(tmp_path / "ours.omni", clock=LaterClock(YEAR_SECONDS))
    later.cleanup(keep_commits=3)

    cities = "query q() { match { $c: City } return { $c.name, $c.people, $c.country } }"
    named = {row["c.name"]: row for row in graph.query(cities).rows()}
    assert sorted(named) == ["Oslo", "Paris", "Rome", "town10", "town11", "Ørsta"]
    assert (named["Oslo"]["c.people"], named["Oslo"]["c.country"]) == (710000, "NO")
    people = "query q() { match { $p: Person } return { $p.name, $p.age } }"
    ages = {row["p.name"]: row["p.age"] for row in graph.query(people).rows()}
    assert (ages["p01"], ages["p03"], ages["new1"], ages["Zoe"]) == (1000, 333, 1, 7)
    assert "p06" not in ages
    report = omnigraph.open(tmp_path / "ours.omni").check(history=True)
    assert report.findings == ()
    draft = theirs(answers(release)["branches"]["draft"])
    assert rows_of(graph, tmp_path, branch="draft") == draft
