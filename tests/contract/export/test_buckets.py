"""An export to an object store has what one to a disk has, whole or not at all."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

import omnigraph
from omnigraph.engine.spark import relations
from omnigraph.errors import (
    AlreadyExistsError,
    ErrorCode,
    InvalidInputError,
    NotFoundError,
    OutcomeUnknownError,
    StorageError,
)
from omnigraph.export import local
from omnigraph.export.buckets import BucketTarget
from omnigraph.export.files import write_file
from omnigraph.failpoints import SimulatedCrash
from omnigraph.load.remote_sources import find_remote
from omnigraph.storage.meter import Meter
from omnigraph.storage.objects import Objects, StoredObject
from omnigraph.storage.roots import Root
from tests.contract.export.graphs import SMALL, exported, small_graph
from tests.support.connect import require_classic
from tests.support.graphs import add_rows


@pytest.fixture
def small(tmp_path):
    return small_graph(tmp_path / "small.omni")


@pytest.fixture
def folder(s3_bucket):
    return f"s3://{s3_bucket}/exports"


@pytest.fixture
def objects(folder):
    return Objects(Root.parse(folder), Meter())


@pytest.fixture(params=["local", "spark"])
def engine(request: pytest.FixtureRequest, s3_bucket: str, monkeypatch: pytest.MonkeyPatch) -> str:
    assert s3_bucket
    if request.param == "spark":
        spark = request.getfixturevalue("spark")
        require_classic("its workers have the environment of their server")
        environment = request.getfixturevalue("s3_server").environment
        for name, value in environment.items():
            monkeypatch.setitem(spark.sparkContext.environment, name, value)
        monkeypatch.setattr(relations, "SPARK_PARTITION_ROWS_MIN", 1)
    return str(request.param)


def held(objects: Objects, path: str) -> bytes:
    found = objects.read(path)
    assert found is not None
    return found.data


def contents(objects: Objects, name: str) -> list[str]:
    """The files that a complete export names; there are no others."""
    files: list[str] = json.loads(held(objects, f"{name}/_export.json"))["files"]
    assert set(objects.list(name)) == {f"{name}/{file}" for file in [*files, "_export.json"]}
    return files


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


def test_a_folder_has_the_rows_of_one_on_a_disk_without_a_temporary_directory(
    small, folder, objects, tmp_path, monkeypatch, engine
):
    for _ in range(2):
        add_rows(small, {"Thing": [{"label": f"t{number}"} for number in range(50)]})
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    exported(small, tmp_path / "here.jsonl", engine="local")
    format_ = {"spark": "ndjson", "local": "csv"}[engine]
    result = exported(small, f"{folder}/there/", format=format_, engine=engine)

    assert contents(objects, "there") == list(result.files)
    if engine == "spark":
        assert len(result.files) > 3, "executors write parts of a type"
        parts = [held(objects, f"there/{name}") for name in result.files]
        assert b"".join(parts) == (tmp_path / "here.jsonl").read_bytes()
    copy = omnigraph.init(tmp_path / "copy.omni", SMALL)
    copy.load(f"{folder}/there", engine="local")
    exported(copy, tmp_path / "again.jsonl", engine="local")
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "here.jsonl").read_bytes()


def test_an_earlier_export_is_refused_or_replaced_and_other_objects_stay(small, folder, objects):
    exported(small, f"{folder}/there", format="csv")
    old = contents(objects, "there")
    with pytest.raises(AlreadyExistsError, match="exists"):
        exported(small, f"{folder}/there", format="csv")

    exported(small, f"{folder}/there", format="csv", types=("Person",), replaces=True)
    [name] = contents(objects, "there")
    assert name.startswith("Person.")
    assert name not in old
    objects.put("there/mine.txt", b"mine")
    with pytest.raises(AlreadyExistsError, match="other objects"):
        exported(small, f"{folder}/there", format="csv", replaces=True)
    assert held(objects, "there/mine.txt") == b"mine"
    objects.delete("there/mine.txt")
    assert contents(objects, "there") == [name]


@contextmanager
def patched(module: object, name: str, value: object) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, value)
        yield


def after_two_types(action: Callable[[], None]) -> Callable[..., int]:
    """What writes a file of a type; the third time, the action first."""
    calls: list[object] = []

    def instead(*arguments: Any, **named: Any) -> int:
        calls.append(arguments)
        if len(calls) == 3:
            action()
        return write_file(*arguments, **named)

    return instead


def fail() -> None:
    message = "out of order"
    raise StorageError(message)


def crash() -> None:
    raise SimulatedCrash


def test_a_failure_leaves_nothing_and_the_earlier_export(small, folder, objects):
    with patched(local, "write_file", after_two_types(fail)), pytest.raises(StorageError):
        exported(small, f"{folder}/there", format="csv")
    assert objects.list("there") == ()
    exported(small, f"{folder}/there", format="csv")
    before = contents(objects, "there")
    with patched(local, "write_file", after_two_types(fail)), pytest.raises(StorageError):
        exported(small, f"{folder}/there", format="csv", replaces=True)
    assert contents(objects, "there") == before


def kill_export(graph: omnigraph.Graph, target: str, **order: Any) -> None:
    """Export until two files are there, as a process that is killed then does."""
    with (
        patched(local, "write_file", after_two_types(crash)),
        patched(Objects, "delete_all", lambda *_: None),
        patched(Objects, "delete", lambda *_: None),
        pytest.raises(SimulatedCrash),
    ):
        exported(graph, target, format="csv", **order)


def test_a_killed_export_has_no_list_is_not_loaded_and_can_be_run_again(
    small, folder, objects, tmp_path
):
    kill_export(small, f"{folder}/there")
    left = objects.list("there")
    assert len(left) == 3
    assert "there/_export.json" not in left
    copy = omnigraph.init(tmp_path / "copy.omni", SMALL)
    with pytest.raises(InvalidInputError, match="is not complete") as refusal:
        copy.load(f"{folder}/there")
    assert "export again" in refusal.value.hint

    exported(small, f"{folder}/there", format="csv")
    assert len(contents(objects, "there")) == 3
    kill_export(small, f"{folder}/there", replaces=True)
    assert len(objects.list("there")) == 7, "the earlier one is whole beside what was left"
    copy.load(f"{folder}/there")
    assert copy.query("query q() { match { $p: Person } return { count($p) as n } }").rows() == [
        {"n": 3}
    ]
    exported(small, f"{folder}/there", format="csv", replaces=True)
    assert len(contents(objects, "there")) == 3


def found(target: str) -> set[str]:
    """The objects that a load of a URL reads, without folders."""
    return {each.file.path.name for each in find_remote(target)}


@pytest.mark.parametrize("named", ["/exports", "/exports/*", "/exports/there/*.csv", "/**/*.csv"])
def test_a_killed_export_is_not_loaded_by_the_names_of_others_either(
    small, folder, objects, s3_bucket, named
):
    url = f"s3://{s3_bucket}{named}"
    objects.put("more/Person.csv", b"name\nx\n")
    kill_export(small, f"{folder}/there")
    with pytest.raises(InvalidInputError, match=f"export to {folder}/there is not complete"):
        found(url)
    [left, *_] = [path for path in objects.list("there") if path.endswith(".csv")]
    with pytest.raises(InvalidInputError, match="is not complete"):
        found(f"{folder}/{left}")

    exported(small, f"{folder}/there", format="csv")
    whole = set(contents(objects, "there"))
    kill_export(small, f"{folder}/there", replaces=True)
    more = {"Person.csv"} - ({"Person.csv"} if "there" in named else set())
    assert found(url) == whole | more
    [left, *_] = [
        each
        for each in objects.list("there")
        if each.endswith(".csv") and each.rpartition("/")[2] not in whole
    ]
    with pytest.raises(InvalidInputError, match="not part of the complete export there"):
        found(f"{folder}/{left}")


def test_folders_below_an_export_are_part_of_it(objects, folder):
    """As Spark writes the parts of a type."""
    run, other = "01M7HSF4M9RTNMKYE2FPY7VRJZ", "01M7HSF4M9RTNMKYE2FPY7VRK0"
    for name in (run, other):
        objects.put(f"there/Person.csv/part-00000.{name}.csv", b"name\nx\n")
        objects.put(f"there/_unfinished.{name}.json", b"{}\n")
    for named in ("there/Person.csv", "there/Person.csv/*.csv", "there/*/*"):
        with pytest.raises(InvalidInputError, match=f"export to {folder}/there is not complete"):
            found(f"{folder}/{named}")
    listed = [f"Person.csv/part-0000{number}.{run}.csv" for number in range(2)]
    objects.put("there/_export.json", json.dumps({"files": listed[:1]}).encode())
    for named in ("there/Person.csv", "there/Person.csv/*.csv", "there/*/*"):
        assert found(f"{folder}/{named}") == {f"part-00000.{run}.csv"}
    objects.put("there/_export.json", json.dumps({"files": listed}).encode())
    for named in ("there", "there/Person.csv", "there/Person.csv/*.csv", "*", "there/P*"):
        with pytest.raises(
            NotFoundError,
            match=rf"part-00001.{run}.csv does not exist, but .*_export.json lists it",
        ):
            found(f"{folder}/{named}")
    assert found(f"{folder}/there/*/*0.*") == {f"part-00000.{run}.csv"}, "the other is not meant"


def test_an_export_that_lacks_a_file_is_not_loaded(small, folder, objects, tmp_path):
    exported(small, f"{folder}/there", format="csv")
    [lost, *_] = contents(objects, "there")
    objects.delete(f"there/{lost}")
    copy = omnigraph.init(tmp_path / "copy.omni", SMALL)
    for named in ("there", "there/*.csv", "*"):
        with pytest.raises(
            NotFoundError, match=f"object {folder}/there/{lost} does not exist"
        ) as refusal:
            copy.load(f"{folder}/{named}")
        assert "export again" in refusal.value.hint
    assert len(copy.commits.list()) == 1
    objects.put("there/_export.json", b"[]")
    with pytest.raises(InvalidInputError, match="is not a list of exported files"):
        copy.load(f"{folder}/there")


def test_of_two_exports_at_once_the_first_to_be_complete_stays(small, folder, objects):
    finish = BucketTarget.finish

    def overtaken(*arguments: Any) -> None:
        with patched(BucketTarget, "finish", finish):
            exported(small, f"{folder}/there", format="csv", types=("Person",))
        finish(*arguments)

    with (
        patched(BucketTarget, "finish", overtaken),
        pytest.raises(AlreadyExistsError, match="was complete first"),
    ):
        exported(small, f"{folder}/there", format="csv")
    [name] = contents(objects, "there")
    assert name.startswith("Person.")


WRITES: Final = {name: getattr(Objects, name) for name in ("put_if_absent", "update")}


@contextmanager
def list_answers(answer: Callable[[Callable[[], bool]], bool]) -> Iterator[None]:
    """Let the store answer like this where the list of an export is stored."""

    def instead(name: str) -> Callable[..., bool]:
        def write(objects: Objects, path: str, data: bytes, **more: str) -> bool:
            return answer(lambda: WRITES[name](objects, path, data, **more))

        return write

    with pytest.MonkeyPatch.context() as patch:
        for name in WRITES:
            patch.setattr(Objects, name, instead(name))
        yield


def lose_answer(store: Callable[[], bool]) -> bool:
    assert store()
    message = "the connection was reset"
    raise StorageError(message)


def repeat(store: Callable[[], bool]) -> bool:
    """As a client does that gets no answer to its first request."""
    assert store()
    return store()


def interrupt(store: Callable[[], bool]) -> bool:
    assert store()
    raise KeyboardInterrupt


@pytest.mark.parametrize("replaces", [False, True], ids=["first", "replaced"])
@pytest.mark.parametrize("answer", [lose_answer, repeat])
def test_an_export_whose_list_is_stored_succeeds_without_the_answer(
    small, folder, objects, answer, replaces
):
    if replaces:
        exported(small, f"{folder}/there", format="csv")
    with list_answers(answer):
        result = exported(small, f"{folder}/there", format="csv", replaces=replaces)
    assert contents(objects, "there") == list(result.files)


@pytest.mark.parametrize("replaces", [False, True], ids=["first", "replaced"])
def test_files_stay_where_it_is_unknown_whether_the_list_is_stored(
    small, folder, objects, tmp_path, replaces
):
    if replaces:
        exported(small, f"{folder}/there", format="csv")
    read = Objects.read

    def unreadable(self: Objects, path: str) -> StoredObject | None:
        stored = read(self, path)
        if path.endswith("_export.json") and lost:
            fail()
        return stored

    lost: list[bool] = []

    def lose(store: Callable[[], bool]) -> bool:
        lost.append(store())
        return lose_answer(lambda: True)

    with (
        list_answers(lose),
        patched(Objects, "read", unreadable),
        pytest.raises(OutcomeUnknownError, match=r"there/_export\.json cannot be read") as unknown,
    ):
        exported(small, f"{folder}/there", format="csv", replaces=replaces)
    run = str(unknown.value.hint).partition("files with ")[2].partition(";")[0]
    files = json.loads(held(objects, "there/_export.json"))["files"]
    assert len(files) == 3
    assert all(run in name and objects.exists(f"there/{name}") for name in files)
    copy = omnigraph.init(tmp_path / "copy.omni", SMALL)
    copy.load(f"{folder}/there")
    exported(small, f"{folder}/there", format="csv", replaces=True)
    assert len(contents(objects, "there")) == 3


def test_a_list_that_is_not_stored_keeps_the_earlier_export(small, folder, objects):
    exported(small, f"{folder}/there", format="csv")
    before = contents(objects, "there")

    def deny(_: object) -> bool:
        message = "no"
        raise StorageError(message, code=ErrorCode.STORAGE_DENIED)

    with list_answers(deny), pytest.raises(StorageError, match="no"):
        exported(small, f"{folder}/there", format="csv", replaces=True)
    assert contents(objects, "there") == before, "nothing is left of the other one"

    with list_answers(lambda _: lose_answer(lambda: True)), pytest.raises(StorageError):
        exported(small, f"{folder}/there", format="csv", replaces=True)
    assert found(f"{folder}/there") == set(before)
    late = set(objects.list("there")) - {f"there/{name}" for name in before}
    assert len(late) == 5, "the request may still arrive, so that its files stay"


def test_an_interrupt_after_the_list_is_stored_keeps_the_files(small, folder, objects):
    with list_answers(interrupt), pytest.raises(KeyboardInterrupt):
        exported(small, f"{folder}/there", format="csv")
    files = json.loads(held(objects, "there/_export.json"))["files"]
    assert found(f"{folder}/there") == set(files)


def test_an_export_is_complete_though_what_it_replaces_cannot_be_deleted(
    small, folder, objects, caplog
):
    exported(small, f"{folder}/there", format="csv")

    def refuse(*_: object) -> None:
        fail()

    with patched(Objects, "delete_all", refuse):
        exported(small, f"{folder}/there", format="csv", types=("Person",), replaces=True)
    assert "left to the next export" in caplog.text
    exported(small, f"{folder}/there", format="csv", replaces=True)
    assert len(contents(objects, "there")) == 3


def test_s3a_is_another_name_of_s3(small, folder, objects, s3_bucket):
    target = f"s3a://{s3_bucket}/exports/there"
    assert exported(small, target, format="csv").target == target
    assert found(target) == found(f"{folder}/there") == set(contents(objects, "there"))
    there = omnigraph.init(f"{folder}/graph.omni", SMALL)
    with pytest.raises(InvalidInputError, match="lies in the directory of the graph itself"):
        exported(there, f"s3a://{s3_bucket}/exports/graph.omni/there", format="csv")


@pytest.mark.parametrize(
    ("store", "variable"),
    [("gs://lake", "GOOGLE_"), ("abfss://raw@lake.dfs.core.windows.net", "AZURE_")],
)
def test_other_stores_name_their_own_variables(small, denying_store, monkeypatch, store, variable):
    monkeypatch.setenv("GOOGLE_BEARER_TOKEN", "none")
    monkeypatch.setenv("GOOGLE_BASE_URL", denying_store)
    monkeypatch.setenv("AZURE_SKIP_SIGNATURE", "true")
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", denying_store)
    monkeypatch.setenv("AZURE_ALLOW_HTTP", "true")
    for target in ("there.jsonl", "there"):
        with pytest.raises(StorageError, match=f"{store}.*/out.* was denied") as refusal:
            exported(small, f"{store}/out/{target}")
        assert refusal.value.code is ErrorCode.STORAGE_DENIED
        assert variable in refusal.value.hint


@pytest.mark.parametrize("target", ["gs://lake", "az://lake/there.jsonl", "abfss://a@b/../there"])
def test_a_target_in_any_store_needs_a_folder(small, target):
    with pytest.raises(InvalidInputError, match="does not name a bucket and a prefix") as refusal:
        exported(small, target)
    assert refusal.value.code is ErrorCode.INVALID_URI


def test_a_target_needs_a_folder_in_its_bucket(small, s3_bucket):
    with pytest.raises(InvalidInputError, match="does not name a bucket and a prefix"):
        exported(small, f"s3://{s3_bucket}/there.jsonl")
