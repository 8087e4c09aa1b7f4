"""The newest version of a ref: found in storage each time, whatever this process saw before."""

from pathlib import Path

import pytest

from omnigraph.storage import tables
from omnigraph.storage.staging import stage_append
from omnigraph.storage.store import Store
from omnigraph.storage.tables import PROBED_VERSIONS_MAX, Table
from tests.support.tables import LOCATION, applied, create, rows


@pytest.fixture(params=[None, "draft"], ids=["main", "ref"])
def ref(request: pytest.FixtureRequest, store: Store) -> str | None:
    """A table, and the ref of it that is written to."""
    table = create(store, "a")
    name: str | None = request.param
    if name is not None:
        store.refs.create(LOCATION, name, source=None, version=table.version)
    return name


def append(store: Store, ref: str | None, count: int) -> Table:
    table = store.tables.open_latest(LOCATION, ref=ref)
    for number in range(count):
        table = applied(stage_append(table, rows([f"{table.version} {number}"])))
    return table


@pytest.mark.parametrize("count", [0, 1, 2, PROBED_VERSIONS_MAX, PROBED_VERSIONS_MAX + 3])
def test_what_others_committed_since_is_seen(store, elsewhere, ref, count):
    seen = store.tables.open_latest(LOCATION, ref=ref).version
    written = append(elsewhere, ref, count)

    assert written.version == seen + count
    assert store.tables.head_version(LOCATION, ref=ref) == written.version
    newest = store.tables.open_latest(LOCATION, ref=ref)
    assert newest.version == written.version
    assert newest.count_rows() == 1 + count


def test_a_version_that_was_removed_is_not_needed(store, elsewhere, ref):
    if not store.root.is_local:
        pytest.skip("only local disks are probed")
    seen = store.tables.open_latest(LOCATION, ref=ref)
    written = append(elsewhere, ref, 3)
    folder = Path(store.root.uri, seen.address.folder, "_versions")
    (folder / f"{(1 << 64) - 1 - seen.version:020}.manifest").unlink()

    assert store.tables.head_version(LOCATION, ref=ref) == written.version


def test_a_long_history_is_not_listed(store, ref, monkeypatch):
    if not store.root.is_local:
        pytest.skip("S3 lists the newest versions first")
    table = append(store, ref, 2)
    looked = []
    look = tables._has_version_file

    def note(folder: str, version: int) -> bool:
        looked.append(version)
        return look(folder, version)

    monkeypatch.setattr(tables, "_has_version_file", note)
    assert store.tables.head_version(LOCATION, ref=ref) == table.version
    assert len(looked) == 2
