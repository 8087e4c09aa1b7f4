"""Stored topologies: written with the indexes, read by fresh handles, and never needed."""

from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph.engine.local.topology import stored
from omnigraph.engine.local.topology import topologies as keeping
from omnigraph.engine.local.topology.topologies import Topologies
from omnigraph.errors import StorageError
from omnigraph.graph import Graph
from omnigraph.maintenance import topologies as writing
from omnigraph.storage.array_files import array_path, read_arrays, version_of
from tests.support.clocks import LaterClock
from tests.support.topology import data_of, require_right, tables_of

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person { since: I32? }
"""
KNOWS = tables_of("Knows", "Person")
LATER = 30 * 86_400.0
COUNT = 40


@pytest.fixture(autouse=True)
def _every_table_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "STORED_EDGES_MIN", 1)
    monkeypatch.setattr(keeping, "STORED_EDGES_MIN", 1)


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was built from all edges."""
    built: list[object] = []
    build = keeping._build

    def count_and_build(*given: object) -> object:
        built.append(given)
        return build(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(keeping, "_build", count_and_build)
    return built


def make(path: Path) -> Graph:
    graph = omnigraph.init(path / "graph.omni", SCHEMA)
    graph.settings.set("maintenance.optimize", "off")
    people = [{"name": f"p{number}", "age": number} for number in range(COUNT)]
    knows = [{"from": f"p{number}", "to": f"p{number * number % COUNT}"} for number in range(COUNT)]
    graph.load({"Person": people, "Knows": [*knows, *knows[:5]]})
    return graph


def files(graph: Graph) -> list[Path]:
    return sorted(Path(graph.uri).glob("**/_arrays/*"))


def fresh(graph: Graph) -> Graph:
    return omnigraph.open(graph.uri, read_only=True)


def know(graph: Graph, source: str, target: str) -> None:
    text = "query q($a: String, $b: String) { insert Knows { from: $a, to: $b } }"
    graph.mutate(text, {"a": source, "b": target})


def test_a_load_writes_what_a_fresh_handle_reads(tmp_path: Path, builds: list[object]) -> None:
    graph = make(tmp_path)
    [file] = files(graph)
    assert version_of(str(file)) == data_of(graph).table(KNOWS.edges).version
    builds.clear()
    topologies = Topologies()
    require_right(topologies, data_of(fresh(graph)), KNOWS)
    assert builds == []


def test_later_versions_and_branches_follow_from_the_file(
    tmp_path: Path, builds: list[object]
) -> None:
    graph = make(tmp_path)
    builds.clear()
    graph.branches.create("draft")
    know(graph, "p1", "p2")
    graph.mutate('query q() { delete Person where name = "p7" }')
    draft = graph.at(branch="draft")
    draft.load({"Person": [{"name": "new", "age": 1}]}, mode="merge", index=False)
    know(draft, "new", "p3")
    for handle in (fresh(graph), fresh(graph).at(branch="draft")):
        require_right(Topologies(), data_of(handle), KNOWS)
    assert builds == []


def test_it_is_written_again_when_many_edges_differ(tmp_path: Path) -> None:
    graph = make(tmp_path)
    know(graph, "p1", "p2")
    graph.ensure_indices()
    assert len(files(graph)) == 1, "one edge of 45 is read along"
    graph.load({"Knows": [{"from": "p1", "to": f"p{number}"} for number in range(9)]})
    assert len(files(graph)) == 2
    graph.optimize()
    assert len(files(graph)) == 2, "a compaction changes no edge"


def _remove(path: Path) -> None:
    path.unlink()


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-70] ^= 4
    path.write_bytes(data)


