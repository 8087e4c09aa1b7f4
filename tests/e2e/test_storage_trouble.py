"""Writes where the storage has limits: a typed error, an unchanged graph, and then it goes on."""

import json
import os
import resource
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final

import pytest

import omnigraph
from omnigraph.cli.exits import Exit
from omnigraph.model.tables import TableKey
from tests.support import crashes
from tests.support.clocks import LaterClock
from tests.support.commands import Answer
from tests.support.folding import eager_folds
from tests.support.retention import LET_GO, digests, unnamed_files
from tests.support.unprivileged import run_unprivileged

SCHEMA: Final = "node Note { name: String @key  text: String? }"
ADD: Final = "query add($name: String, $text: String?) { insert Note { name: $name  text: $text } }"
NAMES: Final = "query q() { match { $n: Note } return { $n.name as name } order { name } }"
SIZES: Final = "query q() { match { $n: Note } return { $n.name as name, $n.text as text } }"

Run = Callable[..., Answer]


def names(store: str) -> list[str]:
    rows = omnigraph.open(store, read_only=True).query(NAMES).rows()
    return [each["name"] for each in rows]


def test_a_text_of_a_hundred_megabytes_is_stored_and_comes_back(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "graph.omni", SCHEMA)
    text = "0123456789" * 10_000_000
    graph.mutate(ADD, {"name": "large", "text": text})
    graph.mutate(ADD, {"name": "small"})
    found = {each["name"]: each["text"] for each in graph.query(SIZES).rows()}
    assert found == {"large": text, "small": None}


@pytest.fixture
def public_path() -> Iterator[Path]:
    """A directory that any user can reach; pytest's own are root's alone."""
    with tempfile.TemporaryDirectory() as path:
        Path(path).chmod(0o755)
        yield Path(path)


def every_folder(store: Path) -> list[Path]:
    return [store, *(each for each in store.rglob("*") if each.is_dir())]


@pytest.mark.parametrize("command", ["mutate", "index", "optimize", "branch"])
def test_a_graph_that_may_only_be_read_refuses_writes_and_says_why(
    public_path: Path, command: str
) -> None:
    store = public_path / "graph.omni"
    omnigraph.init(store, SCHEMA).mutate(ADD, {"name": "first"})
    before = omnigraph.open(store, read_only=True).snapshot()
    for each in every_folder(store):
        each.chmod(0o555)
    arguments = {
        "mutate": ["mutate", "-e", ADD, "-p", "name=second"],
        "index": ["index"],
        "optimize": ["optimize"],
        "branch": ["branch", "create", "draft"],
    }[command]
    refused = run_unprivileged(*arguments, "--store", str(store), "--json")
    assert (refused.code, refused.out) == (Exit.FAILED, "")
    assert json.loads(refused.err)["code"] == "storage_denied"
    assert str(store) in refused.err

    for each in every_folder(store):
        each.chmod(0o755)
    assert omnigraph.open(store, read_only=True).snapshot() == before
    omnigraph.open(store).mutate(ADD, {"name": "second"})
    assert names(str(store)) == ["first", "second"]


