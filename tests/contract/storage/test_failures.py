"""What the world can break: typed errors with a next step, and nothing half-done that shows."""

import os
import string
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from omnigraph.errors import ErrorCode, InvalidInputError, NotFoundError, OmnigraphError
from omnigraph.storage.staging import stage_append
from omnigraph.storage.store import Store
from tests.support.concurrency import in_processes
from tests.support.processes import attempts_with_small_files_only, attempts_without_rights
from tests.support.tables import LOCATION, applied, create, ids, latest, rows

DENIED: Final = "StorageError storage_denied"

ATTEMPTS = {
    "read an object": lambda store: store.objects.read("a"),
    "list objects": lambda store: store.objects.list(""),
    "ask for any": lambda store: store.objects.holds_any(),
    "put": lambda store: store.objects.put("a", b""),
    "put if absent": lambda store: store.objects.put_if_absent("a", b""),
    "update": lambda store: store.objects.update("a", b"", expecting='"x"'),
    "delete": lambda store: store.objects.delete("a"),
    "ask for a table": lambda store: store.tables.exists(LOCATION),
    "open a table": latest,
    "list refs": lambda store: store.refs.list(LOCATION),
}
WRITES_BY_LANCE = {
    "create an empty table": create,
    "create a table": lambda store: create(store, "abc"),
}


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS.keys())
@pytest.mark.parametrize("below", [".", "graph", "graphs/graph"])
def test_a_file_where_the_root_should_be_is_the_callers_mistake(tmp_path, attempt, below):
    (tmp_path / "file").write_text("precious")
    with pytest.raises(InvalidInputError) as refused:
        attempt(Store.open(tmp_path / "file" / below))

    assert refused.value.code is ErrorCode.INVALID_URI
    assert (tmp_path / "file").read_text() == "precious"


@pytest.mark.parametrize("attempt", WRITES_BY_LANCE.values(), ids=WRITES_BY_LANCE.keys())
def test_a_table_is_not_made_where_a_file_is_in_the_way(tmp_path, attempt):
    (tmp_path / "file").write_text("precious")
    with pytest.raises(OmnigraphError):
        attempt(Store.open(tmp_path / "file"))

    assert (tmp_path / "file").read_text() == "precious"


EVERYTHING = {**ATTEMPTS, **WRITES_BY_LANCE}


@pytest.mark.parametrize("attempt", EVERYTHING.values(), ids=EVERYTHING.keys())
def test_a_missing_bucket_is_not_found(s3_bucket, attempt):
    with pytest.raises(NotFoundError) as missing:
        attempt(Store.open(f"s3://{s3_bucket}-missing/graph"))

    assert missing.value.code is ErrorCode.BUCKET_NOT_FOUND
    assert f"{s3_bucket}-missing" in missing.value.message
    assert "create the bucket" in missing.value.hint


def test_asking_makes_nothing(tmp_path):
    store = Store.open(tmp_path / "graph")
    store.objects.read("a")
    store.objects.delete("a")
    store.objects.update("a", b"", expecting="x")
    store.objects.list("")
    store.refs.list(LOCATION)
    store.tables.exists(LOCATION)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("odd", [*string.punctuation.replace("/", "").replace("?", ""), " ", "é"])
def test_everything_a_graph_writes_lies_below_its_root(tmp_path, odd):
    root = tmp_path / f"a{odd}b" / "graph"
    store = Store.open(str(root))
    store.objects.put("a", b"")
    create(store, "abc")
    draft = store.refs.create(LOCATION, "draft", source=None, version=1)
    applied(stage_append(draft, rows("x")))

    files = [each for each in tmp_path.rglob("*") if each.is_file()]
    assert all(each.is_relative_to(root) for each in files)
    assert len(files) == len(store.objects.list(""))
    assert ids(latest(Store.open(str(root)), ref="draft")) == ["a", "b", "c", "x"]


@pytest.mark.parametrize("odd", ["!", "$", "&", "'", "(", "*", "+", ",", ":", ";", "=", "@", " é"])
def test_everything_a_graph_writes_lies_below_its_prefix(s3_bucket, odd):
    store = Store.open(f"s3://{s3_bucket}/a{odd}b/graph")
    store.objects.put("a", b"")
    create(store, "abc")
    draft = store.refs.create(LOCATION, "draft", source=None, version=1)
    applied(stage_append(draft, rows("x")))

    others = Store.open(f"s3://{s3_bucket}/a")
    assert others.objects.list("") == ()
    assert store.objects.list(f"{LOCATION}/tree/draft/data") != ()
    assert store.tables.exists(LOCATION)


# Rights and room, tried by children: a test may run as root, to whom neither applies.


@pytest.fixture
def graph() -> Iterator[Path]:
    """A directory with one table and one object, where everybody may enter what is above it."""
    mask = os.umask(0o022)
    try:
        with tempfile.TemporaryDirectory() as parent:
            Path(parent).chmod(0o755)
            root = Path(parent) / "graph"
            fill(root)
            yield root
            for each in (root, *root.rglob("*")):
                each.chmod(0o755)
    finally:
        os.umask(mask)


def fill(root: Path) -> None:
    store = Store.open(root)
    create(store, "abc")
    store.objects.put("objects/a", b"a")


def state(root: Path) -> tuple[int, list[str], tuple[str, ...]]:
    table = latest(Store.open(root))
    return table.version, ids(table), Store.open(root).objects.list("objects")


def test_a_directory_nobody_may_enter_is_denied(graph, tmp_path):
    before = state(graph)
    fill(tmp_path)
    graph.chmod(0)
    [endings] = in_processes(attempts_without_rights, [(str(tmp_path), str(graph))])
    graph.chmod(0o755)

    assert set(endings.values()) == {DENIED}
    assert state(graph) == before


def test_a_directory_nobody_may_write_can_be_read(graph, tmp_path):
    before = state(graph)
    fill(tmp_path)
    for each in (graph, *graph.rglob("*")):
        each.chmod(0o555)
    [endings] = in_processes(attempts_without_rights, [(str(tmp_path), str(graph))])

    reads = {"read a table", "read an object", "list"}
    assert {name for name, ending in endings.items() if ending == "done"} == reads
    assert {ending for name, ending in endings.items() if name not in reads} == {DENIED}
    assert state(graph) == before


def test_a_disk_that_takes_no_more_fails_the_write_and_spoils_nothing(graph):
    before = state(graph)
    [endings] = in_processes(attempts_with_small_files_only, [(str(graph), 8_192)])

    too_big = {"put", "put if absent", "update", "append"}
    failed = {name for name, ending in endings.items() if ending.startswith("StorageError")}
    assert failed == too_big
    assert {ending for name, ending in endings.items() if name not in too_big} == {"done"}
    version, held, _ = state(graph)
    assert (version, held) == before[:2]
    # The update that failed left the object whole for the deletion after it.
    assert Store.open(graph).objects.list("objects") == ()
