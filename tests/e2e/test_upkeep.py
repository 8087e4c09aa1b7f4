"""`omnigraph index` and `omnigraph cleanup` as an operator meets them."""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

import omnigraph
from omnigraph.cli.exits import Exit
from omnigraph.clock import SystemClock, encode_ulid
from omnigraph.maintenance.cleanup.ages import STAGED_AGE_MIN
from tests.support.commands import Answer

SCHEMA: Final = "node Person { name: String @key }"
OLD: Final = STAGED_AGE_MIN + timedelta(hours=1)

Run = Callable[..., Answer]


@pytest.fixture
def store(tmp_path: Path) -> str:
    graph = omnigraph.init(tmp_path / "graph.omni", SCHEMA)
    graph.load({"Person": [{"name": "ada"}]}, index=False)
    return graph.uri


@pytest.fixture
def rubbish(store: str) -> tuple[str, str]:
    """What a killed load and a killed command left a while ago: scratch, and a ref."""
    graph = omnigraph.open(store)
    then = SystemClock().now() - OLD
    load_id, ref = (encode_ulid(int(then.timestamp() * 1000) << 80 | each) for each in range(2))
    path = Path(store, "__staging", load_id, "part-00000-0.parquet")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"rows")
    os.utime(path, (then.timestamp(), then.timestamp()))
    version = graph.snapshot().manifest_version
    graph._store.refs.create("__manifest", ref, source=None, version=version)
    return load_id, ref


def test_cleanup_shows_what_would_go_and_removes_it_when_confirmed(
    here: Run, store: str, rubbish: tuple[str, str]
) -> None:
    load_id, ref = rubbish
    told = here("cleanup", "--store", store)
    assert told.code == Exit.DONE
    assert "nothing was removed: give --confirm to remove " in told.err
    assert [line.split() for line in told.out.splitlines()] == [
        ["kind", "name", "in"],
        ["ref", ref, "__manifest"],
        ["scratch", load_id, "__staging"],
    ]
    expected = {
        "rules": "",
        "commits": [],
        "kept": 2,
        "versions": [],
        "refs": [{"location": "__manifest", "ref": ref}],
        "scratch": [f"__staging/{load_id}"],
        "schemas": [],
        "tables": [],
        "troubles": [],
        "hidden": [],
    }
    answer = here("cleanup", "--store", store, "--json").json
    assert 0 < answer.pop("size") < 10_000
    assert answer == {**expected, "removed": False}
    assert Path(store, "__staging", load_id).is_dir()

    told = here("cleanup", "--store", store, "--confirm", "--json")
    assert {**told.json, "size": 0} == {**expected, "size": 0, "removed": True}
    assert not Path(store, "__staging", load_id).exists()
    told = here("cleanup", "--store", store, "--confirm")
    assert (told.code, told.out, told.err) == (Exit.DONE, "", "there is nothing to remove\n")


@pytest.mark.usefixtures("rubbish")
def test_cleanup_says_what_stays_and_why_and_fails(
    here: Run, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        message = "the disk is out of order"
        raise omnigraph.errors.StorageError(message)

    monkeypatch.setattr("omnigraph.storage.objects.Objects.clear", fail)
    told = here("cleanup", "--store", store, "--confirm")
    assert told.code == Exit.FAILED
    assert "was not removed: the disk is out of order" in told.err


def test_index_says_what_it_built_and_by_whom(here: Run, store: str) -> None:
    told = here("index", "--store", store, "--engine", "local")
    assert told.code == Exit.DONE
    assert told.out.split() == ["type", "indexed", "Person", "id,", "name"]
    assert "engine: local (requested)" in told.err
    told = here("index", "--store", store, "--json")
    assert told.json["commit_id"] is None
    assert (told.json["engine"], told.json["built"]) == ("local", {})
    assert told.json["why"] == "0 rows to index; Spark is used above 16,000,000"
