"""Graphs of older formats: migrated once, by anyone, whatever goes wrong; newer ones refused."""

import shutil
import threading
from pathlib import Path

import lance
import pytest

import omnigraph
from omnigraph.errors import ErrorCode, FormatError, NotFoundError, StorageError
from omnigraph.failpoints import Failpoint, SimulatedCrash, arm
from omnigraph.limits import RECENT_COMMITS_MAX
from omnigraph.manifest import format as manifest_format
from omnigraph.manifest import migrations
from omnigraph.manifest.layout import (
    LEGACY_ACTORS,
    LEGACY_COMMITS,
    MANIFEST,
    STAMP,
    UNIQUE_ID,
)
from omnigraph.model.counts import Counts
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN, BranchName
from tests.support.concurrency import in_processes
from tests.support.crashes import Cut, put_to_death
from tests.support.forge import DRAFT, STALE_RUNS, ForgedGraph, forge
from tests.support.publishing import PERSON, SCHEMA, advance, manifest_at

STAMPS = [1, 2, 3]
DRAFT_NAME = BranchName(DRAFT)
MIGRATE_POINTS = [point for point in Failpoint if point.startswith("migrate.")]


def stamp(uri: str, branch: BranchName = MAIN) -> int:
    return manifest_at(uri).open(branch).stamp


def history(graph: omnigraph.Graph, branch: str = MAIN) -> list[tuple[CommitId, str | None]]:
    """Ids and actors, oldest first."""
    return [(each.commit_id, each.actor) for each in graph.commits.list(branch=branch)][::-1]


def files(root: str) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path(root).rglob("*") if path.is_file()}


def assert_migrated(forged: ForgedGraph) -> None:
    """The graph is of the current format and has exactly the history it was forged with."""
    graph = omnigraph.open(forged.uri)
    manifest = manifest_at(forged.uri)
    opened = manifest.open(MAIN)
    assert opened.stamp == manifest_format.CURRENT
    assert history(graph) == list(forged.main)
    assert opened.contents.head == forged.main[-1][0]
    identity = opened.table.schema.field("object_id").metadata
    assert {key.decode(): value.decode() for key, value in identity.items()} == UNIQUE_ID
    assert not set(STALE_RUNS) & set(manifest.store.refs.list(MANIFEST))
    # What the old manifest says of its tables is forged: they are empty.
    assert [pin.row_count for pin in graph.snapshot().pins.values()] == [0, 0, 0]


@pytest.mark.parametrize("old", STAMPS)
def test_an_old_graph_is_migrated_by_its_first_read_write_open(tmp_path: Path, old: int) -> None:
    forged = forge(tmp_path / "graph", stamp=old)

    assert_migrated(forged)

    version = manifest_at(forged.uri).open(MAIN).table.version
    assert_migrated(forged)
    assert manifest_at(forged.uri).open(MAIN).table.version == version, "migrated once"
    assert lance.dataset(str(tmp_path / "graph" / LEGACY_COMMITS)).count_rows() == 3


@pytest.mark.parametrize("old", STAMPS)
def test_a_branch_is_migrated_by_the_first_publish_to_it(tmp_path: Path, old: int) -> None:
    forged = forge(tmp_path / "graph", stamp=old)
    graph = omnigraph.open(forged.uri)

    assert stamp(forged.uri, DRAFT_NAME) == old
    assert history(graph, DRAFT) == [*forged.main, *forged.draft]
    made = advance(manifest_at(forged.uri), PERSON, branch=DRAFT_NAME)

    assert stamp(forged.uri, DRAFT_NAME) == manifest_format.CURRENT
    assert history(graph, DRAFT) == [*forged.main, *forged.draft, (made.commit_id, None)]
    assert history(graph) == list(forged.main)


def test_old_commits_can_be_read_after_the_migration(tmp_path: Path) -> None:
    forged = forge(tmp_path / "graph", stamp=1)
    graph = omnigraph.open(forged.uri)
    advance(manifest_at(forged.uri), PERSON)

    for number, (commit_id, actor) in enumerate(forged.main):
        snapshot = graph.snapshot(commit=commit_id)
        assert snapshot.pin(PERSON).row_count == number
        assert (snapshot.head.commit_id, snapshot.head.actor) == (commit_id, actor)
        assert graph.snapshot(version=number + 1) == snapshot
    (tip, _) = forged.draft[-1]
    assert graph.snapshot(commit=tip).pin(PERSON).row_count == len(forged.main) + 1