def _flip_header(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[40] ^= 4
    path.write_bytes(data)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _replace(path: Path) -> None:
    path.write_bytes(b"a file of somebody else" * 20)


@pytest.mark.parametrize(
    "damage", [_remove, _truncate, _lengthen, _flip, _flip_header, _empty, _replace]
)
def test_a_damaged_file_is_ignored_and_written_again(
    tmp_path: Path, builds: list[object], damage: Callable[[Path], None]
) -> None:
    graph = make(tmp_path)
    [file] = files(graph)
    whole = file.read_bytes()
    damage(file)
    builds.clear()
    require_right(Topologies(), data_of(fresh(graph)), KNOWS)
    assert len(builds) == 1
    notes = [note for note in graph.check().notes if "arrays" in note.subject]
    assert len(notes) == (0 if damage is _remove else 1)
    assert graph.check().is_sound
    graph.ensure_indices()
    assert file.read_bytes() == whole


def _optimize(graph: Graph) -> str | None:
    return graph.optimize().commit_id


def _index(graph: Graph) -> str | None:
    return graph.ensure_indices(rebuild=True).commit_id


def _load(graph: Graph) -> str | None:
    result = graph.load({"Person": [{"name": "eva"}], "Knows": [{"from": "eva", "to": "p1"}]})
    assert result.warnings == (), "the indexes are up to date"
    return result.commit_id


@pytest.mark.parametrize("write", [_index, _load, _optimize])
def test_a_write_whose_topologies_cannot_be_stored_has_landed_and_says_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    write: Callable[[Graph], str | None],
) -> None:
    graph = make(tmp_path)
    know(graph, "p1", "p2")
    for file in files(graph):
        file.unlink()

    def fail(_: object) -> None:
        message = "the disk is full"
        raise StorageError(message)

    with monkeypatch.context() as patch:
        patch.setattr(writing, "store", fail)
        commit_id = write(graph)

    assert commit_id in [each.commit_id for each in graph.commits.list()]
    [record] = [each for each in caplog.records if each.name == writing.__name__]
    assert "topologies of branch main were not stored" in record.getMessage()
    assert "the disk is full" in record.getMessage()
    assert files(graph) == []
    graph.ensure_indices()
    assert len(files(graph)) == 1


def test_an_interrupt_while_topologies_are_stored_says_that_the_indexes_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    graph = make(tmp_path)
    [file] = files(graph)
    file.unlink()
    monkeypatch.setattr(writing, "store", interrupt)
    with pytest.raises(KeyboardInterrupt) as interrupted:
        graph.ensure_indices(rebuild=True)
    assert graph.snapshot().head.operation == "index"
    [note] = interrupted.value.__notes__
    assert "the indexes are up to date" in note


def test_a_file_goes_with_the_version_it_was_made_of(tmp_path: Path) -> None:
    graph = make(tmp_path)
    [first] = files(graph)
    graph.load({"Knows": [{"from": "p1", "to": f"p{number}"} for number in range(20)]})
    [second] = set(files(graph)) - {first}
    unfinished = first.with_name("unfinished-1-2")
    unfinished.write_bytes(b"a write that was killed")
    graph.cleanup(keep_commits=1)
    assert files(graph) == sorted([first, second, unfinished]), "within the grace, all is kept"
    later = omnigraph.open(graph.uri, clock=LaterClock(LATER))
    planned = later.cleanup(keep_commits=1, dry_run=True)
    done = later.cleanup(keep_commits=1)
    assert done == planned
    assert files(graph) == [second]
    require_right(Topologies(), data_of(fresh(graph)), KNOWS)


def test_edges_are_kept_up_although_the_version_of_the_nodes_is_gone(
    tmp_path: Path, builds: list[object]
) -> None:
    graph = make(tmp_path)
    graph.mutate('query q() { update Person set { age: 7 } where name = "p3" }')
    omnigraph.open(graph.uri, clock=LaterClock(LATER)).cleanup(keep_commits=1)
    builds.clear()
    require_right(Topologies(), data_of(fresh(graph)), KNOWS)
    assert builds == []


def test_a_file_of_a_removed_version_is_not_followed(tmp_path: Path, builds: list[object]) -> None:
    graph = make(tmp_path)
    [file] = files(graph)
    content = file.read_bytes()
    know(graph, "p1", "p2")
    omnigraph.open(graph.uri, clock=LaterClock(LATER)).cleanup(keep_commits=1)
    assert not file.exists()
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    builds.clear()
    require_right(Topologies(), data_of(fresh(graph)), KNOWS)
    assert len(builds) == 1


def test_arrays_are_what_was_stored(tmp_path: Path) -> None:
    graph = make(tmp_path)
    data = data_of(graph)
    topology = Topologies().of(data, KNOWS)
    assert topology is not None
    table = data.table(KNOWS.edges)
    assert stored.store(topology) == array_path(table.address, "topology")
    content = read_arrays(table, stored.store(topology))
    assert content is not None
    assert content.arrays["out_offsets"].tolist() == topology.out.offsets.tolist()
    assert content.arrays["into_neighbours"].tolist() == topology.into.neighbours.tolist()
    assert not content.arrays["out_offsets"].flags.writeable
