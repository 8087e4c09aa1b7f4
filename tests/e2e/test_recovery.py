"""`omnigraph recovery` as an operator meets it, with writers that were really killed."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

import omnigraph
from omnigraph.cli.exits import Exit
from omnigraph.clock import SystemClock
from tests.support.commands import Answer, command

SCHEMA: Final = "node Person { name: String @key }  node City { name: String @key }"
ADD: Final = """
query add($name: String) { insert Person { name: $name }  insert City { name: $name } }
"""

Run = Callable[..., Answer]


@pytest.fixture
def store(tmp_path: Path) -> str:
    graph = omnigraph.init(tmp_path / "graph.omni", SCHEMA)
    graph.mutate(ADD, {"name": "first"})
    return graph.uri


def killed(store: str, point: str, name: str) -> None:
    """A mutation that ends in the middle, as by a power cut."""
    arguments = ["mutate", "--store", store, "-e", ADD, "-p", f"name={name}", "--actor", "grace"]
    environment = {**os.environ, "OMNIGRAPH_FAILPOINTS": f"{point}=kill"}
    done = subprocess.run(command(*arguments), env=environment, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL


def names(store: str) -> list[str]:
    asked = "query q() { match { $p: Person } return { $p.name as name } order { name } }"
    return [each["name"] for each in omnigraph.open(store, read_only=True).query(asked).rows()]


def listed(here: Run, store: str) -> Any:
    return here("recovery", "list", "--store", store, "--json").json


def test_a_graph_without_accidents_has_nothing_to_show(here: Run, store: str) -> None:
    assert listed(here, store) == {"pending": [], "recoveries": []}
    told = here("recovery", "list", "--store", store)
    assert (told.code, told.out, told.err) == (Exit.DONE, "", "no write was ever interrupted\n")


@pytest.mark.parametrize(
    ("point", "kind", "people"),
    [
        ("write.after_check", "rolled_back", ["first", "third"]),
        ("write.after_each_apply", "rolled_back", ["first", "third"]),
        ("publish.after_stage", "rolled_forward", ["first", "second", "third"]),
        ("write.after_publish", "already_published", ["first", "second", "third"]),
    ],
)
def test_a_killed_write_is_shown_until_the_next_one_ends_it(
    here: Run, store: str, point: str, kind: str, people: list[str]
) -> None:
    killed(store, point, "second")
    before = listed(here, store)
    [pending] = before["pending"]
    assert (pending["state"], pending["actor"], pending["branch"]) == (
        "interrupted",
        "grace",
        "main",
    )
    assert [each["table_key"] for each in pending["tables"]] == ["node:City", "node:Person"]
    told = here("recovery", "list", "--store", store)
    assert pending["operation_id"] in told.out
    assert "the next write completes it" in told.err
    assert listed(here, store) == before, "looking changes nothing"
    shown = here("recovery", "show", pending["operation_id"], "--store", store)
    assert "node:Person from version 2 to 3" in shown.out

    added = here("mutate", "--store", store, "-e", ADD, "-p", "name=third")
    assert added.code == Exit.DONE, added.err

    assert names(store) == people
    after = listed(here, store)
    assert after["pending"] == []
    [entry] = after["recoveries"]
    assert (entry["operation_id"], entry["state"]) == (pending["operation_id"], kind)
    for wanted in (entry["operation_id"], entry["recovery_id"]):
        assert here("recovery", "show", wanted, "--store", store, "--json").json == [entry]
    by_recovery = ["--filter", "actor=omnigraph:recovery", "--json"]
    commits = here("commit", "list", "--store", store, *by_recovery).json
    assert len(commits) == (kind != "already_published")


def test_recoveries_are_shown_newest_first_and_as_many_as_wanted(here: Run, store: str) -> None:
    operations: list[str] = []
    for name in ("a", "b"):
        killed(store, "write.after_publish", name)
        [pending] = listed(here, store)["pending"]
        operations.insert(0, pending["operation_id"])
        omnigraph.open(store)
    found = listed(here, store)["recoveries"]
    assert [each["operation_id"] for each in found] == operations
    one = here("recovery", "list", "--store", store, "--limit", "1", "--json").json
    assert one["recoveries"] == found[:1]


def rewritten(store: str, **facts: Any) -> str:
    """The one sidecar, with other facts in it; the operation's id."""
    [path] = Path(store, "__recovery").glob("*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), **facts}))
    return path.stem


def test_a_writer_that_may_be_at_work_elsewhere_is_live(here: Run, store: str) -> None:
    killed(store, "write.after_check", "second")
    until = SystemClock().now() + timedelta(minutes=5)
    operation = rewritten(store, lease_until=until.isoformat(), owner=None)
    told = here("recovery", "list", "--store", store)
    assert "live" in told.out
    assert "until its lease runs out" in told.err
    [pending] = listed(here, store)["pending"]
    assert (pending["operation_id"], pending["state"]) == (operation, "live")


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        ("{", "from a backup"),
        ('{"schema_version": 99}', "the release that wrote it"),
        ('{"schema_version": 2}', "from a backup"),
        ('{"schema_version": 0}', "from a backup"),
    ],
)
def test_a_file_that_nobody_can_read_is_named_and_only_reading_works(
    here: Run, store: str, content: str, hint: str
) -> None:
    name = "01M7GC5A9QKCZHY9Q1JZB0D5T7"
    folder = Path(store, "__recovery")
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(content)

    told = here("recovery", "list", "--store", store)
    assert (told.code, "unreadable" in told.out) == (Exit.DONE, True)
    assert f"__recovery/{name}.json cannot be processed" in told.err
    shown = here("recovery", "show", name, "--store", store)
    assert f"__recovery/{name}.json" in shown.out
    assert names(store) == ["first"]
    for arguments in (["mutate", "-e", ADD, "-p", "name=x"], ["index"], ["branch", "create", "x"]):
        refused = here(*arguments, "--store", store)
        assert (refused.code, refused.out) == (Exit.RECOVERY, "")
        assert f"__recovery/{name}.json" in refused.err
        assert hint in refused.said
    assert (folder / f"{name}.json").read_text() == content


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["show", "0" * 26], Exit.NOT_FOUND, "recovery list"),
        (["show"], Exit.USAGE, "ID"),
        (["list", "--limit", "-1"], Exit.USAGE, "--limit"),
    ],
)
def test_a_mistake_gets_one_clear_message_and_its_exit_code(
    here: Run, store: str, arguments: list[str], code: Exit, said: str
) -> None:
    refused = here("recovery", *arguments, "--store", store)
    assert (refused.code, refused.out) == (code, "")
    assert said in refused.said