@pytest.mark.parametrize("branch", [MAIN, DRAFT])
@pytest.mark.parametrize("old", STAMPS)
def test_a_write_counts_from_the_rows_of_the_table_and_not_from_the_old_manifest(
    tmp_path: Path, old: int, branch: str
) -> None:
    graph = omnigraph.open(forge(tmp_path / "graph", stamp=old).uri)
    add = "query add($name: String) { insert Person { name: $name } }"

    made = graph.mutate(add, {"name": "ada"}, branch=branch)

    assert dict(made.changes) == {"Person": Counts(inserted=1)}
    loaded = graph.load({"Person": [{"name": "ada"}, {"name": "bob"}]}, mode="merge", branch=branch)
    assert loaded.changes["Person"] == Counts(inserted=1, updated=1)
    assert graph.snapshot(branch=branch).pin(PERSON).row_count == 2
    assert graph.check(branch=branch).is_sound


@pytest.mark.parametrize("old", STAMPS)
def test_an_old_manifest_without_counts_is_read_and_migrated(tmp_path: Path, old: int) -> None:
    forged = forge(tmp_path / "graph", stamp=old, counted=False)
    reader = omnigraph.open(forged.uri, read_only=True)

    assert reader.query("query all() { match { $p: Person } return { $p.name } }").rows() == []
    assert_migrated(forged)


def test_a_table_that_cannot_be_counted_aborts_without_stamping(tmp_path: Path) -> None:
    forged = forge(tmp_path / "graph", stamp=3)
    table = Path(
        forged.uri, omnigraph.open(forged.uri, read_only=True).snapshot().pin(PERSON).location
    )
    table.rename(tmp_path / "aside")

    with pytest.raises(NotFoundError, match=str(table)):
        omnigraph.open(forged.uri)
    assert stamp(forged.uri) == 3

    (tmp_path / "aside").rename(table)
    assert_migrated(forged)


def test_a_long_legacy_history_is_paged(tmp_path: Path) -> None:
    depth = RECENT_COMMITS_MAX + 20
    forged = forge(tmp_path / "graph", stamp=3, depth=depth, branched=False)

    assert_migrated(forged)

    opened = manifest_at(forged.uri).open(MAIN)
    assert len(opened.table.fragments()) == 2
    assert len(opened.contents.recent) == RECENT_COMMITS_MAX
    oldest, _ = forged.main[0]
    assert omnigraph.open(forged.uri).commits.show(oldest).actor == "founder"


def test_a_graph_from_before_lineage_gets_a_first_commit(tmp_path: Path) -> None:
    forged = forge(tmp_path / "graph", stamp=1, lineage=False)
    (before,) = omnigraph.open(forged.uri, read_only=True).commits.list()

    graph = omnigraph.open(forged.uri)

    assert graph.commits.list() == graph.commits.list(branch=DRAFT) == (before,)
    assert before.parent is None
    assert graph.snapshot(commit=before.commit_id).pin(PERSON).row_count == 0
    made = advance(manifest_at(forged.uri), PERSON, branch=DRAFT_NAME)
    assert made.parent == before.commit_id, "a branch shares it as its base"


@pytest.mark.parametrize("old", STAMPS)
def test_a_read_only_open_lists_the_history_and_writes_nothing(tmp_path: Path, old: int) -> None:
    forged = forge(tmp_path / "graph", stamp=old)
    before = files(forged.uri)

    graph = omnigraph.open(forged.uri, read_only=True)

    assert history(graph) == list(forged.main)
    assert history(graph, DRAFT) == [*forged.main, *forged.draft]
    assert graph.snapshot().pin(PERSON).row_count == 2
    assert graph.snapshot(commit=forged.main[0][0]).pin(PERSON).row_count == 0
    assert graph.commits.show(forged.draft[0][0]).actor == "mina"
    assert files(forged.uri) == before


@pytest.mark.parametrize("old", STAMPS)
def test_a_read_only_open_answers_queries_and_writes_nothing(tmp_path: Path, old: int) -> None:
    forged = forge(tmp_path / "graph", stamp=old)
    before = files(forged.uri)
    reader = omnigraph.open(forged.uri, read_only=True)

    found = reader.query("query all() { match { $p: Person } return { $p.name } }")

    assert found.rows() == []
    assert reader.schema.show().text == SCHEMA
    assert files(forged.uri) == before


