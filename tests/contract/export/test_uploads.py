"""An export to an object store is what one to a disk is, whole or not at all."""

import gzip
import json
from pathlib import Path

import pytest

from omnigraph.errors import AlreadyExistsError, InvalidInputError, StorageError
from omnigraph.export import run as exports
from omnigraph.storage.meter import Meter
from omnigraph.storage.objects import Objects
from omnigraph.storage.roots import Root
from tests.contract.export.graphs import exported, small_graph


@pytest.fixture
def small(tmp_path):
    return small_graph(tmp_path / "small.omni")


@pytest.fixture
def folder(s3_bucket):
    return f"s3://{s3_bucket}/exports"


@pytest.fixture
def objects(folder):
    return Objects(Root.parse(folder), Meter())


def held(objects: Objects, path: str) -> bytes:
    found = objects.read(path)
    assert found is not None
    return found.data


def test_a_file_is_the_one_that_a_disk_gets(small, folder, objects, tmp_path):
    exported(small, tmp_path / "here.jsonl.gz")
    result = exported(small, f"{folder}/there.jsonl.gz")

    assert (result.target, result.files) == (f"{folder}/there.jsonl.gz", ("there.jsonl.gz",))
    here = gzip.decompress((tmp_path / "here.jsonl.gz").read_bytes())
    assert gzip.decompress(held(objects, "there.jsonl.gz")) == here
    with pytest.raises(AlreadyExistsError, match=r"there\.jsonl\.gz exists"):
        exported(small, f"{folder}/there.jsonl.gz")
    exported(small, f"{folder}/there.jsonl.gz", types=("Thing",), replaces=True)
    assert gzip.decompress(held(objects, "there.jsonl.gz")) == b""


def test_a_directory_has_the_files_that_its_contents_name_and_gives_way_to_another(
    small, folder, objects, tmp_path
):
    exported(small, tmp_path / "here", format="csv")
    result = exported(small, f"{folder}/there/", format="csv")

    names = sorted(each.name for each in (tmp_path / "here").iterdir())
    assert objects.list("there") == tuple(f"there/{each}" for each in names)
    for name in names:
        assert held(objects, f"there/{name}") == (tmp_path / "here" / name).read_bytes()
    assert json.loads(held(objects, "there/_export.json"))["files"] == list(result.files)
    with pytest.raises(AlreadyExistsError, match="exists"):
        exported(small, f"{folder}/there", format="csv")

    exported(small, f"{folder}/there", format="csv", types=("Person",), replaces=True)
    assert objects.list("there") == ("there/Person.csv", "there/_export.json")
    objects.put("there/mine.txt", b"mine")
    with pytest.raises(AlreadyExistsError, match="other objects"):
        exported(small, f"{folder}/there", format="csv", replaces=True)
    assert objects.exists("there/mine.txt")


def test_a_failure_sends_nothing_and_leaves_nothing_here(
    small, folder, objects, tmp_path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    Path(tmp_path, "temporary").mkdir()

    def fail(*_: object, **__: object) -> None:
        message = "out of order"
        raise StorageError(message)

    monkeypatch.setattr(exports, "write_contents", fail)
    with pytest.raises(StorageError, match="out of order"):
        exported(small, f"{folder}/there", format="csv")
    assert objects.list("there") == ()
    assert list(Path(tmp_path, "temporary").iterdir()) == []


def test_a_target_needs_a_folder_in_its_bucket(small, s3_bucket):
    with pytest.raises(InvalidInputError, match="does not name a bucket and a prefix"):
        exported(small, f"s3://{s3_bucket}/there.jsonl")