@contextmanager
def files_at_most(bytes_max: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_max, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_files_that_cannot_grow_fail_a_write_wherever_that_is_and_nothing_else(
    here: Run, tmp_path: Path
) -> None:
    base = omnigraph.init(tmp_path / "graph.omni", SCHEMA)
    base.mutate(ADD, {"name": "first"})
    said = set()
    for bytes_max in range(0, 16_000, 400):
        store = crashes.copied(base.uri, tmp_path / f"{bytes_max}.omni")
        with files_at_most(bytes_max):
            told = here("mutate", "--store", store, "-e", ADD, "-p", "name=second", "--json")
        if told.code == Exit.DONE:
            assert names(store) == ["first", "second"]
            break
        error = json.loads(told.err)
        is_known = error["code"] == "storage"
        assert is_known or error["code"] == "outcome_unknown", told.err
        assert (told.code, told.out) == (Exit.FAILED if is_known else Exit.RECOVERY, "")
        said.add(error["error"].replace(store, "").split()[0])
        assert names(store) == ["first"]
        omnigraph.open(store).mutate(ADD, {"name": "third"})
        # Where undoing failed too, the error says so, and the next write may finish what it finds.
        assert names(store) == ["first", "third"] or not is_known
        assert {*names(store)} <= {"first", "second", "third"}
    else:
        pytest.fail("no limit was large enough")
    assert len(said) > 1, f"the limits met only one step of a write: {said}"


def worn(path: Path, *, text: str | None = None) -> omnigraph.Graph:
    """A graph whose table has several small fragments."""
    graph = omnigraph.init(path, SCHEMA)
    graph.settings.set("maintenance.optimize", "off")
    for name in ("first", "second", "third"):
        graph.mutate(ADD, {"name": name, "text": text})
    return graph


def require_optimized(store: str) -> None:
    """Assert that nothing is left of what failed, and that an optimize works."""
    graph = omnigraph.open(store)
    graph.optimize()
    pin = graph.snapshot().pin(TableKey.parse("node:Note"))
    assert graph._store.tables.open_pin(pin).count_fragments() == 1
    assert names(store) == ["first", "second", "third"]
    assert not graph.check(history=True).findings
    assert not graph.check(history=True).notes


def test_files_that_cannot_grow_fail_an_optimize_wherever_that_is_and_nothing_else(
    here: Run, tmp_path: Path
) -> None:
    base = worn(tmp_path / "graph.omni")
    head = base.snapshot().head
    steps = set()
    for bytes_max in range(0, 16_000, 400):
        store = crashes.copied(base.uri, tmp_path / f"{bytes_max}.omni")
        with files_at_most(bytes_max):
            told = here("optimize", "--store", store, "--json")
        if told.code == Exit.DONE:
            break
        error = json.loads(told.err)
        assert error["code"] in ("storage", "outcome_unknown"), told.err
        assert told.out == ""
        steps.add(error["error"].replace(store, "").split()[0])
        assert names(store) == ["first", "second", "third"]
        assert omnigraph.open(store, read_only=True).snapshot().head == head
        require_optimized(store)
    else:
        pytest.fail("no limit was large enough")
    assert len(steps) > 1, f"the limits met only one step of an optimize: {steps}"


def test_a_file_that_cannot_grow_fails_a_fold_and_not_the_write(tmp_path: Path) -> None:
    text = Random(7).randbytes(8_000).hex()
    graph = worn(tmp_path / "graph.omni", text=text)
    graph.settings.set("maintenance.optimize", "auto")
    # One row fits into a file of this size, and four rows do not.
    with eager_folds(4), files_at_most(30_000):
        result = graph.mutate(ADD, {"name": "fourth", "text": text[::-1]})
    assert result.commit_id is not None
    assert [warning.code for warning in result.warnings] == ["storage"]
    assert names(graph.uri) == ["first", "fourth", "second", "third"]
    with eager_folds(4):
        assert graph.mutate(ADD, {"name": "last"}).warnings == ()
    assert graph.commits.list()[0].operation == "optimize"
    assert not graph.check(history=True).findings


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a megabyte, where the machine lets us have one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a disk; a limit on files stands in for it above")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_full_disk_fails_the_write_and_nothing_else(small_disk: Path) -> None:
    store = str(small_disk / "graph.omni")
    graph = omnigraph.init(store, SCHEMA)
    graph.mutate(ADD, {"name": "first"})
    ballast = small_disk / "ballast"
    free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
    outcomes = []
    for left in range(0, 32_768, 4096):
        ballast.write_bytes(bytes(max(0, free - left)))
        outcomes.append(outcome(graph, f"second-{left}"))
        if outcomes[-1] == "done":
            break
        assert names(store) == ["first"]
    assert "no space is left" in outcomes[0]
    ballast.unlink()
    before = names(store)
    omnigraph.open(store).mutate(ADD, {"name": "third"})
    assert names(store) == [*before, "third"]


def test_a_full_disk_fails_an_optimize_and_nothing_else(small_disk: Path) -> None:
    graph = worn(small_disk / "graph.omni", text="x" * 9_000)
    head = graph.snapshot().head
    ballast = small_disk / "ballast"
    free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
    for left in range(0, 32_768, 8192):
        ballast.write_bytes(bytes(max(0, free - left)))
        with pytest.raises(omnigraph.errors.StorageError):
            graph.optimize()
        assert omnigraph.open(graph.uri, read_only=True).snapshot().head == head
        assert names(graph.uri) == ["first", "second", "third"]
    ballast.unlink()
    require_optimized(graph.uri)


def require_cleaned(store: str, kept: dict[str, str]) -> None:
    """Assert that nothing is lost, and that a cleanup works."""
    known = {*kept.values(), LET_GO}
    assert {*digests(store).values()} <= known
    later(store).cleanup(keep_commits=1)
    newest = omnigraph.open(store, read_only=True).snapshot().head.commit_id
    assert digests(store) == {
        commit_id: digest if commit_id == newest else LET_GO for commit_id, digest in kept.items()
    }
    assert unnamed_files(store) == set()
    assert not omnigraph.open(store).check(history=True).findings


def later(store: str) -> omnigraph.Graph:
    return omnigraph.open(store, clock=LaterClock(10 * 24 * 3600.0))


def test_files_that_cannot_grow_fail_a_cleanup_and_lose_nothing(tmp_path: Path) -> None:
    base = worn(tmp_path / "graph.omni")
    before = digests(base.uri)
    codes = []
    for bytes_max in (0, 10, 50, 100, 200, 100_000):
        store = crashes.copied(base.uri, tmp_path / f"{bytes_max}.omni")
        with files_at_most(bytes_max):
            codes.append(code_of(lambda store=store: later(store).cleanup(keep_commits=1)))  # type: ignore[misc]
        require_cleaned(store, before)
    assert codes[0] == "storage"
    assert codes[-1] == "done"


def code_of(action: Callable[[], object]) -> str:
    try:
        action()
    except omnigraph.errors.OmnigraphError as error:
        return error.code
    return "done"


def test_a_full_disk_fails_a_cleanup_and_loses_nothing(small_disk: Path) -> None:
    graph = worn(small_disk / "graph.omni", text="x" * 9_000)
    before = digests(graph.uri)
    ballast = small_disk / "ballast"
    free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
    ballast.write_bytes(bytes(free))
    assert code_of(lambda: later(graph.uri).cleanup(keep_commits=1)) == "storage"
    assert digests(graph.uri) == before
    ballast.unlink()
    require_cleaned(graph.uri, before)


def test_a_file_that_is_cut_short_fails_an_optimize_and_nothing_else(tmp_path: Path) -> None:
    graph = worn(tmp_path / "graph.omni")
    head = graph.snapshot().head
    file = max(Path(graph.uri).glob("nodes/*/data/*.lance"))
    whole = file.read_bytes()
    for size in (0, 1, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:size])
        with pytest.raises(omnigraph.errors.StorageError, match="/nodes/"):
            omnigraph.open(graph.uri).optimize()
        assert graph.snapshot().head == head
    file.write_bytes(whole)
    require_optimized(graph.uri)


def outcome(graph: omnigraph.Graph, name: str) -> str:
    try:
        graph.mutate(ADD, {"name": name})
    except omnigraph.errors.StorageError as error:
        return error.message
    return "done"