@pytest.mark.parametrize("dataset", [LEGACY_COMMITS, LEGACY_ACTORS])
@pytest.mark.parametrize("old", STAMPS)
def test_a_failure_to_read_the_old_lineage_aborts_without_stamping(
    tmp_path: Path, old: int, dataset: str
) -> None:
    forged = forge(tmp_path / "graph", stamp=old)
    versions = Path(forged.uri, dataset, "_versions")
    aside = tmp_path / "aside"
    shutil.copytree(versions, aside)
    for each in versions.iterdir():
        each.write_bytes(b"not readable just now")

    with pytest.raises(StorageError):
        omnigraph.open(forged.uri)
    assert stamp(forged.uri) == 3, "the steps before it are done, and this one is not"

    shutil.rmtree(versions)
    shutil.copytree(aside, versions)
    assert_migrated(forged)


@pytest.mark.parametrize("old", STAMPS)
@pytest.mark.parametrize("point", MIGRATE_POINTS)
def test_a_crashed_migration_is_finished_by_the_next_open(
    tmp_path: Path, point: Failpoint, old: int
) -> None:
    forged = forge(tmp_path / "graph", stamp=old)
    for step in range(manifest_format.CURRENT - old):
        with arm(point), pytest.raises(SimulatedCrash):
            omnigraph.open(forged.uri)
        if point is not Failpoint.MIGRATE_AFTER_STAMP:
            assert stamp(forged.uri) == old
            break
        assert stamp(forged.uri) == old + step + 1

    assert_migrated(forged)


@pytest.mark.parametrize("point", MIGRATE_POINTS)
def test_a_killed_migration_is_finished_by_the_next_open(tmp_path: Path, point: Failpoint) -> None:
    forged = forge(tmp_path / "graph", stamp=1)
    put_to_death(Cut(point, 2), omnigraph.open, forged.uri)
    assert_migrated(forged)


def _open(barrier: threading.Barrier, uri: str) -> list[tuple[CommitId, str | None]]:
    barrier.wait(60)
    return history(omnigraph.open(uri))


@pytest.mark.parametrize("old", STAMPS)
def test_two_processes_migrating_at_once_both_succeed(tmp_path: Path, old: int) -> None:
    forged = forge(tmp_path / "graph", stamp=old)

    assert in_processes(_open, [(forged.uri,)] * 2) == [list(forged.main)] * 2

    assert_migrated(forged)


def restamp(uri: str, text: str, *, ref: str | None) -> None:
    handle = lance.dataset(f"{uri}/{MANIFEST}").checkout_version((ref, None))
    handle.update_schema_metadata({STAMP: text})


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(
    ("text", "code"),
    [
        (str(manifest_format.CURRENT + 1), ErrorCode.FORMAT_TOO_NEW),
        ("0", ErrorCode.FORMAT_TOO_OLD),
        ("soon", ErrorCode.CORRUPTED),
    ],
)
def test_a_stamp_we_do_not_know_is_refused_in_both_modes_and_nothing_is_written(
    tmp_path: Path, text: str, code: ErrorCode, *, read_only: bool
) -> None:
    forged = forge(tmp_path / "graph", stamp=3)
    restamp(forged.uri, text, ref=None)
    before = files(forged.uri)

    with pytest.raises(FormatError) as refused:
        omnigraph.open(forged.uri, read_only=read_only)

    assert refused.value.code is code
    assert refused.value.hint
    assert files(forged.uri) == before


def test_a_branch_of_a_newer_format_is_refused_for_reads_and_publishes(tmp_path: Path) -> None:
    forged = forge(tmp_path / "graph", stamp=3)
    graph = omnigraph.open(forged.uri)
    restamp(forged.uri, str(manifest_format.CURRENT + 1), ref=DRAFT)
    before = files(forged.uri)

    with pytest.raises(FormatError, match="reads up to 4"):
        graph.snapshot(branch=DRAFT)
    with pytest.raises(FormatError, match="reads up to 4"):
        graph.commits.list(branch=DRAFT)
    with pytest.raises(FormatError, match="reads up to 4"):
        advance(manifest_at(forged.uri), PERSON, branch=DRAFT_NAME)

    assert files(forged.uri) == before
    assert history(graph) == list(forged.main)


def test_each_stamp_from_the_floor_up_has_its_migration_and_no_other_has() -> None:
    floor, ceiling = manifest_format.MIN_SUPPORTED, manifest_format.CURRENT
    assert sorted(migrations.STEPS) == list(range(floor, ceiling))
